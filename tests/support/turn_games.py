"""Small TurnGames, and a driver that answers a source's decisions."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from simul.common.protocol.decisions import Action, Decision
from simul.common.protocol.messages import DECISION
from simul.common.protocol.specs import GameSpec
from simul.env_worker.games.base.source import TurnGameSource
from simul.env_worker.games.base.turn_game import CHANCE, IllegalActionError, TurnGame

CARDS = 6


class HighCard(TurnGame):
    """Chance deals each seat a card; then all seats at once fold (0), stay (1) or raise (2), `rounds` times.

    A round pays a seat that did not fold its card, times its action. Action 2 is illegal for the lowest card.
    """

    def __init__(self, seats: int = 3, rounds: int = 2, cut: bool = False) -> None:
        self.spec = GameSpec("high-card", observation_size=3, num_actions=3, seats=seats)
        self.rounds, self.cut = rounds, cut
        self.cards: list[int] = []
        self.played = 0
        self.earned = [0.0] * seats
        self.seed = -1

    def reset(self, seed: int) -> None:
        self.seed, self.cards, self.played, self.earned = seed, [], 0, [0.0] * self.spec.seats

    def acting(self) -> Sequence[int]:
        if len(self.cards) < self.spec.seats:
            return (CHANCE,)
        return tuple(range(self.spec.seats)) if self.played < self.rounds else ()

    def observation(self, seat: int) -> np.ndarray:
        return np.array([self.cards[seat], self.played, seat], np.float32)

    def legal_actions(self, seat: int) -> np.ndarray:
        return np.arange(2 if self.cards[seat] == 0 else 3)

    def apply(self, actions: Mapping[int, int]) -> None:
        if set(actions) != set(self.acting()):
            raise IllegalActionError(f"{actions} where {self.acting()} act")
        if CHANCE in actions:
            self.cards.append(actions[CHANCE])
            return
        for seat, action in actions.items():
            self.earned[seat] += action * self.cards[seat]
        self.played += 1

    def returns(self) -> Sequence[float]:
        return list(self.earned)

    def truncated(self) -> bool:
        return self.cut

    def chance_outcomes(self):
        return np.arange(CARDS), np.full(CARDS, 1 / CARDS)

    def figures(self) -> Mapping[str, Sequence[float]]:
        return {"card": [float(card) for card in self.cards]}


class Raising(HighCard):
    """Its second round fails in every game whose first card is in `bad`."""

    bad: tuple[int, ...] = tuple(range(CARDS))

    def apply(self, actions: Mapping[int, int]) -> None:
        if self.played == 1 and self.cards[0] in self.bad:
            raise RuntimeError("the cards are gone")
        super().apply(actions)


class Always:
    """A scripted player with one answer."""

    def __init__(self, action: int) -> None:
        self.action = action

    def choose(self, game: TurnGame, seat: int, draw: random.Random) -> int:
        return self.action


def action_of(row: Decision, action: int) -> Action:
    """The server's answer to a decision."""
    return Action(row.env, row.seat, row.episode, row.step, row.attempt, action, 0.0, 0.0, 1)


def play(source: TurnGameSource, choose: Callable[[Decision], int], polls: int = 100_000) -> list[Decision]:
    """Answer every decision until the source is idle; all rows, in order."""
    rows: list[Decision] = []
    for _ in range(polls):
        new = source.poll()
        rows += new
        source.act([action_of(row, choose(row)) for row in new if row.kind == DECISION])
        if source.idle():
            return rows
    raise AssertionError("the source is not idle")


def any_legal(seed: int) -> Callable[[Decision], int]:
    """Uniformly random legal actions."""
    draw = random.Random(seed)
    return lambda row: draw.choice(np.flatnonzero(row.mask).tolist())


def take_any(game: TurnGame, draw: random.Random) -> dict[int, int]:
    """Random actions of the seats that act, or a random event, which are applied."""
    acting = game.acting()
    if acting[0] == CHANCE:
        actions = {CHANCE: game.draw_chance(draw)}
    else:
        actions = {seat: draw.choice(game.legal_actions(seat).tolist()) for seat in acting}
    game.apply(actions)
    return actions


def played_on(game: TurnGame, turns: int, seed: int = 0) -> TurnGame:
    """`game` after so many random turns, or at its end."""
    draw = random.Random(seed)
    while turns > 0 and game.acting():
        take_any(game, draw)
        turns -= 1
    return game
