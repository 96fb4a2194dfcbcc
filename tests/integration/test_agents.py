"""Runs whose roles are started by agents, each with a run directory and an address of its own."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from simul.common.launch.monitoring.accounting import imbalances
from tests.support.machines import AgentRun
from tests.support.stand_ins import STAND_IN

HOSTS = ("127.0.0.2", "127.0.0.3", "127.0.0.4")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[AgentRun]:
    started = AgentRun(
        tmp_path / "run", machines=dict.fromkeys(HOSTS, ()), store=(tmp_path / "store").as_uri(), stand_in=str(STAND_IN)
    )
    yield started
    started.end_now()


def test_roles_on_other_machines_report_log_and_stop_as_on_one(run) -> None:
    status = run.wait_for(lambda s: s.get("phase") == "training" and s["server"].get("decisions") and s)
    nodes = {p["name"]: p["node"] for p in status["processes"]}
    assert nodes == {"simul-learner-0": HOSTS[0], "simul-inference-0": HOSTS[1], "simul-worker-0": HOSTS[2]}
    run.wait_for(lambda s: all(p["rss_mb"] > 1 and p["pid"] for p in s["processes"]), "the agents measure")
    roots = [Path(p.cmdline()[p.cmdline().index("--run-dir") + 1]) for p in _roles(run)]
    assert len({*roots, run.run_dir.root}) == 4, "each machine has a run directory of its own"
    secrets = {p.name for root in roots for p in (root / "keys").glob("*.key_secret")}
    assert secrets == {"learner.key_secret", "server.key_secret", "client.key_secret"}, "not the supervisor's"
    code, output = run.finish()
    assert code == 0, output
    assert imbalances(run.summary()) == []
    assert not any(root.exists() for root in roots)
    assert not run.run_dir.keys.exists()


def test_a_process_that_dies_is_started_again_by_its_agent(run) -> None:
    run.wait_for(lambda s: s.get("phase") == "training" and s["server"].get("decisions"))
    psutil.Process(run.named("simul-worker-0")["pid"]).send_signal(signal.SIGKILL)
    run.wait_for(lambda s: any(p["restarts"] == 1 and p["state"] == "ready" for p in s["processes"]), "ready again")
    assert any(f"worker 0 on {HOSTS[2]} died (signal 9), restarting" in event for event in run.status()["events"])
    code, output = run.finish()
    assert code == 0, output


def test_the_processes_of_a_lost_machine_start_on_another_one(run) -> None:
    run.wait_for(lambda s: s.get("phase") == "training" and s["server"].get("decisions"))
    agent = run.agents()[HOSTS[2]]
    for process in (*agent.children(recursive=True), agent):
        process.kill()
    run.wait_for(
        lambda s: run.named("simul-worker-0")["node"] == HOSTS[0] and run.named("simul-worker-0")["state"] == "ready",
        "the worker is ready on the next machine",
    )
    assert any(f"{HOSTS[2]} (worker 0) is lost: its agent has ended" in event for event in run.status()["events"])
    code, output = run.finish()
    assert code == 0, output
    assert imbalances(run.summary()) == []


def test_where_the_supervisor_is_killed_the_roles_save_and_the_agents_end(run) -> None:
    run.wait_for(lambda s: s.get("phase") == "training" and s["server"].get("decisions"))
    agents, roles = run.agents(), _roles(run)
    learner = next(p for p in roles if "learner" in p.cmdline())
    root = Path(learner.cmdline()[learner.cmdline().index("--run-dir") + 1])
    run.process.kill()
    _, alive = psutil.wait_procs([*agents.values(), *roles], timeout=20)
    assert not alive
    assert (root / "checkpoints" / "version").read_text() == "7", "the learner has saved"


def _roles(run: AgentRun) -> list[psutil.Process]:
    return [psutil.Process(p["pid"]) for p in run.status()["processes"]]
