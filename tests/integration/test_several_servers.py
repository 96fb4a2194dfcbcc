"""Runs with two inference servers."""

from __future__ import annotations

import os
import re
import signal
from collections import Counter

import psutil
import pytest

from simul.launch.monitoring.accounting import imbalances
from tests.support.command import Command
from tests.support.stand_ins import PROGRAM

TWO = ("--set", "cluster.servers.count=2", "--set", "workers.count=4")


def _servers_of_workers(run: Command) -> dict[str, int]:
    """By the worker's name: the index of the server that it was given."""
    found = {}
    for process in run.status()["processes"]:
        if process["name"].startswith("simul-worker-"):
            line = psutil.Process(process["pid"]).cmdline()
            found[process["name"]] = int(line[line.index("--server") + 1])
    return found


@pytest.mark.slow  # .ci/long runs it
def test_two_servers_start_each_worker_has_one_and_a_dead_one_is_restarted_in_its_place(up) -> None:
    run = up(*TWO)
    run.wait_until_training()
    bound = _servers_of_workers(run)
    assert Counter(bound.values()) == {0: 2, 1: 2}
    assert run.wait_for(lambda status: status["servers"]).keys() == {"simul-inference-0", "simul-inference-1"}
    status = run.status()
    assert status["server"]["policy_version"] == status["server"]["policy_version_max"] == 1
    assert status["server"]["latency_us"] == {"p50": 800.0, "p99": 2000.0}, "not summed"
    os.kill(run.process_of("simul-inference-1")["pid"], signal.SIGKILL)
    run.wait_for(
        lambda _: (server := run.process_of("simul-inference-1"))["restarts"] == 1 and server["state"] == "ready"
    )
    assert any("the inference server 1 died (signal 9), restarting" in event for event in run.status()["events"])
    assert _servers_of_workers(run) == bound
    code, output = run.finish()
    assert code == 0, output
    assert imbalances(run.summary()) == []
    assert run.summary()["restarts"]["simul-inference-1"] == 1
    assert (run.run_dir.logs / "simul-inference-1.log").exists()


@pytest.mark.slow  # .ci/long runs it; when workers move, tests/unit/launch/supervisor/test_worker_binding.py says
def test_workers_of_a_server_that_hangs_for_long_start_again_on_the_other(up) -> None:
    soon = "from simul.launch.supervisor import worker_binding; worker_binding.LOST_AFTER_SEC = 10.0\n"
    run = up(*TWO, program=soon + PROGRAM)
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


@pytest.mark.slow  # .ci/long runs it
def test_a_server_that_hangs_while_the_run_starts_is_named_and_the_others_start_without_it(up, tmp_path) -> None:
    soon = (
        "from simul.launch.processes import restart_policy; restart_policy.START_ALERT_SEC = 2.0\n"
        "from simul.launch.supervisor import supervisor; supervisor.START_PATIENCE_SEC = 4.0\n"
    )
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "stop-inference_server-1").touch()
    run = up(*TWO, program=soon + PROGRAM)
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
