"""Games with several seats through all processes: they train, survive a killed worker, and are evaluated."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from simul.common.runtime.installation import ROOT
from simul.launch.monitoring.accounting import imbalances
from tests.support.command import Simul

pytest.importorskip("pyspiel", reason="the extra [openspiel] is not installed")

SMALL = (
    "--set", "learner.batch_steps=256", "--set", "learner.minibatches=1", "--set", "learner.epochs=1",
    "--set", "learner.checkpoint_every_sec=1", "--set", "workers.envs=16", "--set", "server.client_timeout_sec=100",
)  # fmt: skip


@pytest.fixture
def start(tmp_path):
    """A run of configs/openspiel.yaml, with further arguments."""
    started: list[Simul] = []

    def start(*arguments: str) -> Simul:
        started.append(Simul("configs/openspiel.yaml", tmp_path / "run", *SMALL, *arguments))
        return started[-1]

    yield start
    for simul in started:
        simul.end_now()


def evaluated(simul: Simul, *arguments: str) -> dict:
    line = [sys.executable, "-m", "simul.launch.cli", "eval", "--checkpoint", str(simul.run_dir.root), "--json"]
    done = subprocess.run([*line, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=350)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow  # tests/chaos/test_kills.py kills workers, and test_search.py trains through all processes
@pytest.mark.timeout(900)
def test_a_game_of_two_trains_survives_a_killed_worker_and_its_books_balance(start):
    simul = start()
    simul.wait_for(lambda _: simul.versions() >= 2, "the run learns", 500)
    before = simul.decisions()
    os.kill(simul.pid("worker"), signal.SIGKILL)
    simul.wait_for(lambda s: any("worker 0 died" in str(e) for e in s.get("events", ())), "its death is said")
    simul.wait_for(lambda _: simul.decisions() > before + 500, "decisions go on")
    code, output = simul.finish()
    assert code == 0, output
    summary = simul.summary()
    assert imbalances(summary) == []
    assert summary["rows_errored"] == {}
    assert set(summary["results"]) == {"self_play", "random"}
    assert summary["battles"]["aborted_by_cause"]["worker_died"] == 16


@pytest.mark.slow  # test_search.py trains, test_eval_tables.py evaluates; unit tests have three seats and chance
@pytest.mark.timeout(900)
def test_a_game_of_three_with_chance_trains_and_is_evaluated_from_every_seat(start):
    simul = start(
        "--set", "openspiel.name=leduc_poker", "--set", "openspiel.parameters.players=3",
        "--stop-after-decisions", "3000",
    )  # fmt: skip
    simul.process.wait(timeout=500)
    code, output = simul.result()
    assert code == 0, output
    summary = simul.summary()
    assert imbalances(summary) == []
    assert summary["policy_version"] >= 2
    result = evaluated(simul, "--opponent", "random", "--games", "31", "--workers", "2")
    (pair,) = result["pairs"]
    assert result["episodes"] == sum(pair[f"as_p{seat}"][name] for seat in (1, 2, 3)
                                     for name in ("wins", "losses", "ties", "truncated")) == 31  # fmt: skip
    assert pair["groups"]["complete"] == 10
    standings = pair["standings"]
    assert standings["first"]["mean_score"] == pytest.approx(-2 * standings["second"]["mean_score"])
    assert standings["first"]["groups"] == 10
    low, high = standings["first"]["score_95"]
    assert low < standings["first"]["mean_score"] < high
