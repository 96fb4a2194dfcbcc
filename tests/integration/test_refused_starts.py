"""Starts that fail, and what they leave behind."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys

import pytest

from simul.common.runtime.installation import ROOT
from simul.common.transport import PullSocket
from simul.env_worker.games.pokemon.showdown.local_server import free_port
from simul.launch import cli
from simul.launch.processes.process_group import ProcessGroup
from tests.support.command import phase_of

MISSING = "cuda" if sys.platform == "darwin" else "mps"


@pytest.mark.parametrize(
    "wrong", ["a taken endpoint", "a taken port", "one port for both", "a missing device", "no module", "no function"]
)
def test_what_is_taken_or_missing_is_said_before_any_role_starts(wrong, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(ProcessGroup, "start", lambda *_: pytest.fail("a role was started"))
    with socket.create_server(("127.0.0.1", 0)) as server, PullSocket(f"ipc://{tmp_path}/taken") as bound:
        taken, free = server.getsockname()[1], free_port()
        settings, sentence = {
            "a taken endpoint": ([f"server.endpoint={bound.endpoint}"], "`simul serve` by Ctrl-C), or choose"),
            "a taken port": ([f"server.prometheus_port={taken}"], "Choose another server.prometheus_port"),
            "one port for both": (
                [f"server.endpoint=tcp://127.0.0.1:{free}", f"server.prometheus_port={free}"], "Choose another",
            ),
            "no module": (["metrics_callback=no_such:function"], "cannot be imported: ModuleNotFoundError"),
            "no function": (["metrics_callback=math:pi"], "The module 'math' has no function 'pi'"),
            "a missing device": ([f"learner.device={MISSING}"], f"The device {MISSING} is not available here"),
        }[wrong]  # fmt: skip
        line = ["up", "configs/cartpole.yaml", "--run-dir", str(tmp_path / "run"), "--plain"]
        assert cli.main([*line, *(f"--set={setting}" for setting in settings)]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_start_in_the_directory_of_another_game_changes_nothing_in_it(tmp_path, capsys):
    run = shutil.copytree(ROOT / "tests" / "golden" / "run_75cb9e87", tmp_path / "run")
    before = {path: path.is_file() and path.read_bytes() for path in run.rglob("*")}
    assert cli.main(["up", "memory", "--run-dir", str(run), "--plain"]) == 2
    assert "is of another game or encoder" in capsys.readouterr().err
    assert {path: path.is_file() and path.read_bytes() for path in run.rglob("*")} == before


def test_a_network_that_cannot_read_the_deck_is_refused_before_any_process_starts(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("a process was started"))
    line = ["up", "ofc", "--run-dir", str(tmp_path / "run"), "--plain", "--set", "ofc.jokers=2"]
    assert cli.main(line) == 2
    assert capsys.readouterr().err == (
        "simul: ofc.jokers is 2; the network ofc reads a deck without jokers. Set network.name=mlp_lstm and "
        "network.options={hidden: 256, layers: 2, memory: false}.\n"
    )
    assert not (tmp_path / "run").exists()


def test_a_refused_start_quotes_the_role_is_called_failed_and_leaves_the_configuration_of_before(up, tmp_path, capsys):
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.yaml").write_text("game: of before\n")
    (run / "spec.json").write_text("{}")
    (run / "sentence-learner").write_text("The network is another one.")
    code, output = up().result()
    assert (code, "The network is another one." in output, "Traceback" in output) == (2, True, False), output
    assert (run / "config.yaml").read_text() == "game: of before\n"
    assert (run / "spec.json").read_text() == "{}"
    assert cli.main(["status", "--run-dir", str(run)]) == 3
    assert "Simul  failed " in capsys.readouterr().out


def test_a_refused_start_leaves_no_run_directory_though_others_ran_already(up, tmp_path):
    (tmp_path / "sentence-env_worker").write_text("The port 17 is in use; choose another one.")
    run = up()
    code, output = run.result()
    assert (code, run.run_dir.root.exists(), run.run_dir.sockets.exists()) == (2, False, False)
    assert "The port 17 is in use" in output


def test_a_start_that_is_interrupted_is_called_stopped(up, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "unready-learner").touch()
    run = up()
    run.wait_for(lambda status: status.get("phase") == "starting")
    code, output = run.finish(signal.SIGTERM)
    assert (code, phase_of(tmp_path / "run")) == (0, "stopped"), output
    assert "stopping before everything was ready: there is no summary" in output
    assert not run.run_dir.sockets.exists()


def test_a_second_signal_while_it_leaves_does_not_cut_that_short():
    """Between the last line of a run and the end of its process lies all of Python's teardown."""
    code = """
import os, signal
from simul.launch.processes.signals import Signals
signals = Signals()
signals.install()
os.kill(os.getpid(), signal.SIGTERM)
signals.restore()
os.kill(os.getpid(), signal.SIGTERM)
print("left in good order", signals.stop)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stdout) == (0, "left in good order True\n")
