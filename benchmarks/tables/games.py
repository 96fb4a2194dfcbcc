"""Blokus and Open Face Chinese in one thread: processor time of legal moves, hands, boards and whole games."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import numpy as np
from numba import njit
from numpy.typing import NDArray

from simul.common.config.loader import load_config
from simul.env_worker.games.base.players import RandomPlayer
from simul.env_worker.games.base.turn_game import TurnGame
from simul.env_worker.games.loading import turn_game
from simul.env_worker.games.ofc.evaluator import row_value
from simul.env_worker.games.ofc.fantasyland import best_board
from simul.env_worker.games.ofc.game import rules as rules_of

Figures = dict[str, float]  # by what it is, with its unit

UNTIMED = 20  # calls to warm up
CLOCK_CALLS = 1000
DECK = 52


def legal_moves(overrides: Sequence[str], games: int, seed: int) -> Figures:
    """Listing the legal moves of every position of random games of Blokus."""
    game = turn_game(load_config("blokus", overrides))()
    return _spread(time_calls(_legal_move_calls(game, games, random.Random(seed))), 1.0, "us")


def _legal_move_calls(game: TurnGame, games: int, draw: random.Random) -> Iterator[Callable[[], object]]:
    player = RandomPlayer()
    for _ in range(games):
        game.reset(0)
        while acting := game.acting():
            yield partial(game.legal_actions, acting[0])
            game.apply({acting[0]: player.choose(game, acting[0], draw)})


def evaluate_hands(hands: int, seed: int) -> Figures:
    """The evaluator on random hands of five cards, within one compiled loop."""
    draw = np.random.default_rng(seed)
    cards = draw.random((hands, DECK)).argpartition(5, axis=1)[:, :5].astype(np.int8)
    _sum_of_values(cards[:1])  # compiles
    (spent,) = time_calls([partial(_sum_of_values, cards)], untimed=1)
    return {"ns": spent * 1e3 / hands}


@njit
def _sum_of_values(cards: NDArray[np.int8]) -> int:
    total = 0
    for hand in range(len(cards)):
        total += row_value(cards[hand], 0, 5)
    return total


def set_fantasyland(cards: int, deals: int, seed: int) -> Figures:
    """The exact solver on random deals of so many cards; the slowest is what is promised."""
    draw, rules = np.random.default_rng(seed), rules_of(load_config("ofc").ofc)
    dealt = [draw.permutation(DECK)[:cards].astype(np.int8) for _ in range(deals)]
    return _spread(
        time_calls([partial(best_board, each, rules.stay_value, rules.full_house_stays) for each in dealt]), 1e-3, "ms"
    )


def play_ofc(hands: int, seed: int) -> Figures:
    """Random self-play of three, with the observation and the mask of every decision."""
    game, draw = turn_game(load_config("ofc"))(), random.Random(seed)
    _play(game, 1, draw)
    begin = time.thread_time()
    decisions = _play(game, hands, draw)
    return {"decisions a second": decisions / (time.thread_time() - begin)}


def _play(game: TurnGame, games: int, draw: random.Random) -> int:
    """Number of decisions."""
    decisions = 0
    for _ in range(games):
        game.reset(draw.getrandbits(31))
        while acting := game.acting():
            game.observation(acting[0])
            legal = np.flatnonzero(game.mask(acting[0]))
            game.apply({acting[0]: int(legal[draw.randrange(len(legal))])})
            decisions += 1
    return decisions


def time_calls(calls: Iterable[Callable[[], object]], untimed: int = UNTIMED) -> NDArray[np.float64]:
    """Microseconds of this thread's processor time that each call takes, without what the clock itself takes.

    The first call is made `untimed` times before. Calls may be made on the way, each after the one before was timed.
    """
    clock = time.thread_time_ns
    pairs = [(clock(), clock()) for _ in range(CLOCK_CALLS)]
    own = float(np.median([after - before for before, after in pairs]))
    spent: list[int] = []
    for number, call in enumerate(calls):
        for _ in range(untimed if number == 0 else 0):
            call()
        begin = clock()
        call()
        spent.append(clock() - begin)
    return np.maximum(np.array(spent) - own, 0.0) / 1e3


def _spread(times_us: NDArray[np.float64], factor: float, unit: str) -> Figures:
    times = times_us * factor
    found = {"median": np.median(times), "p99": np.percentile(times, 99), "mean": times.mean(), "most": times.max()}
    return {f"{name} {unit}": float(value) for name, value in found.items()}
