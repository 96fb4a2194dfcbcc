"""A temporary folder goes with its process, and with the next one where that was killed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from simul.common.role import run_directory, run_lock
from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import ProcessIdentity
from simul.common.role.temporary import KEPT, NODE_KIND, OWNER_BYTES, OWNERLESS_SEC, remove_leftovers, temporary_folder
from simul.common.transport import PullSocket

KIND = "simul-eval-"
WAIT = f"""
from simul.common.role.temporary import temporary_folder
with temporary_folder({KIND!r}) as folder:
    print(folder, flush=True)
    input()
"""


@pytest.fixture
def temporary(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


@pytest.fixture
def short():
    """A folder for temporary files in which sockets may lie."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def test_it_goes_at_the_end_and_after_an_error(temporary):
    with temporary_folder(KIND) as folder:
        assert folder.parent == temporary
        RunDir(folder).create()
    with pytest.raises(KeyError), temporary_folder(KIND):
        raise KeyError
    assert list(temporary.iterdir()) == []


def test_what_a_killed_one_left_goes_with_the_next(temporary):
    child = subprocess.Popen([sys.executable, "-c", WAIT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    left = Path(child.stdout.readline().strip())
    with temporary_folder(KIND):
        assert left.exists(), "its evaluation lives"
    child.kill()
    child.communicate()
    with temporary_folder(KIND):
        assert not left.exists()


def test_only_folders_of_the_dead_are_removed(tmp_path):
    evaluations = [f"simul-eval-{state}" for state in ("dead", "living", "fresh", "old", "torn")]
    names = [*evaluations, "simul-serve-dead", "simul-501-sockets", "other"]
    folders = {name: tmp_path / name for name in names}
    for folder in folders.values():
        folder.mkdir()
    dead = ProcessIdentity(os.getpid(), 1.0)
    for name, owner in (("eval-dead", dead), ("serve-dead", dead), ("eval-living", run_lock.this_process())):
        run_lock.write_atomically(RunDir(folders[f"simul-{name}"]), run_lock.OWNER_FILE, owner)
    folders["simul-eval-torn"].joinpath("supervisor.pid").write_text("{")
    now = time.time()
    for name in ("simul-eval-old", "other", "simul-501-sockets"):
        os.utime(folders[name], (now - OWNERLESS_SEC - 5,) * 2)
    removed = remove_leftovers(KIND, tmp_path, now)
    assert sorted(path.name for path in removed) == ["simul-eval-dead", "simul-eval-old", "simul-serve-dead"]
    assert {path.name for path in tmp_path.iterdir()} == set(names) - {path.name for path in removed}


@pytest.mark.skipif(sys.platform == "win32", reason="sockets are no files there")
def test_sockets_of_a_run_that_is_gone_are_removed_and_those_of_one_that_lives_or_starts_are_not(
    tmp_path, short, monkeypatch
):
    temporary = short
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(run_directory, "IPC_PATH_LIMIT", 0)  # as of a long path
    runs = {name: RunDir(tmp_path / name) for name in ("gone", "killed", "starting", "again", "active")}
    for run_dir in runs.values():
        run_dir.create()
    (temporary / "simul-sockets-0123-older").mkdir(mode=0o700)  # of a version that kept no path
    folders = {name: run_dir.sockets for name, run_dir in runs.items()}
    now = time.time()
    for name, folder in {**folders, "older": temporary / "simul-sockets-0123-older"}.items():
        if name != "starting":
            os.utime(folder, (now - OWNERLESS_SEC - 60,) * 2)
    runs["again"].create()  # a start in the directory of a killed run
    runs["gone"].remove_sockets()
    assert not folders["gone"].exists(), "a clean end leaves none"
    runs["gone"].create()
    folders["gone"] = runs["gone"].sockets
    shutil.rmtree(runs["gone"].root)
    with PullSocket(runs["active"].endpoint("status")):
        os.utime(folders["active"], (now - OWNERLESS_SEC - 60,) * 2)
        remove_leftovers(KIND, temporary, now)
        left = {folders[name] for name in ("starting", "again", "active")}
        assert set(temporary.iterdir()) == left


def test_of_a_killed_agent_the_directory_stays_while_a_process_has_it_and_its_checkpoints_are_kept(tmp_path):
    folders = [tmp_path / f"{NODE_KIND}{name}" for name in ("learner", "worker")]
    for folder in folders:
        RunDir(folder).create()
        folder.joinpath(run_lock.OWNER_FILE).write_text(f'{{"pid": {os.getpid()}, "create_time": 1.0}}')
    learner = folders[0]
    line = [sys.executable, "-c", "input()", "--run-dir", str(learner)]
    with subprocess.Popen(line, stdin=subprocess.PIPE) as role:
        assert remove_leftovers(KIND, tmp_path, time.time()) == [folders[1]]
        assert learner.exists(), "its learner lives, and has not saved yet"
        (learner / "checkpoints" / "000000007").mkdir()
        role.communicate(b"\n")
    assert remove_leftovers(KIND, tmp_path, time.time()) == []
    assert [path.name for path in tmp_path.iterdir()] == [f"{KEPT}{learner.name}"]
    assert (tmp_path / f"{KEPT}{learner.name}" / "checkpoints" / "000000007").is_dir()
    assert not (learner / "sockets").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no links there")
@pytest.mark.parametrize("owner_file", ["a link", "of another user", "too large"])
def test_an_owner_file_that_no_command_of_this_user_wrote_removes_nothing(tmp_path, owner_file):
    folder, dead = RunDir(tmp_path / "simul-eval-x"), ProcessIdentity(os.getpid(), 1.0)
    folder.root.mkdir(mode=0o700)
    run_lock.write_atomically(folder, run_lock.OWNER_FILE, dead)
    file = folder.root / run_lock.OWNER_FILE
    if owner_file == "a link":
        file.rename(tmp_path / "of-another-folder")
        file.symlink_to(tmp_path / "of-another-folder")
    elif owner_file == "too large":
        file.write_bytes(file.read_bytes() + b" " * OWNER_BYTES)
    elif os.geteuid() != 0:
        pytest.skip("only root can make another user's file")
    else:
        os.chown(file, 65534, 65534)
    assert remove_leftovers(KIND, tmp_path, time.time()) == []
    file.unlink()
    run_lock.write_atomically(folder, run_lock.OWNER_FILE, dead)
    assert remove_leftovers(KIND, tmp_path, time.time()) == [folder.root], "its own one does"


@pytest.mark.skipif(sys.platform == "win32", reason="no FIFOs and links there")
def test_what_others_put_into_the_temporary_folder_is_neither_read_nor_removed(temporary):
    """A FIFO as supervisor.pid stopped every command for good; a link led to a dead run's sockets."""
    (temporary / "simul-fifo").mkdir(mode=0o700)
    os.mkfifo(temporary / "simul-fifo" / run_lock.OWNER_FILE)
    dead = RunDir(temporary / "dead")
    dead.create()
    run_lock.write_atomically(dead, run_lock.OWNER_FILE, ProcessIdentity(2**22 + 1, 1.0, run_lock.this_machine()))
    (temporary / "simul-link").symlink_to(dead.root)
    assert remove_leftovers(KIND, temporary, time.time()) == []
    assert dead.sockets.exists()
    if os.geteuid() == 0:
        (temporary / "simul-other").mkdir(mode=0o755)
        run_lock.write_atomically(
            RunDir(temporary / "simul-other"), run_lock.OWNER_FILE, ProcessIdentity(2**22 + 1, 1.0)
        )
        os.chown(temporary / "simul-other", 65534, 65534)
        assert remove_leftovers(KIND, temporary, time.time()) == []


def test_a_folder_that_its_process_removes_meanwhile_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "glob", lambda parent, pattern: iter([tmp_path / "simul-gone"]))
    assert remove_leftovers("simul-", tmp_path, 1e9) == []
