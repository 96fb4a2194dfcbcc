"""kill -9 of a Showdown server under a real run over WebSocket: its battles are aborted, the books balance."""

from __future__ import annotations

import os
import signal

import psutil
import pytest

from simul.launch.monitoring.accounting import imbalances
from tests.chaos.test_kills import SMALL
from tests.support.command import Simul
from tests.support.waiting import PATIENCE_SEC


@pytest.fixture
def run(tmp_path):
    simul = Simul(
        "configs/pokemon.yaml", tmp_path / "run", *SMALL,
        "--set", "pokemon.transport=websocket", "--set", "pokemon.local_servers=2",
    )  # fmt: skip
    yield simul
    simul.end_now()


def _servers(simul: Simul) -> list[int]:
    children = psutil.Process(simul.pid("worker")).children()
    return [child.pid for child in children if "pokemon-showdown" in " ".join(child.cmdline())]


@pytest.mark.timeout(600)
@pytest.mark.slow
def test_a_run_survives_the_death_of_a_showdown_server(run: Simul) -> None:
    run.wait_for(lambda _: run.decisions() > 200 and run.versions() >= 1, "the run learns")
    first, second = _servers(run)
    os.kill(first, signal.SIGKILL)
    run.wait_for(lambda status: "battles are aborted" in str(status.get("events")), "an event about the death")
    run.wait_for(lambda _: len(set(_servers(run)) - {first}) == 2, "the server runs again")
    after = run.decisions()
    run.wait_for(lambda _: run.decisions() > after + 100, "decisions go on")
    assert second in _servers(run), "the other one was left alone"
    children = psutil.Process(run.process.pid).children(recursive=True)
    code, output = run.finish()
    assert code == 0, output
    assert not psutil.wait_procs(children, PATIENCE_SEC)[1]
    summary = run.summary()
    assert 1 <= summary["battles"]["aborted_by_cause"]["simulator_connection_lost"] <= 8
    assert summary["battles"]["finished"] >= 1
    assert imbalances(summary) == []
