"""Runs with two inference servers."""

from __future__ import annotations

import os
import re
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from simul.common.client.control import ControlClient
from simul.launch.monitoring.accounting import imbalances
from tests.support import stand_ins
from tests.support.command import Command, Simul

TWO = ("--set", "cluster.servers.count=2", "--set", "workers.count=4")


def _servers_of_workers(run: Command) -> dict[str, int]:
    """By the worker's name: the index of the server that it was given."""
    found = {}
    for process in run.status()["processes"]:
        if process["name"].startswith("simul-worker-"):
            line = psutil.Process(process["pid"]).cmdline()
            found[process["name"]] = int(line[line.index("--server") + 1])
    return found


def _kill(run: Command, name: str) -> None:
    """Kill a process and wait until its next life is ready."""
    os.kill(run.process_of(name)["pid"], signal.SIGKILL)
    run.wait_for(
        lambda status: any(
            p["name"] == name and p["restarts"] == 1 and p["state"] == "ready" for p in status["processes"]
        ),
        f"{name} is ready again",
    )


def test_two_servers_start_each_worker_has_one_and_a_dead_one_is_restarted_in_its_place(tmp_path) -> None:
    run = stand_ins.Simul(tmp_path / "run", "up", "configs/cartpole.yaml", "--run-dir", str(tmp_path / "run"),
                          "--plain", *TWO)  # fmt: skip
    try:
        run.wait_until_training()
        bound = _servers_of_workers(run)
        assert Counter(bound.values()) == {0: 2, 1: 2}
        assert run.wait_for(lambda status: status["servers"]).keys() == {"simul-inference-0", "simul-inference-1"}
        status = run.status()
        assert status["server"]["policy_version"] == status["server"]["policy_version_max"] == 1
        assert status["server"]["latency_us"] == {"p50": 800.0, "p99": 2000.0}, "not summed"
        _kill(run, "simul-inference-1")
        assert any("the inference server 1 died (signal 9), restarting" in event for event in run.status()["events"])
        assert _servers_of_workers(run) == bound
        code, output = run.finish()
        assert code == 0, output
        assert imbalances(run.summary()) == []
        assert run.summary()["restarts"]["simul-inference-1"] == 1
        assert (run.run_dir.logs / "simul-inference-1.log").exists()
    finally:
        run.end_now()


def test_workers_of_a_server_that_hangs_for_long_start_again_on_the_other(tmp_path) -> None:
    soon = "from simul.launch.supervisor import worker_binding; worker_binding.LOST_AFTER_SEC = 10.0"
    root = tmp_path / "run"
    line = ("up", "configs/cartpole.yaml", "--run-dir", str(root), "--plain", *TWO)
    run = stand_ins.Simul(root, *line, program=f"{soon}\n{stand_ins.PROGRAM}")
    try:
        run.wait_until_training()
        bound = _servers_of_workers(run)
        before = {name: run.process_of(name)["pid"] for name in bound}
        pid = run.process_of("simul-inference-1")["pid"]
        os.kill(pid, signal.SIGSTOP)
        run.wait_for(
            lambda status: sum(p["restarts"] and p["state"] == "ready" for p in status["processes"]) == 2, "two moved"
        )
        os.kill(pid, signal.SIGCONT)
        assert set(_servers_of_workers(run).values()) == {0}
        stayed = {name for name, old in before.items() if run.process_of(name)["pid"] == old}
        assert stayed == {name for name, server in bound.items() if server == 0}
        code, output = run.finish()
        assert code == 0, output
        assert output.count("moves to inference server 0") == 2
        assert "died" not in output
        assert imbalances(run.summary()) == []
    finally:
        run.end_now()


def test_a_server_that_hangs_while_the_run_starts_is_named_and_the_others_start_without_it(tmp_path) -> None:
    soon = (
        "from simul.launch.processes import process_group; process_group.START_ALERT_SEC = 2.0\n"
        "from simul.launch.supervisor import supervisor; supervisor.START_PATIENCE_SEC = 4.0"
    )
    root = tmp_path / "run"
    root.mkdir()
    (root / "stop-inference_server-1").touch()
    line = ("up", "configs/cartpole.yaml", "--run-dir", str(root), "--plain", *TWO)
    run = stand_ins.Simul(root, *line, program=f"{soon}\n{stand_ins.PROGRAM}")
    try:
        run.wait_until_training()
        assert set(_servers_of_workers(run).values()) == {0}
        assert run.process_of("simul-inference-1")["state"] == "starting"
        os.kill(run.process_of("simul-inference-1")["pid"], signal.SIGCONT)
        run.wait_for(lambda status: sum(p["restarts"] and p["state"] == "ready" for p in status["processes"]) == 2)
        assert Counter(_servers_of_workers(run).values()) == {0: 2, 1: 2}
        code, output = run.finish()
        assert code == 0, output
        assert re.search(r"the inference server 1 (is|are) not ready after \d+ s: slow to start, or hung", output)
        assert "the inference server 1 is not ready: the run starts without, and goes on waiting" in output
        assert output.count("moves to inference server 1: it is ready now") == 2
        assert "died" not in output
        assert imbalances(run.summary()) == []
    finally:
        run.end_now()


@pytest.fixture
def cartpole(tmp_path: Path) -> Iterator[Simul]:
    simul = Simul(
        "configs/cartpole.yaml", tmp_path / "run", *TWO, "--set", "workers.envs=4", "--set", "learner.batch_steps=256",
        "--set", "learner.epochs=1",
    )  # fmt: skip
    yield simul
    simul.end_now()


def _decisions(status: dict[str, Any], server: int) -> float:
    return float(status.get("servers", {}).get(f"simul-inference-{server}", {}).get("decisions", 0))


@pytest.mark.slow  # five processes import torch or play: 20 s of processor time
@pytest.mark.timeout(900)
def test_cartpole_goes_on_over_the_death_of_one_of_two_servers_and_its_books_balance(cartpole) -> None:
    run = cartpole
    run.wait_for(lambda s: min(_decisions(s, 0), _decisions(s, 1)) > 100, "both servers answer")
    run.wait_for(lambda s: s["server"].get("policy_version", -1) >= 2, "both serve what was learned")
    for server in (0, 1):
        with ControlClient(run.run_dir, server=server) as control:
            assert [policy.name for policy in control.policies().policies] == ["learner"]
    other, killed = _decisions(run.status(), 0), _decisions(run.status(), 1)
    version = run.versions()
    _kill(run, "simul-inference-1")
    run.wait_for(lambda s: _decisions(s, 1) > killed + 100, "its workers are served again")
    run.wait_for(lambda s: _decisions(s, 0) > other + 100, "the other went on")
    run.wait_for(lambda s: s["server"].get("policy_version", -1) > version + 1, "both have newer weights")
    code, output = run.finish()
    assert code == 0, output
    summary = run.summary()
    assert imbalances(summary) == []
    assert summary["battles"]["aborted_by_cause"]["server_lost"] >= 1
    assert summary["restarts"] == {name: int(name == "simul-inference-1") for name in summary["restarts"]}, (
        "nothing else died"
    )
