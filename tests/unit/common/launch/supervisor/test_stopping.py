"""What is said of a run that ends before it trained."""

from __future__ import annotations

import os
import sys
import time

import msgspec
import pytest

from simul.common.config.run_directory import RunDir
from simul.common.config.schema import Config
from simul.common.launch.commands.remote import _written_since
from simul.common.launch.monitoring.view import make_display
from simul.common.launch.supervisor.processes import Child
from simul.common.launch.supervisor.supervisor import Supervisor
from simul.common.protocol.errors import ConfigError, SimulError
from simul.common.protocol.specs import GameSpec


def test_only_a_summary_of_this_stop_is_named(tmp_path):
    summary = tmp_path / "summary.json"
    now = time.time()
    assert not _written_since(summary, now)
    summary.touch()
    os.utime(summary, (now - 60, now - 60))
    assert not _written_since(summary, now)
    os.utime(summary, (now + 1, now + 1))
    assert _written_since(summary, now)


@pytest.mark.parametrize("asked", [True, False])
def test_a_sigterm_of_ours_is_a_good_end(tmp_path, asked):
    run_dir = RunDir(tmp_path)
    run_dir.create()
    child = Child("learner", 0, run_dir, [sys.executable, "-c", "import time; time.sleep(60)"])
    if asked:
        child.ask_to_stop()
    else:
        child._process.terminate()
    child._process.wait(100)
    assert child.ended_well() is asked


def test_a_refused_start_leaves_the_settings_of_the_run(tmp_path):
    run_dir = RunDir(tmp_path)
    checkpoint = run_dir.checkpoints / "000000001"
    checkpoint.mkdir(parents=True)
    (checkpoint / "meta.json").write_text('{"spec_fingerprint": "of-another-game"}')
    (tmp_path / "config.yaml").write_text("seed: 7\n")
    (tmp_path / "spec.json").write_text("{}")
    text = msgspec.json.encode(GameSpec(name="test", observation_size=3, num_actions=2)).decode()
    supervisor = Supervisor(
        Config(), run_dir, make_display(True), lambda role: [sys.executable, "-c", f"print({text!r})"]
    )
    with pytest.raises(ConfigError, match="of-another-game"):
        supervisor.run()
    assert (tmp_path / "config.yaml").read_text() == "seed: 7\n"
    assert (tmp_path / "spec.json").read_text() == "{}"


@pytest.mark.parametrize("there_before", [True, False])
def test_a_refused_start_leaves_no_run_directory_that_it_made(tmp_path, there_before):
    run_dir = RunDir(tmp_path / ("a-path-too-long-for-sockets" * 3) / "run")
    if there_before:
        run_dir.root.mkdir(parents=True)
    assert run_dir.sockets.parent != run_dir.root
    refuse = [sys.executable, "-c", "import sys; sys.stderr.write('No.'); sys.exit(2)"]
    with pytest.raises(SimulError, match=r"No\."):
        Supervisor(Config(), run_dir, make_display(True), lambda role: refuse).run()
    assert run_dir.root.exists() is there_before
    assert not run_dir.sockets.exists()
