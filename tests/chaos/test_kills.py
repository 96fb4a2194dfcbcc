"""kill -9 of every role of a real Pokémon run: the run goes on, says what happened, and its books balance."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time

import psutil
import pytest

from simul.launch.monitoring.accounting import imbalances
from tests.support.command import Simul
from tests.support.waiting import PATIENCE_SEC

RECOVERY_SEC = 10.0
ROLES = ("worker", "inference", "learner")
SMALL = (
    "--set", "workers.count=1", "--set", "workers.envs=8", "--set", "learner.batch_steps=256",
    "--set", "network.options={entity: 8, hidden: 16}",
    "--set", "learner.minibatches=1",
    "--set", "learner.checkpoint_every_sec=2", "--set", "opponents.self_play=1", "--set", "opponents.past=0",
    "--set", "opponents.random=0", "--set", "opponents.max_base_power=0", "--set", "opponents.simple_heuristics=0",
)  # fmt: skip


@pytest.fixture
def run(tmp_path):
    simul = Simul("configs/pokemon.yaml", tmp_path / "run", *SMALL)
    yield simul
    simul.end_now()


@pytest.fixture
def cartpole(tmp_path):
    """A run of CartPole that learns, with further arguments."""
    started: list[Simul] = []

    def start(*arguments: str) -> Simul:
        simul = Simul("configs/cartpole.yaml", tmp_path / "run", *arguments)
        started.append(simul)
        simul.wait_for(lambda _: simul.decisions() > 500 and simul.versions() >= 1, "the run learns")
        return simul

    yield start
    for simul in started:
        simul.end_now()


def _is_learning(simul: Simul, than: tuple[int, int]):
    """Decisions and versions both went on from `than`."""
    return lambda _: simul.decisions() > than[0] + 50 and simul.versions() > than[1]


def _kill(simul: Simul, pid: int, saying: str) -> float:
    """Kill a process; seconds until decisions are answered again. The view must say what happened."""
    before = simul.decisions()
    os.kill(pid, signal.SIGKILL)
    begin = time.monotonic()
    simul.wait_for(lambda status: any(saying in str(e) for e in status.get("events", ())), f"an event with {saying!r}")
    simul.wait_for(lambda status: _all_ready(status, pid), "every process is ready, in its new life")
    after = max(before, simul.decisions())
    simul.wait_for(lambda _: simul.decisions() > after + 20, "decisions go on")
    return time.monotonic() - begin


def _host_pid(simul: Simul) -> int:
    """The simulator host of worker 0, once its life has one."""

    def find(_: object) -> int:
        try:
            children = psutil.Process(simul.pid("worker")).children()
            return next((child.pid for child in children if "host.mjs" in " ".join(child.cmdline())), 0)
        except psutil.NoSuchProcess:
            return 0

    return int(simul.wait_for(find, "a simulator host"))


@pytest.mark.slow  # .ci/long runs it; how the supervisor restarts, tests/integration/test_supervisor.py sees
@pytest.mark.timeout(900)
def test_a_run_survives_the_death_of_every_role(run: Simul) -> None:
    begin = time.monotonic()
    run.wait_for(lambda _: run.decisions() > 200 and run.versions() >= 2, "the run learns")
    start_sec = time.monotonic() - begin
    took = {
        "worker": _kill(run, run.pid("worker"), "worker 0 died"),
        "host": _kill(run, _host_pid(run), "simulator host"),
        "learner": _kill(run, run.pid("learner"), "learner died"),
    }
    run.wait_for(lambda status: status["learner"].get("checkpoint_version", -1) >= 1, "a checkpoint")
    took["server"] = _kill(run, run.pid("inference"), "inference server died")
    run.wait_for(_is_learning(run, (run.decisions(), run.versions())), "learning goes on")
    assert max(took.values()) < max(RECOVERY_SEC, 2 * start_sec), took  # a slow machine starts as slowly
    children = psutil.Process(run.process.pid).children(recursive=True)
    code, output = run.finish()
    assert code == 0, output
    assert not psutil.wait_procs(children, PATIENCE_SEC)[1]
    summary = run.summary()
    assert summary["battles"]["aborted_by_cause"]["host_died"] >= 1
    assert summary["battles"]["aborted_by_cause"]["server_lost"] >= 1
    assert imbalances(summary) == []
    assert summary["steps"]["dropped"]["server_died"] >= 1


@pytest.mark.slow  # .ci/long runs it
@pytest.mark.timeout(600)
@pytest.mark.skipif(sys.platform == "win32", reason="sockets are no files there, and signals end a process at once")
def test_a_run_whose_socket_files_were_removed_finds_together_and_is_stopped_by_a_service_manager(cartpole) -> None:
    """Cleaners of temporary files may remove sockets; each restarted role must connect to the others again.

    systemd sends SIGTERM to the whole control group; the supervisor then stops the roles in its order.
    """
    simul = cartpole("--set", "learner.batch_steps=256", "--set", "learner.checkpoint_every_sec=600")
    shutil.rmtree(simul.run_dir.sockets, ignore_errors=True)  # some may be made again meanwhile
    for role in ROLES:
        pid = simul.pid(role)
        os.kill(pid, signal.SIGKILL)
        simul.wait_for(lambda status, dead=pid: _all_ready(status, dead), f"{role} comes back")
        than = (simul.decisions(), simul.versions())
        simul.wait_for(_is_learning(simul, than), f"decisions and versions go on without the former {role}")
    for pid in (simul.process.pid, *simul.pids()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    output = _ends_well(simul, simul.result())
    newest = max(simul.run_dir.checkpoints.glob("[0-9]" * 9))
    assert int(newest.name) == simul.summary()["policy_version"], "the learner has saved what it learned last"
    for name in ("data", "own", "unrolls", "weights", "status", "control"):
        assert f"{name}.ipc had vanished and was made again" in output


def _ends_well(simul: Simul, result: tuple[int, str]) -> str:
    """What it printed; its books are balanced."""
    code, output = result
    assert code == 0, output
    assert imbalances(simul.summary()) == []
    return output


def _all_ready(status: dict, dead: int) -> bool:
    return all(p["state"] == "ready" and p["pid"] != dead for p in status["processes"])
