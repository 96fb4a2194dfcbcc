"""Runs whose learner has two ranks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from simul.launch.monitoring.accounting import imbalances
from simul.learner.distributed_ranks import TIMEOUT_SEC
from tests.support.command import Simul

TWO = ("--set", "cluster.learner.ranks=2")
RANKS = ("simul-learner-0", "simul-learner-1")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Simul]]:
    started: list[Simul] = []

    def start_run(config: str, *changes: str) -> Simul:
        sets = [part for change in changes for part in ("--set", change)]
        started.append(Simul(f"configs/{config}.yaml", tmp_path / "run", *TWO, *sets))
        return started[-1]

    yield start_run
    for simul in started:
        simul.end_now()


def _learned(status: dict[str, Any], rank: str) -> float:
    return float(status.get("ranks", {}).get(rank, {}).get("decisions_learned_since_start", 0))


@pytest.mark.slow  # an exchange waits for half a minute
@pytest.mark.timeout(1800)
def test_a_rank_that_hangs_is_killed_when_an_exchange_has_waited_for_it_and_both_start_again(start) -> None:
    run = start("cartpole", "learner.batch_steps=256", "learner.epochs=1", "learner.checkpoint_every_sec=1")
    run.wait_for(lambda s: min(_learned(s, rank) for rank in RANKS) > 500, "both ranks learn")
    hung = psutil.Process(run.process_of(RANKS[1])["pid"])
    hung.suspend()
    began = time.monotonic()
    run.wait_for(lambda _: all(run.process_of(rank)["restarts"] == 1 for rank in RANKS), "both start again")
    assert TIMEOUT_SEC - 1.0 < time.monotonic() - began < TIMEOUT_SEC + 60.0
    assert not hung.is_running()
    assert any("Another rank of the learner is gone or silent" in event for event in run.status()["events"])
    version = run.versions()
    run.wait_for(lambda s: s["server"]["policy_version"] > version, "it learns on, and is served")
    code, output = run.finish()
    assert code == 0, output
    assert imbalances(run.summary()) == []
