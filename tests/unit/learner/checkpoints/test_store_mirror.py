"""The mirror in a store of memory that stops, tears, hangs and comes back."""

from __future__ import annotations

import errno
import shutil
import threading
import time

import pytest

from simul.common.checkpoints.folders import link_folder, replace_best
from simul.common.checkpoints.meta import META_FILE, WEIGHTS_FILE
from simul.common.errors import StoreError
from simul.common.store.fetch import newest_local, prepare_store
from simul.common.store.layout import Owner
from simul.common.store.remote import Store
from simul.learner.checkpoints import store_mirror
from simul.learner.checkpoints.store_mirror import OK, TAKEN_OVER, UNKNOWN, UNREACHABLE
from tests.support.stores import EVERY, SPEC, ScriptedFileSystem, make_mirror, new_run, new_url, save_checkpoint, stored
from tests.support.waiting import wait_for

PATIENCE_SEC = 60.0


class Killed(BaseException):
    """Stands for kill -9: nothing that tidies up is run."""


@pytest.fixture
def files():
    """The class of the store's file system; every test leaves it harmless."""
    kept = ScriptedFileSystem.before, ScriptedFileSystem.torn
    yield ScriptedFileSystem
    ScriptedFileSystem.before, ScriptedFileSystem.torn = (staticmethod(function) for function in kept)


@pytest.fixture
def run(tmp_path):
    return new_run(tmp_path / "run")


@pytest.fixture
def outage(files):
    """The store cannot be reached while it is set."""
    broken = threading.Event()

    def refuses(operation, path):
        if broken.is_set():
            raise ConnectionError("No route to host")

    files.before = staticmethod(refuses)
    return broken


def save_best(run, version):
    best = run.checkpoints / f".evaluating-{version:09d}"
    link_folder(run.checkpoints / f"{version:09d}", best)
    replace_best(best, b"{}")


def copy(url, run, run_id=1):
    mirror = make_mirror(url, run, run_id)
    mirror.copy_all(Store(url))
    return mirror


def test_the_newest_two_milestones_past_selves_and_the_best_are_there(run):
    url = new_url()
    for version in range(12):  # local milestones, say: everything is still here
        save_checkpoint(run, version, 300 * version)
    save_checkpoint(run, 3, kind="past")
    save_best(run, 4)
    copy(url, run)
    store = Store(url)
    assert stored(store) == [11, 10, 7, 4]
    assert (stored(store, "past"), stored(store, "best")) == ([3], [4])
    assert not list(run.checkpoints.glob(".storing-*"))


def test_old_ones_go_and_what_a_fresh_machine_lacks_stays(run, tmp_path):
    url = new_url()
    for version in range(12):
        save_checkpoint(run, version, 300 * version)
    copy(url, run)
    fresh = new_run(tmp_path / "fresh")
    for version, decisions in ((12, 3600), (13, 3900), (14, 4200)):
        save_checkpoint(fresh, version, decisions)
        copy(url, fresh, run_id=2)
    assert stored(Store(url)) == [14, 13, 10, 7, 4]
    for version in (11, 12):
        assert not [name for name in Store(url).files() if f"{version:09d}-" in name], "every file of it is gone"


def test_a_new_best_replaces_the_old_one(run):
    url = new_url()
    for version in (4, 5):
        save_checkpoint(run, version)
        save_best(run, version)
        copy(url, run)
        assert stored(Store(url), "best") == [version]


@pytest.mark.parametrize("torn", [False, True], ids=["between", "within"])
def test_a_kill_at_any_operation_leaves_a_checkpoint_that_loads(run, files, tmp_path, torn):
    """Of a pass that uploads two checkpoints and a milestone, and removes two."""
    moment = 0
    while True:
        moment += 1
        shutil.rmtree(run.checkpoints)
        url, counted = new_url("scripted"), [0]
        for version in (1, 2):
            save_checkpoint(run, version)
        copy(url, run)
        for version, decisions in ((3, EVERY), (4, EVERY + 1), (5, EVERY + 2)):
            save_checkpoint(run, version, decisions)

        def dies(operation, path, counted=counted, moment=moment):
            counted[0] += operation in (("written",) if torn else ("write", "written", "remove"))
            if counted[0] == moment:
                raise Killed

        files.before = staticmethod(dies)
        files.torn = staticmethod(lambda path, counted=counted, moment=moment: torn and counted[0] == moment - 1)
        try:
            copy(url, run)
            whole = True
        except Killed:
            whole = False
        files.before = staticmethod(lambda operation, path: None)
        files.torn = staticmethod(lambda path: False)
        fresh = new_run(tmp_path / f"fresh-{torn}-{moment}")
        prepare_store(Store(url), fresh, SPEC.fingerprint(), past=True, say=lambda said: None)
        assert newest_local(fresh.checkpoints) in ((5,) if whole else (2, 5, 4)), f"killed at operation {moment}"
        copy(url, run, run_id=2**63)  # the next life completes it and removes what was torn
        assert stored(Store(url)) == [5, 4, 3]
        assert len(Store(url).files()) == 3 * 3 + 1
        if whole:
            assert moment > 5
            return


def test_no_token_and_no_key_is_in_the_store(run):
    url = new_url()
    (run.root / "curve").mkdir()
    (run.root / "curve" / "server.key_secret").write_text("secret-key = 'abcdefgh'")
    for version in (1, 2):
        save_checkpoint(run, version, EVERY * version)
        save_checkpoint(run, version, kind="past")
    run.write_origin("/models/first")
    run.write("config.yaml", b"run_dir: x")
    copy(url, run)
    store = Store(url)
    names = set(store.files())
    allowed = {"owner.json", "origin"}
    assert {name.rpartition("/")[2] for name in names} == {*allowed, WEIGHTS_FILE, "optimizer.safetensors", META_FILE}
    assert {name for name in names if "/" not in name} == allowed
    everything = b"".join(store.read(name) for name in names)
    assert run.token().encode() not in everything
    assert b"abcdefgh" not in everything


def test_a_damaged_checkpoint_is_not_uploaded_and_said_once(run):
    url = new_url()
    save_checkpoint(run, 1)
    (save_checkpoint(run, 2) / WEIGHTS_FILE).write_bytes(b"rot")
    mirror = copy(url, run)
    mirror.copy_all(Store(url))
    assert stored(Store(url)) == [1]
    (note,) = mirror.drain_notes()
    assert "000000002 is not stored: weights.safetensors does not have its hash" in note


def test_a_checkpoint_that_cannot_be_read_is_no_silent_loss(run, monkeypatch):
    def broken(*_):
        raise OSError(errno.EIO, "Input/output error")

    save_checkpoint(run, 1)
    monkeypatch.setattr(store_mirror, "link_folder", broken)
    with pytest.raises(StoreError, match=r"000000001 cannot be read for the store: Input/output error"):
        copy(new_url(), run)


def test_what_the_learner_removes_meanwhile_is_uploaded_whole(run, files):
    url = new_url("scripted")
    path = save_checkpoint(run, 1)

    def removes(operation, name):
        if operation == "write" and name.endswith(WEIGHTS_FILE):
            shutil.rmtree(path)

    files.before = staticmethod(removes)
    copy(url, run)
    assert not path.exists()
    assert stored(Store(url)) == [1]


def test_an_outage_is_said_when_it_comes_and_when_it_goes(run, outage):
    url = new_url("scripted")
    mirror = make_mirror(url, run)
    mirror.start()
    wait_for(mirror.wait_for_last)
    assert mirror.behind_sec(time.monotonic()) == 0.0
    outage.set()
    save_checkpoint(run, 1)
    saved_at = float(int(time.monotonic()))  # whole seconds: sums and differences are exact
    mirror.notify_saved(saved_at)
    wait_for(lambda: mirror.state == UNREACHABLE)
    save_checkpoint(run, 2)
    mirror.notify_saved(time.monotonic())
    assert mirror.behind_sec(saved_at + 300.0) == 300.0, "since the first save that it lacks"
    assert "lacks checkpoints/000000002-" in mirror.describe_missing()
    (note,) = mirror.drain_notes()
    assert "cannot be reached (No route to host). Training goes on" in note
    outage.clear()
    wait_for(mirror.wait_for_last)
    wait_for(lambda: mirror.state == OK)
    (note,) = mirror.drain_notes()
    assert "is back after" in note
    assert mirror.describe_missing() == ""
    assert stored(Store(url)) == [2, 1]
    mirror.close()


def test_a_learner_that_starts_during_an_outage_does_not_say_that_the_store_is_there(run, outage):
    outage.set()
    mirror = make_mirror(new_url("scripted"), run)
    states = [mirror.state]
    mirror.start()
    for _ in range(2):
        wait_for(lambda: mirror.state != states[-1])
        states.append(mirror.state)
        outage.clear()
    assert states == [UNKNOWN, UNREACHABLE, OK]
    mirror.close()


def test_a_store_that_hangs_does_not_hold_up_the_loop(run, files):
    url, release = new_url("scripted"), threading.Event()
    files.before = staticmethod(lambda operation, path: release.wait(PATIENCE_SEC))
    mirror = make_mirror(url, run)
    save_checkpoint(run, 1)
    mirror.start()
    for _ in range(100):  # none of these calls waits: the store answers only after them
        mirror.notify_saved(time.monotonic())
        assert not mirror.wait_for_last()
        assert mirror.drain_notes() == []
        assert mirror.behind_sec(time.monotonic()) > 0.0
    assert "lacks checkpoints/000000001-" in mirror.describe_missing()
    release.set()
    wait_for(mirror.wait_for_last)
    assert stored(Store(url)) == [1]
    mirror.close()


def test_the_older_of_two_runs_stops_writing_and_says_so(run, tmp_path, files):
    url = new_url("scripted")
    older, newer = make_mirror(url, run, run_id=1), new_run(tmp_path / "newer")
    save_checkpoint(run, 1)
    older.start()
    wait_for(older.wait_for_last)
    save_checkpoint(newer, 2)
    copy(url, newer, run_id=2)
    before = Store(url).files()
    save_checkpoint(run, 3)
    older.notify_saved(time.monotonic())
    wait_for(lambda: older.state == TAKEN_OVER)
    assert Store(url).files() == before
    (note,) = older.drain_notes()
    assert "belongs to a newer run, started 2026-01-01T00:00:00+00:00 on here" in note
    assert older.wait_for_last(), "the end of the run does not wait for it"
    assert older.behind_sec(time.monotonic()) > 0.0
    assert older.describe_missing() == ""


def test_a_run_that_is_taken_over_in_the_middle_of_an_upload_does_not_complete_it(run, files):
    url = new_url("scripted")
    newer = Owner(2, "2026-01-01T00:00:00+00:00", "there")

    def takes_over(operation, path):
        if operation == "written" and path.endswith(WEIGHTS_FILE):
            Store(url).write_owner(newer)

    save_checkpoint(run, 1)
    files.before = staticmethod(takes_over)
    mirror = make_mirror(url, run)
    mirror.start()
    wait_for(lambda: mirror.state == TAKEN_OVER)
    assert stored(Store(url)) == []
    assert Store(url).owner() == newer
