"""`simul.train`, `simul.evaluate` and `simul.serve` with real processes."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

import simul
from simul.common.role.temporary import remove_leftovers
from simul.inference_server.base.statistics import STAGES
from simul.launch import cli
from simul.launch.processes import child_command
from tests.support.stand_ins import PROGRAM, STAND_IN
from tests.support.waiting import PATIENCE_SEC, wait_for

START_SEC = 250.0  # three processes, one after the other
SMALL = {
    "game": "gymnasium", "gymnasium": {"id": "tests.support.sleeping:Sleeping"}, "workers": {"envs": 8},
    "network": {"name": "mlp_lstm"}, "learner": {"batch_steps": 256, "minibatches": 1, "epochs": 1},
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> simul.Run:
    """A run that has ended; while it went on its worker had no torch."""
    root = tmp_path_factory.mktemp("api") / "run"
    with simul.train(SMALL, run_dir=root, progress=False, workers={"count": 1}) as one:
        wait_for(lambda: one.status().get("phase") == "training" and one.status()["decisions_per_sec"], START_SEC)
        (worker,) = _processes(one, "simul.env_worker")
        loaded = {Path(file.path).name.partition(".")[0] for file in worker.memory_maps()}
        assert "libtorch_cpu" not in loaded
        assert "libllvmlite" not in loaded
        (server,) = _processes(one, "simul.inference_server")
        assert "libtorch_cpu" in {Path(file.path).name.partition(".")[0] for file in server.memory_maps()}
        assert cli.main(["profile", "--run-dir", str(root), "--seconds", "1"]) == 0
        summary = one.stop()
        assert summary["decisions"] > 0
    assert not one.running
    return one


def _processes(run: simul.Run, module: str) -> list[psutil.Process]:
    children = psutil.Process(run._command._process.pid).children(recursive=True)
    return [child for child in children if module in child.cmdline()]


def test_the_stages_of_each_role_add_up_to_its_wall_clock(run: simul.Run) -> None:
    figures = json.loads((run.run_dir / "profile.json").read_text())
    assert {each["role"] for each in figures["processes"]} == {"env_worker", "inference_server", "learner"}
    for each in figures["processes"]:
        assert 0.95 <= each["covered"] <= 1.05, each
        assert each["wall_sec"] >= 0.5, "of the second between two reports"
    roles, working = figures["roles"], ("step", "encode", "submit", "receive")
    assert all(roles["env_worker"]["share"][stage] > 0 for stage in working)
    assert all(roles["inference_server"]["share"][stage] > 0 for stage in STAGES)
    assert all(roles["learner"]["share"][stage] > 0 for stage in ("batch", "update", "publish"))
    assert figures["sentence"].endswith(("now).", "end those first.", "helps."))


def test_what_a_command_refuses_is_the_commands_own_sentence(tmp_path: Path) -> None:
    with pytest.raises(simul.errors.ConfigError, match="no-such"):
        simul.evaluate(tmp_path / "no-such", progress=False)
    with pytest.raises(simul.errors.ConfigError, match="no-such"):
        simul.serve(tmp_path / "no-such", progress=False)
    with pytest.raises(
        simul.errors.ConfigError, match=r"^1 problem in the arguments:\n  learner.clpi=1: .*learner.clip"
    ):
        simul.train("cartpole", run_dir=tmp_path / "run", learner={"clpi": 1})


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A shell's background process ignores Ctrl-C."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


@pytest.fixture
def python_of_stand_ins(tmp_path: Path) -> str:
    """Started in place of Python: a `simul` whose roles are stand-ins. Real ones end in the run of this module."""
    command = shlex.join([sys.executable, "-c", PROGRAM, str(STAND_IN)])
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\nshift 3 # -P -m simul.launch.cli\nexec {command} "$@"\n')
    program.chmod(0o755)
    return str(program)


def test_a_checkpoint_of_a_run_is_served_until_the_block_ends(
    run: simul.Run, python_of_stand_ins: str, tmp_path: Path, monkeypatch
) -> None:
    """Clients of a server that `simul serve` has started: test_serve.py."""
    monkeypatch.setattr(child_command, "sys", SimpleNamespace(executable=python_of_stand_ins))
    endpoint = f"ipc://{tmp_path}/serve.ipc"
    with simul.serve(run.run_dir, endpoint=endpoint, progress=False) as server:
        assert server.endpoint == endpoint
        assert server.running
    assert not server.running


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_while_waiting_ends_the_run_cleanly(
    python_of_stand_ins: str, tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.setattr(child_command, "sys", SimpleNamespace(executable=python_of_stand_ins))
    run = simul.train(SMALL, run_dir=tmp_path / "run")
    threading.Thread(target=_interrupt_when_it_trains, args=[run]).start()
    assert run.wait()["decisions"] > 0
    assert "stopping" in capsys.readouterr().out


OWNER = """
import time, types, simul
from simul.launch.processes import child_command
child_command.sys = types.SimpleNamespace(executable={python!r})
run = simul.train({config!r}, run_dir={root!r}, progress=False)
while run.status().get("phase") != "training":
    time.sleep(0.1)
print(run._command._process.pid, flush=True)
time.sleep(1000)
"""


def test_a_run_ends_with_a_process_that_is_killed(python_of_stand_ins: str, tmp_path: Path) -> None:
    root = tmp_path / "run"
    code = OWNER.format(python=python_of_stand_ins, config=SMALL, root=str(root))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as owner:
        supervisor = psutil.Process(int(owner.stdout.readline()))
        line = supervisor.cmdline()
        owner.kill()
    supervisor.wait(PATIENCE_SEC)
    remove_leftovers("simul-config-", Path(tempfile.gettempdir()), time.time())  # as the next command does
    assert not Path(line[line.index("up") + 1]).parent.exists()
    assert json.loads((root / "summary.json").read_text())["decisions"] > 0


def test_a_run_stops_while_it_starts_and_tells_no_older_runs_figures(run: simul.Run, tmp_path: Path) -> None:
    hanging = {"game": "tests.support.hanging:Hanging", "game_options": {"pid_file": str(tmp_path / "pid")}}
    started = simul.train(hanging, run_dir=run.run_dir, progress=False)
    assert started.status() == {}
    assert started.stop() == {}


def _interrupt_when_it_trains(run: simul.Run) -> None:
    while run.running and run.status().get("phase") != "training":
        time.sleep(0.1)
    if run.running:
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
