"""What roles read when they start comes back before a restart."""

from __future__ import annotations

import shutil
import stat

import pytest

from simul.common.config.run_directory import RunDir
from simul.common.config.schema import Config
from simul.common.launch.supervisor import run_lock
from simul.common.launch.supervisor.needed_files import NAMES, NeededFiles
from simul.common.launch.supervisor.processes import Child
from simul.common.protocol.specs import GameSpec

SPEC = GameSpec("test", 4, 2)


@pytest.fixture
def run_dir(tmp_path):
    run_dir = RunDir(tmp_path / "run")
    run_dir.create()
    run_dir.write_config(Config())
    run_dir.write_spec(SPEC)
    return run_dir


def test_what_vanished_is_written_again_as_it_was(run_dir):
    files = NeededFiles(run_dir)
    files.remember()
    before = {name: (run_dir.root / name).read_bytes() for name in NAMES}
    assert files.restore() == []
    shutil.rmtree(run_dir.root)
    said = files.restore()
    assert said == [f"{run_dir.root / name} had vanished and was written again" for name in NAMES]
    assert {name: (run_dir.root / name).read_bytes() for name in NAMES} == before
    assert stat.S_IMODE((run_dir.root / "token").stat().st_mode) == 0o600
    assert run_dir.logs.is_dir()
    assert files.restore() == []
    (run_dir.root / "token").write_text("")
    assert len(files.restore()) == 1
    assert (run_dir.root / "token").read_bytes() == before["token"]


def test_where_it_cannot_be_written_a_sentence_says_so(run_dir):
    files = NeededFiles(run_dir)
    files.remember()
    shutil.rmtree(run_dir.logs)
    run_dir.logs.write_text("in the way")
    assert files.restore() == [f"{run_dir.logs} is missing and cannot be made again: File exists"]


def test_a_role_whose_log_cannot_be_written_runs_without_one(run_dir):
    shutil.rmtree(run_dir.logs)
    child = Child("learner", 0, run_dir, ["sh", "-c", "echo a last word >&2; exit 1", "sh"])
    child._process.wait(100)
    assert child.how_it_ended() == "exit code 1"
    assert child.log_tail() == ""


def test_an_owner_that_was_forgotten_says_again_who_it_is(run_dir):
    run_lock.claim(run_dir)
    (run_dir.root / run_lock.OWNER_FILE).unlink()
    assert run_lock.living_owner(run_dir) is None
    run_lock.keep(run_dir)
    assert run_lock.living_owner(run_dir) == run_lock.myself()


@pytest.mark.parametrize("name", ["token", "config.yaml", "learner.csv"])
def test_a_folder_in_the_place_of_a_file_is_named(tmp_path, name):
    (tmp_path / "run" / name).mkdir(parents=True)
    with pytest.raises(Exception, match=rf"run/{name} is a folder; expected a file\."):
        RunDir(tmp_path / "run").create()


@pytest.mark.parametrize("name", ["checkpoints", "logs", "sockets"])
def test_a_file_in_the_place_of_a_folder_is_named(tmp_path, name):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).write_text("mine")
    run_dir = RunDir(tmp_path / "run")
    folder = run_dir.sockets if name == "sockets" else run_dir.root / name
    if folder.parent != run_dir.root:
        pytest.skip("the temporary directory is too deep for sockets in it")
    with pytest.raises(Exception, match=rf"run/{name} is a file; expected a folder\."):
        run_dir.create()
