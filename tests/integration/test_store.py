"""Runs with a store: learning beside one that fails and hangs, real processes that are killed, refused starts."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time

import msgspec
import psutil
import pytest

from simul.common.config.checkpoint_meta import META_FILE
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_lock import read_json
from simul.common.store.fetch import prepare_store
from simul.common.store.remote import Store
from simul.learner import learner as learner_module
from simul.learner.checkpoints.checkpoint_store import CheckpointStore
from tests.support.command import Simul
from tests.support.learner_process import CONFIG, SPEC, FakeServer, LearnerProcess
from tests.support.learner_stand import LearnerStand
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


@pytest.mark.slow  # test_store_s3.py kills the other end
def test_a_learner_that_is_killed_in_the_middle_of_an_upload_goes_on_in_a_fresh_directory(tmp_path):
    """Each life runs in a directory of its own, with nothing but the store."""
    url = f"file://{tmp_path}/store"
    config = msgspec.structs.replace(CONFIG, store=url)
    newest, mid_upload = -1, 0
    for life in range(3):
        machine, server = LearnerProcess(tmp_path / f"machine-{life}", config), None
        try:
            said: list[str] = []
            prepare_store(Store(url), machine.run_dir, SPEC.fingerprint(), past=True, say=said.append)
            resumed = CheckpointStore(machine.run_dir.checkpoints).latest(SPEC)
            assert (resumed.meta.version if resumed else -1) >= newest
            process = machine.start()
            server = FakeServer(machine.run_dir)
            server.until(lambda: len(stored(Store(url))) >= 2, "checkpoints in the store")
            if life:
                assert "the run goes on from the store's" in said[0]
                server.until(lambda machine=machine: "Resumed from checkpoint" in machine.events(), "the resumption")
            newest = stored(Store(url))[0]
            server.until(lambda newest=newest: stored(Store(url))[0] > newest, "a checkpoint of this life")
            server.until(lambda process=process: stopped_mid_upload(process.pid, url), "an upload in progress")
            process.kill()
            process.wait()
            mid_upload += any_torn(url)
            newest = max(newest, stored(Store(url))[0])
        finally:
            if server is not None:
                server.close()
            machine.close()
    assert mid_upload, "no life was killed in the middle of an upload"


def stopped_mid_upload(pid: int, url: str) -> bool:
    """Stop the process while it uploads, so that the upload does not end before the kill; else it goes on."""
    if not any_torn(url):
        return False
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    if any_torn(url):
        return True
    os.kill(pid, signal.SIGCONT)
    return False


def any_torn(url: str) -> bool:
    """Whether a checkpoint without meta.json is there: it is being uploaded, or was."""
    return any(META_FILE not in names for names in Store(url).entries().values())


def test_the_learner_waits_for_the_store_when_it_stops(tmp_path):
    url = f"file://{tmp_path}/store"
    machine = LearnerProcess(tmp_path, msgspec.structs.replace(CONFIG, store=url))
    try:
        process = machine.start()
        server = FakeServer(machine.run_dir)
        try:
            server.until(lambda: len(server.versions) >= 5, "some versions")
        finally:
            server.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=240) == 0, process.stderr.read().decode()
        wait_for(lambda: machine.read()[-1].state == "stopped")  # it may arrive behind the end of the process
        last = machine.read()[-1].metrics
        assert stored(Store(url))[0] == last["checkpoint_version"] == last["policy_version"]
        assert last["store_behind_sec"] == 0.0
    finally:
        machine.close()


def test_a_store_that_cannot_be_used_is_refused_before_any_role_starts(up, tmp_path):
    code, output = up("--set", "store=file:///proc/nowhere/run").result()
    assert code == 2, output
    assert "Create the bucket or the folder" in output
    assert "ready" not in output
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


@pytest.mark.timeout(900)
@pytest.mark.slow  # real roles, twice; test_a_start_fetches_what_is_newer is short
def test_the_same_command_resumes_on_a_fresh_machine_and_the_store_is_evaluated(tmp_path, simul):
    url = f"file://{tmp_path}/store"
    settings = ("--mode", "test", "--set", f"store={url}")
    first = Simul("cartpole", tmp_path / "first", *settings)
    try:
        code, output = first.result()
        assert code == 0, output
        saved = first.summary()
        newest = stored(Store(url))[0]
    finally:
        first.end_now()
    second = Simul("cartpole", tmp_path / "second", *settings)
    try:
        code, output = second.result()
        assert code == 0, output
        assert f"Resumed from checkpoint {newest} " in output
        assert "store up to date" in output
    finally:
        second.end_now()
    assert saved
    assert stored(Store(url))[0] > newest
    evaluation = simul("eval", "--json", "--checkpoint", url, "--games", "2", stdout=None)
    code, output = evaluation.result()
    assert code == 0, output
    result = json.loads(output[output.index("{") :])
    assert result["episodes"] == 2
    assert result["checkpoint"].endswith(f"/store/checkpoints/{stored(Store(url))[0]:09d}")
