"""Open Face Chinese, Pineapple, as a TurnGame: an episode of hands, scored in points."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from simul.env_worker.games.base.turn_game import IllegalActionError, TurnGame
from simul.env_worker.games.ofc.actions import (
    LEGAL_FIRST,
    LEGAL_LATER,
    MASK_FIRST,
    MASK_LATER,
    example,
    name_of,
    parse_placement,
)
from simul.env_worker.games.ofc.cards import Cards, card_name, card_names
from simul.env_worker.games.ofc.drawing import SeatPicture, draw_svg
from simul.env_worker.games.ofc.estimates.fantasy_rollouts import EVERY_DRAW, candidate_scores
from simul.env_worker.games.ofc.evaluator import BOTTOM, CELLS, MIDDLE, TOP
from simul.env_worker.games.ofc.fantasyland import best_board
from simul.env_worker.games.ofc.hand import STREETS, UNSEEN, Hand, locate
from simul.env_worker.games.ofc.observation import encode, ofc_spec
from simul.env_worker.games.ofc.random_draws import draw_below, draws_of
from simul.env_worker.games.ofc.rules import Rules
from simul.env_worker.games.ofc.scoring import HandResult, score_hand
from simul.env_worker.games.ofc.text import STYLES, board_lines, foul_mark

SAMPLED_BOARDS = 100  # of each other seat with two streets left, where values are counted
DRAWN_BOARDS = 400  # of each other seat with one street left, likewise; on the last street every draw counts
GUESSED_BOARDS = 30  # of each other seat in Fantasyland, likewise
LONGEST_CHAIN = 20  # Fantasyland hands in a row; an episode that would go on is truncated
_BUTTON = 0  # stream of random numbers; hand n draws from stream n, from 1


class OfcGame(TurnGame):
    """Seats act in turn, one placement each, the button last. Cards of a seat in Fantasyland are set by the game when
    they are dealt (`fantasyland.best_board`): that seat does not act in the hand, and its board stays hidden until the
    hand is over.

    Attributes:
        rules: of the table.
        hand: the cards on the table; of the last hand where the episode is over.
        last: the newest hand that was scored, None before.
        points: [seats], won since `reset`.
    """

    hidden_information = True
    styles = STYLES

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.spec = ofc_spec(rules)
        self.hand = Hand(rules.players)
        self.fantasy_cards = np.zeros(rules.players, np.int64)
        self.last: HandResult | None = None
        self.points = [0.0] * rules.players
        self._foul_cost = rules.final_foul_cost
        self._hidden = np.zeros(rules.players, np.bool_)
        self._results: list[HandResult] = []
        self._order: list[int] = []
        self._seed = self._turn = self._number = self._regular = self._chain = 0
        self._button = rules.players - 1
        self._over = True

    def reset(self, seed: int) -> None:
        players = self.rules.players
        self._seed = seed
        self._number = self._regular = self._chain = 0
        self._results.clear()
        self.last = None
        self.points = [0.0] * players
        self.fantasy_cards[:] = 0
        drawn = draw_below(draws_of(seed, _BUTTON), players)
        self._button = drawn if self.rules.button == "random" else players - 1
        self._over = False
        self._begin_hand()

    def acting(self) -> Sequence[int]:
        return () if self._over else (self._seat,)

    @property
    def street(self) -> int:
        """0 ... 4; the last one where the episode is over."""
        return min(self._turn // max(len(self._order), 1), STREETS - 1)

    @property
    def button(self) -> int:
        """The seat that acts last."""
        return self._button

    @property
    def _seat(self) -> int:
        return self._order[self._turn % len(self._order)]

    def observation(self, seat: int) -> NDArray[Any]:
        out = np.zeros(self.spec.observation_size, np.float32)
        hand = self.hand
        holding = 0 if self._over or seat != self._seat else hand.holding
        encode(
            hand.board, hand.filled, hand.discards, hand.held, holding, self._hidden, self.fantasy_cards, seat,
            self.street, (self._button - seat) % self.rules.players, self.rules.deck, out,
        )  # fmt: skip
        return out

    def legal_actions(self, seat: int) -> NDArray[np.intp]:
        if self._turn < len(self._order):
            return LEGAL_FIRST
        return LEGAL_LATER[self._filled(seat)]

    def mask(self, seat: int) -> NDArray[np.uint8]:
        if self._turn < len(self._order):
            return MASK_FIRST.copy()
        return MASK_LATER[self._filled(seat)].copy()

    def apply(self, actions: Mapping[int, int]) -> None:
        seats = self.acting()
        if not seats:
            raise IllegalActionError("the game is over; reset it before the next action")
        if tuple(actions) != seats:
            raise IllegalActionError(f"seats {list(actions)} act, expected {list(seats)}.")
        seat = seats[0]
        action = int(actions[seat])
        if not self._allows(seat, action):
            raise IllegalActionError(
                f"seat {seat} takes action {action} on street {self.street + 1} with "
                f"{self.hand.filled[seat].tolist()} cards in its rows; expected one of its legal actions."
            )
        self.hand.place(seat, self.street, action)
        self._turn += 1
        if self._turn == STREETS * len(self._order):
            self._end_hand()
        else:
            self.hand.take_cards(self._seat, self.street)

    def _allows(self, seat: int, action: int) -> bool:
        if self._turn < len(self._order):
            return 0 <= action < len(LEGAL_FIRST)
        mask = MASK_LATER[self._filled(seat)]
        return 0 <= action < len(mask) and bool(mask[action])

    def returns(self) -> Sequence[float]:
        return list(self.points)

    def learned_returns(self) -> Sequence[float]:
        cost = self._foul_cost
        if not cost or not self._results:
            return self.returns()
        fouls = np.sum([~result.legal for result in self._results], axis=0)
        return [points - cost * float(count) for points, count in zip(self.points, fouls, strict=True)]

    def set_progress(self, share: float) -> None:
        """What a foul costs goes from `foul_cost` to `final_foul_cost` in a straight line."""
        first, last = self.rules.foul_cost, self.rules.final_foul_cost
        self._foul_cost = first + share * (last - first)

    def truncated(self) -> bool:
        return self._over and self._chain > LONGEST_CHAIN

    def _begin_hand(self) -> None:
        """Deal hands until a seat must act; hands that Fantasyland sets altogether are scored at once."""
        players = self.rules.players
        self._number += 1
        self._regular += not self.fantasy_cards.any()
        hand = self.hand
        np.greater(self.fantasy_cards, 0, out=hand.fantasy)
        self._hidden[:] = hand.fantasy
        hand.deal(draws_of(self._seed, self._number), self.rules.deck)
        for seat in np.flatnonzero(hand.fantasy).tolist():
            self._set_fantasyland(seat)
        around = [(self._button + step) % players for step in range(1, players + 1)]
        self._order = [seat for seat in around if not hand.fantasy[seat]]
        self._turn = 0
        if self._order:
            hand.take_cards(self._seat, 0)
        else:
            self._end_hand()

    def _set_fantasyland(self, seat: int) -> None:
        cards = self.hand.dealt[seat, : self.fantasy_cards[seat]]
        self.hand.set_fantasyland(seat, *best_board(cards, self.rules.stay_value, self.rules.full_house_stays))

    def _end_hand(self) -> None:
        self.last = score_hand(self.hand, self.rules)
        self._results.append(self.last)
        for seat, points in enumerate(self.last.points):
            self.points[seat] += float(points)
        entries = self.last.next_cards
        going_on = bool(entries.any())
        self._chain = self._chain + 1 if going_on else 0
        if self._chain > LONGEST_CHAIN or (not going_on and self._regular == self.rules.hands):
            self._over = True
            self._hidden[:] = False
            return
        self.fantasy_cards[:] = entries
        if not going_on:
            self._button = (self._button + 1) % self.rules.players
        self._begin_hand()

    def clone(self) -> Self:
        other = self.__class__.__new__(self.__class__)
        other.__dict__.update(self.__dict__)
        other.hand = self.hand.copy()
        other.fantasy_cards, other._hidden = self.fantasy_cards.copy(), self._hidden.copy()
        other.points, other._results = self.points.copy(), self._results.copy()
        return other

    def unseen(self, seat: int) -> Cards:
        """int8 [K], ascending: cards whose place the seat does not know."""
        hand, where = self.hand, np.empty(54, np.int8)
        holding = hand.holding if not self._over and seat == self._seat else 0
        locate(hand.board, hand.discards, hand.held, holding, self._hidden, seat, where)
        return np.flatnonzero(where[: self.rules.deck] == UNSEEN).astype(np.int8)

    def determinize(self, seat: int, draw: random.Random) -> Self:
        """As `TurnGame.determinize`: the cards to come, the discards and hidden boards of others, and later hands."""
        other, unseen = self.clone(), self.unseen(seat)
        hand, drawn = other.hand, np.arange(-1, 54, dtype=np.int8)  # by card + 1: what stands in its place
        hidden = hand.dealt[np.isin(hand.dealt, unseen)]  # in their order, so that the true cards change nothing
        drawn[hidden + 1] = draw.sample(unseen.tolist(), len(hidden))
        hand.dealt = drawn[hand.dealt + 1]
        for each in range(self.rules.players):
            if each != seat:
                hand.discards[each] = drawn[hand.discards[each] + 1]
                if self._hidden[each]:
                    other._set_fantasyland(each)
        if not self._over and self._seat != seat:
            hand.take_cards(self._seat, self.street)
        other._seed = draw.getrandbits(63)
        return other

    def action_values(self, seat: int, draw: random.Random) -> NDArray[np.float64] | None:
        """On the last two streets, by `candidate_scores`, against boards that those in Fantasyland may be."""
        if self.street < STREETS - 2:
            return None
        draws = draws_of(draw.getrandbits(63), 0)
        legal = self.legal_actions(seat)
        unseen, rules = self.unseen(seat), self.rules
        hidden = [each for each in np.flatnonzero(self._hidden).tolist() if each != seat]
        guesses = np.zeros((rules.players, GUESSED_BOARDS if hidden else 0, CELLS), np.int8)
        for each in hidden:
            for guess in guesses[each]:
                cards = np.array(draw.sample(unseen.tolist(), int(self.fantasy_cards[each])), np.int8)
                guess[:] = best_board(cards, rules.stay_value, rules.full_house_stays)[0]
        most_draws = EVERY_DRAW if self.street == STREETS - 1 else DRAWN_BOARDS
        return candidate_scores(self.hand, seat, unseen, legal, SAMPLED_BOARDS, rules, draws, guesses, most_draws)

    def figures(self) -> Mapping[str, Sequence[float]]:
        """Of the hands of the episode, [seats] each; rates of fouls and entries are of hands outside Fantasyland."""
        results = self._results
        legal, fantasy = (np.array([getattr(each, name) for each in results]) for name in ("legal", "fantasy"))
        going_on = np.array([each.next_cards > 0 for each in results])
        rows = np.mean([each.royalties for each in results], axis=0)
        regular = (~fantasy).sum(0)  # at least 1: the first hand
        found = {
            "foul_rate": (~legal).sum(0) / regular,
            "royalties_per_hand": rows.sum(1),
            "royalties_top": rows[:, TOP],
            "royalties_middle": rows[:, MIDDLE],
            "royalties_bottom": rows[:, BOTTOM],
            "fantasyland_entry": (going_on & ~fantasy).sum(0) / regular,
            "fantasyland_stay": (going_on & fantasy).mean(0),
            "fantasyland_hands": fantasy.mean(0),
            "score_per_hand": np.mean([each.points for each in results], axis=0),
        }
        return {name: values.tolist() for name, values in found.items()}

    def action_name(self, seat: int, action: int) -> str:
        """Rows and their cards, of the cards that the seat holds now."""
        return name_of(action, self._held)

    def shown_action(self, seat: int, action: int) -> str:
        """Without the discard."""
        return self.action_name(seat, action).partition("; discard")[0]

    def action_help(self, seat: int) -> str:
        """Cards with the letters of their rows."""
        discard = "" if self._turn < len(self._order) else ", x = discard"
        rows = f"t = top, m = middle, b = bottom{discard}"
        return f"Write each card with its row ({rows}), such as: {example(self._held, self._filled(seat))}"

    def parse_action(self, seat: int, text: str) -> int:
        """`As t, Kd b, 2c x`, or an action's name. Raises ValueError with a sentence."""
        if ";" in text:
            return super().parse_action(seat, text)
        return parse_placement(text, self._held, self._filled(seat))

    def _filled(self, seat: int) -> tuple[int, ...]:
        """Cards in each row."""
        return tuple(self.hand.filled[seat].tolist())

    @property
    def _held(self) -> list[str]:
        """Names of the cards that the acting seat holds."""
        return [card_name(int(card)) for card in self.hand.held[: self.hand.holding]]

    def render(self, seat: int | None = None) -> str:
        hand = self.hand
        lines = [self._headline()]
        for other in range(self.rules.players):
            hidden = bool(self._hidden[other]) and seat is not None and seat != other
            marks = ["button"] * (other == self._button) + ["Fantasyland"] * bool(hand.fantasy[other])
            marks += foul_mark(hand.board[other], hidden)
            points = f"{self.points[other]:+g} points"
            lines.append(", ".join([f"seat {other}: {points}", *marks]))
            lines += board_lines(hand.board[other], hidden)
            discards = hand.discards[other][hand.discards[other] >= 0]
            if len(discards) and (seat is None or seat == other):
                lines.append(f"  out    {card_names(discards)}")
        if not self._over and seat in (None, self._seat):
            lines.append(f"seat {self._seat} holds {card_names(hand.held[: hand.holding])}")
        return "\n".join(lines)

    def svg(self, seat: int | None = None) -> str:
        """All boards, of which each row says what it makes; under them what the seat that acts holds."""
        hand = self.hand
        pictures = []
        for other in range(self.rules.players):
            hidden = bool(self._hidden[other]) and seat is not None and seat != other
            marks = ["button"] * (other == self._button) + ["Fantasyland"] * bool(hand.fantasy[other])
            marks += foul_mark(hand.board[other], hidden)
            title = ", ".join([f"seat {other}: {self.points[other]:+g} points", *marks])
            discards = hand.discards[other][hand.discards[other] >= 0] if seat in (None, other) else hand.held[:0]
            holds = not self._over and other == self._seat and seat in (None, other)
            held = hand.held[: hand.holding] if holds else hand.held[:0]
            pictures.append(SeatPicture(title, hand.board[other], hidden, discards, held))
        return draw_svg(pictures)

    def _headline(self) -> str:
        if self._over:
            return "the last hand is over"
        last = "" if self.last is None else f"; the hand before: {', '.join(_hand_results(self.last))}"
        return f"hand {self._number}, street {self.street + 1}, seat {self._seat} to act{last}"


def _hand_results(result: HandResult) -> list[str]:
    """Each seat's points of a hand, and whether it fouled."""
    return [f"{points:+g}{'' if legal else ' (fouled)'}" for points, legal in zip(result.points, result.legal)]
