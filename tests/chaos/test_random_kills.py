"""Random signals to random processes of a real run: it plays and learns on, and the books balance."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from tests.support.random_kills import RandomKiller, run
from tests.support.waiting import wait_for


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals there")
def test_only_processes_of_the_run_that_live_get_a_signal() -> None:
    with ExitStack() as opened:

        def process(name: str, age_sec: float = 0.0) -> dict[str, Any]:
            child = opened.enter_context(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))
            opened.callback(child.kill)
            children[name] = child
            created = psutil.Process(child.pid).create_time() - age_sec
            return {"name": name, "pid": child.pid, "create_time": created, "state": "ready"}

        class Dice(random.Random):
            """Draws the first of all. `doomed` ends as it is drawn."""

            def choice(self, seq: Any) -> Any:
                if seq[0][0] == "doomed":
                    children["doomed"].kill()
                    children["doomed"].wait()
                return seq[0]

            def uniform(self, a: float, b: float) -> float:
                return 0.0

            def random(self) -> float:
                return 0.5

        children: dict[str, subprocess.Popen[bytes]] = {}
        listed = [process("of another program", age_sec=60.0), process("ended"), process("doomed"), process("struck")]
        children["ended"].kill()  # and not waited for: the pid is a zombie's
        wait_for(lambda: psutil.Process(listed[1]["pid"]).status() == psutil.STATUS_ZOMBIE)
        run = SimpleNamespace(status=lambda: {"processes": listed}, process=SimpleNamespace(pid=os.getpid()))
        killer = RandomKiller(run, seed=1)  # type: ignore[arg-type]
        killer._rng = Dice()
        killer.strike()
        assert children["struck"].wait(60) < 0
        assert children["of another program"].poll() is None
        assert killer.done == Counter({"struck SIGKILL": 1})


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals there")
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("game", "kills"), [("cartpole", 200), ("two-servers", 60), ("pokemon", 60)])
def test_the_books_of_a_run_under_random_signals_balance(game: str, kills: int, tmp_path) -> None:
    run(game, kills, seed=1, root=tmp_path / "run")


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals there")
@pytest.mark.parametrize(
    ("kills", "learn"),
    [
        pytest.param(6, False, marks=[pytest.mark.slow, pytest.mark.timeout(1200)]),  # .ci/long runs it
        pytest.param(200, True, marks=[pytest.mark.slow, pytest.mark.timeout(7200)]),
    ],
)
def test_two_servers_and_two_ranks_survive_random_signals(kills: int, learn: bool, tmp_path) -> None:
    run("chaos", kills, seed=2, root=tmp_path / "run", learn=learn)
