"""Blokus as a TurnGame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from simul.env_worker.games.base.turn_game import IllegalActionError, Position, TurnGame
from simul.env_worker.games.blokus.board import Variant, tables
from simul.env_worker.games.blokus.drawing import STYLES, draw_svg, draw_text
from simul.env_worker.games.blokus.kernels import (
    OVER,
    PASSED,
    TO_MOVE,
    count_moves,
    is_legal,
    legal_moves,
    new_state,
    observe,
    outcome,
    play,
    play_and_show,
    seat_of,
    seat_points,
    show_ending,
)
from simul.env_worker.games.blokus.notation import action_name, squares_of
from simul.env_worker.games.blokus.observation import game_spec
from simul.env_worker.games.blokus.person import HELP, list_pieces, parse_words
from simul.env_worker.games.blokus.symmetry import transposed_actions, transposed_ending, transposed_observation


class Blokus(TurnGame):
    """One game. A colour that cannot place passes once and is out; the game ends when no colour can place a piece.

    Attributes:
        variant: the board.
        state: int32 [S], the position, for the functions of `kernels.py`.
        tables: their other arguments.
        moves: (colour, action) of all actions applied.
    """

    deterministic = True
    styles = STYLES

    def __init__(self, variant: Variant) -> None:
        self.spec = game_spec(variant)
        self.variant = variant
        self.symmetries = 2 if variant.name == "duo" else 1
        self.tables = tables(variant)
        self.reset(0)

    def reset(self, seed: int) -> None:
        """The empty board. There is no chance in Blokus: `seed` changes nothing."""
        self.state = new_state(self.variant)
        self.moves: list[tuple[int, int]] = []
        self._legal: NDArray[np.intp] | None = None  # actions of the position, once they were asked

    @property
    def colour(self) -> int:
        """The colour to move, while the game is not over."""
        return int(self.state[TO_MOVE])

    def acting(self) -> Sequence[int]:
        """The seat that places the colour to move."""
        if self.state[OVER]:
            return ()
        if self.variant.seats == 3:  # they place one colour in turn
            return (seat_of(self.state, self.colour, self.tables.rules),)
        return (self.colour % self.variant.seats,)

    def observation(self, seat: int) -> NDArray[Any]:
        """uint8 [D], in the view of the colour that `seat` places next."""
        row = np.empty(self.spec.observation_size, np.uint8)
        tree, _, views, rules = self.tables
        observe(self.state, self._next_colour(seat), seat, tree, views, rules, row)
        return row

    def _next_colour(self, seat: int) -> int:
        colours = len(self.variant.colours)
        for turn in range(colours):
            colour = (self.colour + turn) % colours
            passed = int(self.state[PASSED]) >> colour & 1
            if not passed and seat_of(self.state, colour, self.tables.rules) == seat:
                return colour
        return seat

    def legal_actions(self, seat: int) -> NDArray[np.intp]:
        """Placements of the colour to move, numbered in its view; the pass where it has none."""
        if self._legal is None:
            moves = legal_moves(self.state, self.tables.tree, self.tables.rules)
            moves.sort()
            self._legal = moves.astype(np.intp)
        return self._legal.copy()

    def count_legal(self, seat: int) -> int:
        """How many there are, without a list of them."""
        return count_moves(self.state, self.tables.tree, self.tables.rules)

    def apply(self, actions: Mapping[int, int]) -> None:
        """The action of the one seat that acts."""
        if not self.acting():
            raise IllegalActionError("the game is over; reset it before the next action")
        if tuple(actions) != tuple(self.acting()):
            raise IllegalActionError(f"expected an action of seat {list(self.acting())}, got some of {list(actions)}")
        action = int(next(iter(actions.values())))
        if not is_legal(self.state, action, *self.tables):
            colour = self.variant.colours[self.colour]
            raise IllegalActionError(f"{self._name_of(action)} is not legal for {colour} now; see legal_actions")
        self.moves.append((self.colour, action))
        self._legal = None
        play(self.state, action, *self.tables)

    def _name_of(self, action: int) -> str:
        known = 0 <= action < self.spec.num_actions
        return action_name(self.variant, self.colour, action) if known else f"action {action}"

    def returns(self) -> Sequence[float]:
        """0 until the game is over, then 1 for the only winner; see `kernels.outcome` for ties and more seats."""
        found = np.zeros(self.spec.seats, np.float64)
        if self.state[OVER]:
            outcome(self.state, self.tables.rules, found)
        return [float(each) for each in found]

    def ending(self, seat: int, end: Self) -> NDArray[np.uint8]:
        """Who owns each square at the end, a plane for each colour as the observation has them, and the margin.

        The margin is the distance to the best other seat, from -50 points (0) to 50 (255).
        """
        return show_ending(end.state, self._next_colour(seat), seat, end.tables.views, end.tables.rules)

    def points(self) -> list[int]:
        """[seats]: squares placed and bonuses, of all colours of a seat."""
        return [seat_points(self.state, seat, self.tables.rules) for seat in range(self.spec.seats)]

    def clone(self) -> Self:
        """A copy of the arrays; the tables are shared."""
        copied = object.__new__(type(self))
        copied.__dict__ |= self.__dict__
        copied.state, copied.moves, copied._legal = self.state.copy(), self.moves.copy(), None
        return copied

    def after(self, action: int) -> Position:
        """A copy after a legal action, and what it shows, by one compiled call."""
        game = self.clone()
        state = game.state
        game.moves.append((int(state[TO_MOVE]), action))
        observation = np.empty(self.spec.observation_size, np.uint8)
        listed = np.empty(self.spec.num_actions, np.int64)
        count = play_and_show(state, action, *self.tables, observation, listed)
        return Position(game, game.acting() if count else (), listed[:count].copy(), observation)

    def turn_observation(self, observation: NDArray[Any], symmetry: int) -> NDArray[Any]:
        """1: the view of Duo is reflected in its main diagonal."""
        return observation[transposed_observation(self.variant)] if symmetry else observation

    def turn_ending(self, ending: NDArray[np.uint8], symmetry: int) -> NDArray[np.uint8]:
        """1: the planes are reflected as the board is."""
        return ending[transposed_ending(self.variant)] if symmetry else ending

    def turn_actions(self, symmetry: int) -> NDArray[np.intp]:
        """1: the action that each is in the reflected view."""
        return transposed_actions(self.variant) if symmetry else super().turn_actions(symmetry)

    def figures(self) -> Mapping[str, Sequence[float]]:
        """Points, and how far they are ahead of the best other seat."""
        points = self.points()
        best_other = [max(points[:seat] + points[seat + 1 :]) for seat in range(len(points))]
        return {"points": points, "margin": [own - other for own, other in zip(points, best_other, strict=True)]}

    def action_name(self, seat: int, action: int) -> str:
        """The squares as Pentobi writes them, such as `e9,e10,f10`; or `pass`. Of the colour to move."""
        return action_name(self.variant, self.colour, action)

    def action_help(self, seat: int) -> str:
        """Piece, orientation and square; or the pass, where it is the only action."""
        if self.variant.placements in self.legal_actions(seat):
            return f"{self.variant.colours[self.colour].capitalize()} has no piece that fits: write pass."
        return HELP

    def list_actions(self, seat: int, about: str = "") -> str:
        """The pieces that fit; of one piece its orientations and where they fit."""
        return list_pieces(self.variant, self.colour, self.legal_actions(seat).tolist(), about)

    def parse_action(self, seat: int, text: str) -> int:
        """`L4 3 e9`, or all squares as Pentobi writes them, in any order. Raises ValueError with a sentence."""
        return parse_words(self.variant, self.state, self.colour, self.legal_actions(seat).tolist(), text)

    def render(self, seat: int | None = None) -> str:
        """The board as text; nothing is hidden in Blokus."""
        return draw_text(self.variant, self.state)

    def svg(self, seat: int | None = None) -> str:
        """The board as SVG, the newest piece with a rim."""
        newest = squares_of(self.variant, *self.moves[-1]) if self.moves else []
        return draw_svg(self.variant, self.state, newest)
