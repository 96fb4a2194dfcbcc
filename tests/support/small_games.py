"""Small TurnGames with known values, and exact solvers of them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simul.common.protocol.specs import GameSpec
from simul.env_worker.games.base.turn_game import CHANCE, IllegalActionError, TurnGame

LINES = tuple(
    sum(1 << square for square in line)
    for line in ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
)  # fmt: skip


class Board(TurnGame):
    """Two seats in turn on squares that are taken once; `own[seat]` is a bit for each square. A line wins."""

    squares = 0

    def __init__(self) -> None:
        self.own = [0, 0]
        self.turn = 0
        self.winner = -1

    def reset(self, seed: int) -> None:
        self.__init__()

    def acting(self) -> Sequence[int]:
        return () if self.winner >= 0 or self.full() else (self.turn,)

    def observation(self, seat: int) -> NDArray[Any]:
        bits = np.array([self.own[seat], self.own[1 - seat]], np.uint64).view(np.uint8).reshape(2, 8)
        planes = np.unpackbits(bits, axis=1, count=self.squares, bitorder="little").ravel()
        return np.append(planes, self.turn == seat).astype(np.float32)

    def returns(self) -> Sequence[float]:
        if self.winner < 0:
            return (0.0, 0.0)
        return (1.0, -1.0) if self.winner == 0 else (-1.0, 1.0)

    def clone(self):
        other = type(self).__new__(type(self))
        other.own, other.turn, other.winner = self.own.copy(), self.turn, self.winner
        return other

    def full(self) -> bool:
        return (self.own[0] | self.own[1]).bit_count() == self.squares

    def put(self, square: int) -> None:
        self.own[self.turn] |= 1 << square
        if self.wins(self.own[self.turn]):
            self.winner = self.turn
        self.turn = 1 - self.turn

    def wins(self, own: int) -> bool:
        raise NotImplementedError


class TicTacToe(Board):
    spec = GameSpec("tic_tac_toe", 19, 9, seats=2)
    squares = 9
    symmetries = 2  # the identity, and left and right exchanged

    def legal_actions(self, seat: int) -> NDArray[np.intp]:
        taken = self.own[0] | self.own[1]
        return np.array([square for square in range(9) if not taken >> square & 1], np.intp)

    def apply(self, actions: Mapping[int, int]) -> None:
        square = actions[self.turn]
        if (self.own[0] | self.own[1]) >> square & 1:
            raise IllegalActionError(f"{square} is taken")
        self.put(square)

    def wins(self, own: int) -> bool:
        return any(own & line == line for line in LINES)

    def turn_observation(self, observation: NDArray[Any], symmetry: int) -> NDArray[Any]:
        planes = observation[:18].reshape(2, 3, 3)[:, :, ::-1]
        return np.append(planes.ravel(), observation[18:])

    def turn_actions(self, symmetry: int) -> NDArray[np.intp]:
        return np.arange(9).reshape(3, 3)[:, ::-1].ravel()


class ConnectFour(Board):
    """7 columns, 6 rows; square = 7 * column + row, so that a column has a seventh row that stays empty."""

    spec = GameSpec("connect_four", 99, 7, seats=2)
    squares = 49
    heights = (0,) * 7

    def __init__(self) -> None:
        super().__init__()
        self.heights = [0] * 7

    def clone(self):
        other = super().clone()
        other.heights = self.heights.copy()
        return other

    def full(self) -> bool:
        return (self.own[0] | self.own[1]).bit_count() == 42

    def legal_actions(self, seat: int) -> NDArray[np.intp]:
        return np.array([column for column in range(7) if self.heights[column] < 6], np.intp)

    def apply(self, actions: Mapping[int, int]) -> None:
        column = actions[self.turn]
        if self.heights[column] >= 6:
            raise IllegalActionError(f"column {column} is full")
        self.put(7 * column + self.heights[column])
        self.heights[column] += 1

    def wins(self, own: int) -> bool:
        for step in (1, 6, 7, 8):
            pairs = own & own >> step
            if pairs & pairs >> 2 * step:
                return True
        return False


def best_actions(game: Board) -> set[int]:
    """The actions that keep the value of the position."""
    values = {}
    known: dict[Any, int] = {}
    for action in game.legal_actions(game.turn):
        child = game.clone()
        child.apply({child.turn: int(action)})
        values[int(action)] = -_solve(child, -1, 1, known)
    return {action for action, value in values.items() if value == max(values.values())}


def _solve(game: Board, low: int, high: int, known: dict[Any, int]) -> int:
    if game.winner >= 0:
        return -1  # the seat that acted last won
    if game.full():
        return 0
    key = (*game.own, low, high)
    if key in known:
        return known[key]
    best = -1
    for action in game.legal_actions(game.turn):
        child = game.clone()
        child.apply({child.turn: int(action)})
        best = max(best, -_solve(child, -high, -max(low, best), known))
        if best >= high:
            break
    known[key] = best
    return best


@cache
def tic_tac_toe_positions() -> tuple[TicTacToe, ...]:
    """All 4,520 reachable positions that are not over (5,478 with those that are)."""
    found: dict[tuple[int, ...], TicTacToe] = {}
    waiting = [TicTacToe()]
    while waiting:
        game = waiting.pop()
        key = (*game.own, game.turn)
        if key in found or not game.acting():
            continue
        found[key] = game
        for action in game.legal_actions(game.turn):
            child = game.clone()
            child.apply({child.turn: int(action)})
            waiting.append(child)
    return tuple(found.values())


def connect_four_positions(number: int, empty: int, seed: int) -> list[ConnectFour]:
    """Positions of random games that are not over, with at most `empty` empty squares."""
    draw = np.random.default_rng(seed)
    found: list[ConnectFour] = []
    while len(found) < number:
        game = ConnectFour()
        ends = int(draw.integers(42 - empty, 41))
        while game.acting() and sum(game.heights) < ends:
            game.apply({game.turn: int(draw.choice(game.legal_actions(game.turn)))})
        if game.acting():
            found.append(game)
    return found


class Dice(TurnGame):
    """One seat takes a sure return (action 0), or rolls a die of three faces with known expectation (actions 1, 2).

    Action 1 rolls once for 1, 0 or -1 with probabilities 0.6, 0.2, 0.2 (expectation 0.4), action 2 the same with 0.2,
    0.2, 0.6 (-0.4). Action 0 returns 0.1.
    """

    spec = GameSpec("dice", 2, 3, seats=1)
    faces = ((), (0.6, 0.2, 0.2), (0.2, 0.2, 0.6))

    def __init__(self) -> None:
        self.chosen = -1
        self.face = -1

    def reset(self, seed: int) -> None:
        self.__init__()

    def acting(self) -> Sequence[int]:
        if self.chosen < 0:
            return (0,)
        return (CHANCE,) if self.chosen and self.face < 0 else ()

    def observation(self, seat: int) -> NDArray[Any]:
        return np.array([self.chosen, self.face], np.float32)

    def legal_actions(self, seat: int) -> NDArray[np.intp]:
        return np.arange(3)

    def apply(self, actions: Mapping[int, int]) -> None:
        if CHANCE in actions:
            self.face = actions[CHANCE]
        else:
            self.chosen = actions[0]

    def chance_outcomes(self) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        return np.arange(3), np.array(self.faces[self.chosen])

    def returns(self) -> Sequence[float]:
        return (0.1,) if self.chosen == 0 else (1.0 - self.face if self.face >= 0 else 0.0,)


class ThreeInTurn(TurnGame):
    """Seats 0, 1, 2 each choose left or right once; `payoffs[a][b][c]` are the returns of the three."""

    spec = GameSpec("three_in_turn", 4, 2, seats=3)
    # Backward induction: seat 2 maximises its own number, seat 1 then its own, seat 0 then its own.
    payoffs = np.array(
        [
            [[(0.9, -0.5, -0.4), (0.3, 0.2, 0.5)], [(-0.6, 0.4, 0.2), (0.8, 0.9, -0.9)]],
            [[(0.5, 0.1, -0.3), (0.1, 0.6, 0.4)], [(0.2, -0.3, 0.6), (0.7, 0.3, 0.1)]],
        ]
    )  # fmt: skip
    value = (0.1, 0.6, 0.4)  # of right, left, right

    def __init__(self) -> None:
        self.chosen: tuple[int, ...] = ()

    def reset(self, seed: int) -> None:
        self.chosen = ()

    def acting(self) -> Sequence[int]:
        return (len(self.chosen),) if len(self.chosen) < 3 else ()

    def observation(self, seat: int) -> NDArray[Any]:
        return np.array([seat, *self.chosen, *[-1] * (3 - len(self.chosen))], np.float32)

    def legal_actions(self, seat: int) -> NDArray[np.intp]:
        return np.arange(2)

    def apply(self, actions: Mapping[int, int]) -> None:
        self.chosen += (actions[len(self.chosen)],)

    def returns(self) -> Sequence[float]:
        return tuple(self.payoffs[self.chosen]) if len(self.chosen) == 3 else (0.0,) * 3


class Envelope(TurnGame):
    """Seat 1 knows a number from 0 to 3; seat 0 takes a sure point (action 0), asks for the number (1), or waits (2).

    Asked, seat 1 gives it (action 0) or nothing (1). After waiting and an action of seat 1, seat 0 acts once more.
    """

    spec = GameSpec("envelope", 3, 3, seats=2)
    hidden_information = True

    def __init__(self) -> None:
        self.number, self.taken = 0, []

    def reset(self, seed: int) -> None:
        self.number, self.taken = seed % 4, []

    def acting(self) -> Sequence[int]:
        if self.taken[:1] == [0] or len(self.taken) == (3 if self.taken[:1] == [2] else 2):
            return ()
        return (len(self.taken) % 2,)

    def observation(self, seat: int) -> NDArray[Any]:
        return np.array([seat, self.number if seat else -1, len(self.taken)], np.float32)

    def legal_actions(self, seat: int) -> NDArray[np.intp]:
        return np.arange(2 if seat else 3)

    def apply(self, actions: Mapping[int, int]) -> None:
        ((_, action),) = actions.items()
        self.taken.append(action)

    def returns(self) -> Sequence[float]:
        if not self.taken or self.taken[0] == 2:
            return (0.0, 0.0)
        won = 1.0 if self.taken[0] == 0 else self.number * (self.taken[1:] == [0])
        return (won, -won)

    def determinize(self, seat: int, draw: random.Random):
        other = self.clone()
        if seat == 0:
            other.number = draw.randrange(4)
        return other
