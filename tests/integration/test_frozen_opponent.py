"""A run against a frozen opponent: it is the same after its server was killed, and after the run was resumed."""

from __future__ import annotations

import os
import shutil
import signal

import pytest

from simul.common.config.loader import load_game
from simul.common.config.trust import NOTHING
from simul.env_worker.games.loading import game_spec
from tests.support.checkpoints import write_checkpoint
from tests.support.command import Simul

pytestmark = pytest.mark.slow


def games(status) -> float:
    results = status.get("workers", {}).get("results", {})
    assert results.keys() <= {"frozen"}, "nothing else plays"
    return sum(results.get("frozen", {}).values())


def test_the_opponent_stays_the_same_when_its_server_dies_and_when_the_run_is_resumed(tmp_path):
    spec = game_spec(load_game("openspiel"), NOTHING)
    victim = write_checkpoint(tmp_path / "victim", spec, 7)
    settings = [
        "--set", f"opponents.checkpoint={victim}", "--set", "workers.envs=8", "--set", "evaluation.every_decisions=0",
    ]  # fmt: skip
    run = Simul("openspiel", tmp_path / "run", *settings)
    try:
        run.wait_for(games)
        os.kill(run.pid("inference"), signal.SIGKILL)
        run.wait_for(lambda status: any("died" in event for event in status["events"]))
        before = games(run.status())
        run.wait_for(lambda status: games(status) > before + 50)
        code, _ = run.finish()
        assert code == 0
    finally:
        run.end_now()
    shutil.rmtree(victim)
    again = Simul("openspiel", tmp_path / "run", *settings)
    try:
        again.wait_for(lambda status: status.get("phase") == "training" and games(status))
        code, said = again.finish()
    finally:
        again.end_now()
    assert code == 0
    assert f"the frozen opponent is version 7 of {victim}, as when the run began with it" in said
