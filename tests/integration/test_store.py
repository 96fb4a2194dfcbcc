"""Runs with a store: learning beside one that hangs, a learner that waits for it, refused and fetching starts."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import closing

import msgspec
import pytest

from simul.common.checkpoints.meta import META_FILE
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import read_json
from simul.common.store.remote import Store
from simul.launch import cli
from simul.launch.processes.process_group import ProcessGroup
from simul.learner import learner as learner_module
from tests.support.learner_process import CONFIG, SPEC, FakeServer
from tests.support.learner_stand import LearnerStand, RunningLearner
from tests.support.stores import ScriptedFileSystem, make_mirror, new_run, new_url, save_checkpoint, stored
from tests.support.waiting import PATIENCE_SEC, wait_for

STAND_IN_SPEC = GameSpec("test/stand-in", 4, 2)


@pytest.fixture
def files():
    """The class of a store's file system; every test leaves it harmless."""
    before = ScriptedFileSystem.before
    yield ScriptedFileSystem
    ScriptedFileSystem.before = staticmethod(before)


def make_stand(url: str) -> LearnerStand:
    stand = LearnerStand(checkpoint_every_sec=0.001)
    stand.config = msgspec.structs.replace(stand.config, store=url)
    stand.run_dir.write_config(stand.config)
    return stand


def train_on(stand: LearnerStand, client) -> None:
    """Three more versions."""
    goal = stand.learner.metrics["policy_version"] + 3
    stand.train(client, lambda: stand.learner.metrics["policy_version"] >= goal)


def test_training_goes_on_and_ends_while_the_store_hangs_and_it_is_said_what_is_lacking(files, monkeypatch):
    url, hanging = new_url("scripted"), threading.Event()

    def hangs(operation: str, path: str) -> None:
        while hanging.is_set():
            time.sleep(0.01)

    files.before = staticmethod(hangs)
    monkeypatch.setattr(learner_module, "STOP_WAIT_SEC", 0.5)
    with make_stand(url) as stand:
        client, learner = stand.client("teacher"), stand.learner
        train_on(stand, client)
        wait_for(stand.idle)  # no further version comes
        wait_for(lambda: learner.metrics["store_behind_sec"] == 0.0)
        assert learner.metrics["store_state"] == "ok"
        assert len(stored(Store(url))) == 2
        hanging.set()
        train_on(stand, client)
        train_on(stand, client)
        learner.stop()
        hanging.clear()
        newest = f"{learner.metrics['checkpoint_version']:09d}"
        assert any("lacks checkpoints/" in event and newest in event for event in learner.events)


def test_the_learner_waits_for_the_store_when_it_stops(tmp_path):
    url = f"file://{tmp_path}/store"
    run_dir = RunDir(tmp_path / "run")
    run_dir.create()
    run_dir.write_config(msgspec.structs.replace(CONFIG, store=url))
    run_dir.write_spec(SPEC)
    learner = RunningLearner(run_dir).start()
    with closing(FakeServer(run_dir)) as server:
        server.until(lambda: len(server.versions) >= 5, "some versions")
    learner.stop()
    assert learner.failure is None
    last = learner.metrics
    assert stored(Store(url))[0] == last["checkpoint_version"] == last["policy_version"]
    assert last["store_behind_sec"] == 0.0


def test_a_store_that_cannot_be_used_is_refused_before_any_role_starts(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(ProcessGroup, "start", lambda *_: pytest.fail("a role was started"))
    line = ["up", "configs/cartpole.yaml", "--run-dir", str(tmp_path / "run"), "--plain"]
    assert cli.main([*line, "--set", "store=file:///proc/nowhere/run"]) == 2
    assert "Create the bucket or the folder" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_start_fetches_what_is_newer_in_the_store(up, tmp_path):
    url = f"file://{tmp_path}/store"
    other = new_run(tmp_path / "other")
    save_checkpoint(other, 9, spec=STAND_IN_SPEC)
    make_mirror(url, other).copy_all(Store(url))
    run = up("--set", f"store={url}")
    run.wait_until_training()
    said = "the store has a newer checkpoint, 000000009; there is none here: the run goes on from the store's"
    assert any(said in event for event in run.status()["events"])
    assert (run.run_dir.checkpoints / "000000009" / META_FILE).exists()
    assert read_json(run.run_dir, "store.json")["run_id"] == Store(url).owner().run_id > 1
    code, output = run.finish()
    assert code == 0, output


def test_ctrl_c_ends_a_start_whose_store_hangs(up):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        run = up("--set", f"store=http://127.0.0.1:{silent.getsockname()[1]}/store")
        silent.settimeout(PATIENCE_SEC)
        asked, _ = silent.accept()
        with asked:
            code, output = run.finish()
    assert code == 0, output
    assert "Traceback" not in output
