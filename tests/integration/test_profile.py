"""`simul profile` of a run of stand-ins, and of a run of real roles whose game sleeps known times."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from simul.common.runtime.extras import install_extra
from simul.common.runtime.installation import ROOT
from simul.launch import cli
from simul.launch.monitoring.profiling import profiler
from simul.launch.processes.processor_time import ProcessTree

STEP_SEC = 0.005
GAME = f"""
import time
import gymnasium

class Sleeping(gymnasium.Wrapper):
    def __init__(self):
        super().__init__(gymnasium.make("CartPole-v1"))

    def step(self, action):
        time.sleep({STEP_SEC})
        return self.env.step(action)
"""
CONFIG = """
game: gymnasium
run_dir: run
gymnasium: {id: "sleeping_game:Sleeping"}
network: {name: mlp_lstm, options: {hidden: 16}}
workers: {envs: 8}
learner: {batch_steps: 128, minibatches: 1, epochs: 1}
"""


def run_profile(*arguments: str) -> int:
    """The exit code; a refused command line raises SystemExit."""
    return cli.main(["profile", *arguments])


@pytest.mark.slow  # .ci/long runs it
def test_an_active_run_is_profiled_and_the_figures_lie_beside_it_and_one_that_ends_before_is_no_profile(
    up, tmp_path, monkeypatch, capsys
):
    run = up("--set", "workers.count=2")
    run.wait_until_training()
    assert run_profile("--run-dir", str(run.run_dir.root), "--seconds", "1") == 0
    printed = capsys.readouterr().out
    figures = json.loads((run.run_dir.root / "profile.json").read_text())
    assert figures["seconds"] >= 1
    assert figures["config"]["workers"]["count"] == 2
    assert (figures["configuration"], figures["mode"], figures["settings"]) == (None, None, [])
    assert figures["decisions"] > 0
    assert figures["decisions_per_message"] == pytest.approx(5, rel=0.05)
    assert figures["messages_per_batch"] == pytest.approx(2, rel=0.05)
    assert {each["name"]: each["covered"] for each in figures["processes"]} == {
        name: pytest.approx(1.0, abs=0.01)
        for name in ("simul-learner-0", "simul-inference-0", "simul-worker-0", "simul-worker-1")
    }
    assert figures["roles"]["env_worker"]["share"] == pytest.approx({"step": 0.9, "wait": 0.1}, abs=0.01)
    assert figures["processes_running"] == 7, "the supervisor, four roles, and what two of them started"
    assert figures["processes_started"] == 0
    assert 0 < figures["cores_used"] <= figures["cores"]
    assert figures["setting"] in figures["sentence"]
    assert printed.splitlines()[-1] == figures["sentence"]
    assert str(run.run_dir.root / "profile.json") in printed
    out = tmp_path / "own.json"
    assert run_profile("--run-dir", str(run.run_dir.root), "--seconds", "0.1", "--out", str(out), "--json") == 0
    assert json.loads(capsys.readouterr().out) == json.loads(out.read_text())
    (run.run_dir.root / "profile.json").unlink()
    measures = threading.Event()

    class Tree(ProcessTree):
        def sample(self, roles):
            measures.set()
            return super().sample(roles)

    monkeypatch.setattr(profiler, "ProcessTree", Tree)
    with ThreadPoolExecutor(1) as beside:
        exit_code = beside.submit(run_profile, "--run-dir", str(run.run_dir.root), "--seconds", "600")
        assert measures.wait(100)
        assert run.finish()[0] == 0
        assert exit_code.result(100) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"The run in {run.run_dir.root} has ended. Measured were " in printed.err
    assert " of 600 s" in printed.err
    assert not (run.run_dir.root / "profile.json").exists()
    assert run_profile("--run-dir", str(run.run_dir.root)) == 2, "it has ended"
    assert "No run is active" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["no-such.yaml"], "no-such.yaml"),
        (["cartpole", "--set", "workers.cuont=1"], "workers.count"),
        (["--mode", "quick"], "name its CONFIG"),
        (["cartpole", "--run-dir", "runs/x"], "give one of the two"),
        (["cartpole", "--out", "no-such-folder/profile.json"], "no folder"),
        ([], "No run is active below runs/"),
        (["--run-dir", "elsewhere"], "No run is active in"),
    ],
)
def test_what_is_refused_is_refused_with_a_sentence_before_anything_starts(
    arguments, sentence, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert run_profile(*arguments) == 2
    assert sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seconds", ["0", "-3", "nan", "inf", "soon"])
def test_seconds_are_a_number_above_zero(seconds, capsys):
    with pytest.raises(SystemExit) as ended:
        run_profile("--seconds", seconds)
    assert ended.value.code == 2
    assert f"expected a number of seconds > 0, got '{seconds}'" in capsys.readouterr().err


def test_without_py_spy_the_extra_is_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run_profile("cartpole", "--py-spy") == 2
    assert f"Run: {install_extra('profile')}" in capsys.readouterr().err


@pytest.fixture
def profile_of_sleeping(tmp_path):
    """A function that starts `simul profile` of a new run; its temporary files are in the folder that it yields."""
    (tmp_path / "sleeping_game.py").write_text(GAME)
    (tmp_path / "sleeping.yaml").write_text(CONFIG)
    with tempfile.TemporaryDirectory(prefix="p-") as temporary, ExitStack() as started:  # sockets: at most 107 bytes

        def start(*arguments: str) -> subprocess.Popen[str]:
            profile = subprocess.Popen(
                [sys.executable, "-m", "simul.launch.cli", "profile", "sleeping.yaml", *arguments],
                cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": temporary},
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            started.enter_context(profile)
            started.callback(profile.kill)
            return profile

        yield start
        assert not list(Path(temporary).glob("simul-profile*")), "nothing is left behind"


@pytest.mark.slow  # a run of real roles; tests/integration/test_api.py profiles one that others need, too
def test_a_new_run_of_a_game_that_sleeps(profile_of_sleeping, tmp_path):
    profile = profile_of_sleeping("--seconds", "8", "--set", "metrics=[csv]")
    printed, complaints = profile.communicate(timeout=280)
    assert profile.returncode == 0, complaints
    figures = json.loads((tmp_path / "profile.json").read_text())
    worker = figures["roles"]["env_worker"]
    assert worker["us_per_decision"]["step"] >= 0.9e6 * STEP_SEC, "the rates are of two windows, half a second apart"
    assert worker["share"]["step"] == max(worker["share"].values())
    assert figures["sentence"] == printed.splitlines()[-1]
    assert (figures["configuration"], figures["mode"]) == ("sleeping.yaml", "default")
    assert figures["settings"] == ["metrics=[csv]"]
    assert figures["config"]["metrics"] == ["csv"], "a setting of a profiled run by itself is []"
    assert figures["config"]["workers"]["envs"] == 8
