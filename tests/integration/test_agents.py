"""Runs whose roles are started by agents, each with a run directory and an address of its own."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from simul.common.role.run_directory import RunDir
from simul.common.role.temporary import KEPT
from simul.launch.monitoring.accounting import imbalances
from tests.support.machines import AgentRun
from tests.support.stand_ins import STAND_IN

OFTEN = ("learner.batch_steps=512", "learner.checkpoint_every_sec=2")
FIGURES = (("learner", "policy_version"), ("server", "decisions"))
RANKS = ("simul-learner-0", "simul-learner-1")
HOSTS = ("127.0.0.2", "127.0.0.3", "127.0.0.4")


def _kill_machine_of(run: AgentRun, name: str) -> str:
    """As a loss of power: agent, processes and files are gone at once. Returns the address."""
    address = run.named(name)["node"]
    pid = run.named(name)["pid"]
    agent = next(agent for agent in run.agents() if pid in {child.pid for child in agent.children()})
    root = _run_dir_of(psutil.Process(pid))
    for process in (*agent.children(recursive=True), agent):
        process.kill()
    RunDir(root).remove()
    return address


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., AgentRun]]:
    """A function that starts a run on HOSTS with these settings."""
    started = []

    def begin(*settings: str, stand_in: str = "") -> AgentRun:
        line = [argument for setting in settings for argument in ("--set", setting)]
        started.append(
            AgentRun(tmp_path / "run", *line, machines=dict.fromkeys(HOSTS, ()), store=(tmp_path / "store").as_uri(),
                     stand_in=stand_in)
        )  # fmt: skip
        return started[-1]

    yield begin
    for one in started:
        one.end_now()


@pytest.fixture
def run(start: Callable[..., AgentRun]) -> AgentRun:
    return start(stand_in=str(STAND_IN))


def _finish_well(run: AgentRun) -> None:
    code, output = run.finish()
    assert code == 0, output
    assert imbalances(run.summary()) == []


def test_roles_on_other_machines_report_log_die_move_and_stop_as_on_one(run) -> None:
    status = run.wait_for(lambda s: s.get("phase") == "training" and s["server"].get("decisions") and s)
    nodes = {p["name"]: p["node"] for p in status["processes"]}
    assert nodes == {"simul-learner-0": HOSTS[0], "simul-inference-0": HOSTS[1], "simul-worker-0": HOSTS[2]}
    run.wait_for(lambda s: all(p["rss_mb"] > 1 and p["pid"] for p in s["processes"]), "the agents measure")
    roots = [_run_dir_of(p) for p in _roles(run)]
    assert len({*roots, run.run_dir.root}) == 4, "each machine has a run directory of its own"
    secrets = {p.name for root in roots for p in (root / "keys").glob("*.key_secret")}
    assert secrets == {"learner.key_secret", "server.key_secret", "client.key_secret"}, "not the supervisor's"

    psutil.Process(run.named("simul-worker-0")["pid"]).send_signal(signal.SIGKILL)
    _wait_for_restart(run, 1)
    assert any(f"worker 0 on {HOSTS[2]} died (signal 9), restarting" in event for event in run.status()["events"])
    assert run.named("simul-worker-0")["node"] == HOSTS[2], "by the same agent"

    assert _kill_machine_of(run, "simul-worker-0") == HOSTS[2]
    _wait_for_restart(run, 2)
    assert any(f"{HOSTS[2]} (worker 0) is lost: its agent has ended" in event for event in run.status()["events"])
    assert run.named("simul-worker-0")["node"] == HOSTS[0]

    _finish_well(run)
    assert not any(root.exists() for root in roots[:2])
    assert not run.run_dir.keys.exists()


def _wait_for_restart(run: AgentRun, number: int) -> None:
    run.wait_for(
        lambda s: (p := run.named("simul-worker-0"))["restarts"] == number and p["state"] == "ready" and p["pid"],
        f"the worker is ready after restart {number}",
    )


def _check_that_it_moves(run: AgentRun, name: str) -> None:
    version, restarts = run.status()["learner"]["policy_version"], run.named(name)["restarts"]
    address = _kill_machine_of(run, name)
    run.wait_for(lambda s: run.named(name)["restarts"] == restarts + 1, f"{name} starts again")
    run.wait_for(
        lambda s: run.named(name)["state"] == "ready" and s["learner"]["policy_version"] > version + 1,
        "it learns on", timeout_sec=600.0,
    )  # fmt: skip
    assert run.named(name)["node"] != address


@pytest.mark.slow  # eight lives of processes that import torch
@pytest.mark.timeout(1800)
def test_a_lost_server_and_the_ranks_of_a_lost_learner_start_on_other_machines_and_training_goes_on(start) -> None:
    run = start(*OFTEN, "cluster.learner.ranks=2")

    def learned(status: dict[str, Any]) -> list[int]:
        return [status.get("ranks", {}).get(rank, {}).get("decisions_learned_since_start", 0) for rank in RANKS]

    def wait_until_both_learn(timeout_sec: float) -> None:
        """More than before: the figures of a rank go on counting in its next life."""
        before = learned(run.status())
        run.wait_for(
            lambda s: all(now > then + 500 for now, then in zip(learned(s), before)), "both ranks learn", timeout_sec
        )

    wait_until_both_learn(900.0)
    assert {run.named(rank)["node"] for rank in RANKS} == {HOSTS[0]}
    psutil.Process(run.named(RANKS[1])["pid"]).send_signal(signal.SIGKILL)
    run.wait_for(
        lambda s: all((p := run.named(rank))["restarts"] == 1 and p["state"] == "ready" for rank in RANKS),
        "both start again", timeout_sec=600.0,
    )  # fmt: skip
    assert {run.named(rank)["node"] for rank in RANKS} == {HOSTS[0]}, "by the same agent"
    wait_until_both_learn(600.0)
    for name in (RANKS[0], "simul-inference-0"):
        _check_that_it_moves(run, name)
        wait_until_both_learn(600.0)
    assert {run.named(rank)["node"] for rank in RANKS} == {HOSTS[1]}
    assert any("Resumed from checkpoint" in event for event in run.status()["events"])
    assert any(f"rank 1 of the learner on {HOSTS[0]} died (signal 9)" in event for event in run.status()["events"])
    _finish_well(run)


@pytest.mark.slow  # four lives of processes that import torch
@pytest.mark.timeout(1800)
def test_an_agent_that_was_taken_for_lost_ends_its_processes_when_it_runs_again(start) -> None:
    """A machine that hangs: for a while the old and the new life of a process are there together."""
    run = start(*OFTEN, "cluster.placement.lost_after_sec=5")
    run.wait_for(lambda s: s.get("learner", {}).get("policy_version", 0) >= 2, "it learns", timeout_sec=900.0)
    agents = run.agents()
    for name in ("simul-worker-0", "simul-learner-0"):
        old = psutil.Process(run.named(name)["pid"])
        agent = next(agent for agent in agents if agent.is_running() and old in agent.children())
        agent.suspend()
        run.wait_for(
            lambda s, name=name: (p := run.named(name))["restarts"] == 1 and p["state"] == "ready",
            f"{name} is ready elsewhere", timeout_sec=600.0,
        )  # fmt: skip
        assert old.is_running()
        agent.resume()
        psutil.wait_procs([old, agent], timeout=60)
        assert not old.is_running()
        assert not agent.is_running() or agent.status() == psutil.STATUS_ZOMBIE, "its parent is the supervisor"
        version, decisions = (run.status()[role][figure] for role, figure in FIGURES)
        run.wait_for(
            lambda s, version=version, decisions=decisions: (
                s["learner"]["policy_version"] > version + 1 and s["server"]["decisions"] > decisions + 500
            ),
            "it learns on", timeout_sec=600.0,
        )  # fmt: skip
    assert sum("is lost: no sign of life for 5 s" in event for event in run.status()["events"]) == 2
    _finish_well(run)


@pytest.mark.slow  # .ci/long runs it
def test_where_the_supervisor_is_killed_the_roles_save_and_the_agents_end(run) -> None:
    run.wait_for(lambda s: s.get("phase") == "training" and s["server"].get("decisions"))
    agents, roles = run.agents(), _roles(run)
    assert len(agents) == 3
    roots = {p.cmdline()[2]: _run_dir_of(p) for p in roles}
    run.process.kill()
    _, alive = psutil.wait_procs([*agents, *roles], timeout=20)
    assert not alive
    kept = roots["learner"].with_name(f"{KEPT}{roots['learner'].name}")
    assert (kept / "checkpoints" / "version").read_text() == "7", "the learner has saved"
    RunDir(kept).remove()
    assert not any(root.exists() for root in roots.values())


def _roles(run: AgentRun) -> list[psutil.Process]:
    run.wait_for(lambda s: all(p["pid"] for p in s["processes"]), "the agents have said which processes they are")
    return [psutil.Process(p["pid"]) for p in run.status()["processes"]]


def _run_dir_of(role: psutil.Process) -> Path:
    line = role.cmdline()
    return Path(line[line.index("--run-dir") + 1])
