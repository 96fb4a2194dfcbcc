"""A call of the game's code that does not return is named with its line; calls that are many and fast are not."""

from __future__ import annotations

import threading
import time

import pytest

from simul.common.config.schema import OpponentsConfig
from simul.env_worker.game_watch import LIMIT_SEC, GameWatch
from simul.env_worker.games.base.source import TurnGameSource
from tests.support.turn_games import HighCard

PATIENCE_SEC = 60.0


class Gate:
    """Where a game waits: each time until the test lets it through."""

    def __init__(self) -> None:
        self.reached, self.pass_on = threading.Semaphore(0), threading.Semaphore(0)

    def wait(self) -> None:
        self.reached.release()
        assert self.pass_on.acquire(timeout=PATIENCE_SEC)  # the line that is named


@pytest.fixture
def gate():
    return Gate()


@pytest.fixture
def watch(gate):
    """(a watch of a thread that starts four games, each of whose resets waits at the gate; its sentences)"""

    class Slow(HighCard):
        def reset(self, seed):
            gate.wait()
            super().reset(seed)

    source = TurnGameSource(Slow, {}, envs=4, seed=0, opponents=OpponentsConfig())
    thread = threading.Thread(target=source.start)
    thread.start()
    said: list[str] = []
    yield GameWatch(thread.ident, said.append), said
    gate.pass_on.release(4)
    thread.join(PATIENCE_SEC)
    source.close()


def line_of_gate() -> str:
    code = Gate.wait.__code__
    return f"test_game_watch.py:{code.co_firstlineno + 2}"


def test_a_reset_that_does_not_return_is_named_with_file_and_line_and_again_when_the_time_has_doubled(watch, gate):
    watch, said = watch
    now = round(time.monotonic()) + 100.0  # whole seconds, whose differences are exact
    assert gate.reached.acquire(timeout=PATIENCE_SEC)
    for second in range(32):
        watch.look(now + second)
        assert len(said) == (second >= LIMIT_SEC) + (second >= 2 * LIMIT_SEC)
    assert "the game has not returned from" in said[0]
    assert "Slow.reset for 15 s: " in said[0]
    assert said[0].endswith(line_of_gate())
    gate.pass_on.release()
    assert gate.reached.acquire(timeout=PATIENCE_SEC)  # the next reset
    watch.look(now + 40)
    assert "the game goes on: " in said[-1]
    assert said[-1].endswith("Slow.reset returned after 40 s")


def test_resets_that_return_are_not_named_however_long_all_of_them_take(watch, gate):
    watch, said = watch
    now = time.monotonic() + 100
    for number in range(4):
        assert gate.reached.acquire(timeout=PATIENCE_SEC)
        watch.look(now + 10 * number)
        gate.pass_on.release()
    assert said == []


def test_nothing_is_looked_at_while_the_loop_turns(watch, gate):
    watch, said = watch
    assert gate.reached.acquire(timeout=PATIENCE_SEC)
    for _ in range(3):
        watch.beat()
        watch.look(time.monotonic())
    assert watch._call is None
    assert said == []


def test_the_wait_of_code_that_is_not_the_games_is_not_named():
    thread = threading.Thread(target=(over := threading.Event()).wait)
    thread.start()
    said: list[str] = []
    watch, now = GameWatch(thread.ident, said.append), time.monotonic() + 100
    for second in range(20):
        watch.look(now + second)
    over.set()
    thread.join()
    assert said == []
