"""Small files of a run: whole or not there, and made anew where a full disk left them empty."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from simul.common.checkpoints.folders import new_folder
from simul.common.config.run_signature import signed_trust
from simul.common.config.schema import Config
from simul.common.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import living_owner
from simul.common.store.claim import read_claim
from simul.launch.commands.status import status
from simul.launch.monitoring.curves.curves_csv import read_header
from simul.launch.monitoring.merged_logs import LogFile
from simul.launch.monitoring.snapshot import StatusFile
from simul.launch.supervisor.checkpoint_files import newest_checkpoint
from simul.launch.supervisor.run_curves import read_position
from tests.support.waiting import PATIENCE_SEC


@pytest.fixture
def full_disk(monkeypatch):
    """Every write fails as on a disk without room, behind the file's making."""

    fdopen = os.fdopen

    def fails(descriptor, mode="r", *arguments, **options):
        if "w" not in mode:
            return fdopen(descriptor, mode, *arguments, **options)
        os.close(descriptor)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fdopen", fails)
    return monkeypatch


def test_a_start_on_a_full_disk_leaves_no_empty_token(tmp_path, full_disk) -> None:
    with pytest.raises(ConfigError, match="No space left on device"):
        RunDir(tmp_path).create()
    assert list(tmp_path.iterdir()) == []
    full_disk.undo()
    RunDir(tmp_path).create()
    assert len(RunDir(tmp_path).token()) == 32


def test_a_full_disk_leaves_the_former_files(tmp_path, request) -> None:
    run_dir = RunDir(tmp_path)
    run_dir.write_config(Config(seed=7))
    request.getfixturevalue("full_disk")
    with pytest.raises(OSError, match="No space left on device"):
        run_dir.write_config(Config(seed=8))
    assert run_dir.read_config().seed == 7


def test_what_is_empty_or_damaged_is_named_and_the_token_made_anew(tmp_path) -> None:
    run_dir = RunDir(tmp_path)
    run_dir.create()
    run_dir.write_config(Config())
    run_dir.write_spec(GameSpec("test", 4, 2))
    assert run_dir.repair() == []
    for name, content in (("token", ""), ("spec.json", '{"na'), ("config.yaml", "game: {torn"), ("status.json", "")):
        (tmp_path / name).write_text(content)
    (tmp_path / ".status.json.4711").write_text("of a supervisor that was killed")
    with pytest.raises(ConfigError, match="Start the run again"):
        run_dir.token()
    assert [sentence.split()[0] for sentence in run_dir.repair()] == [
        str(tmp_path / name) for name in ("config.yaml", "spec.json", "token", "status.json")
    ]
    assert len(run_dir.token()) == 32
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
    assert not (tmp_path / ".status.json.4711").exists()


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("config.yaml", b"\x00\xff{", "config.yaml cannot be read: it is not UTF-8 text.$"),
        ("config.yaml", b"game: {torn", "config.yaml is not YAML: "),
        ("config.yaml", b"[" * 5000, "config.yaml is (not YAML|nested too deeply)"),
        ("config.yaml", b"learner: {clpi: 1}", r"config.yaml:\n  learner.clpi: .*did you mean learner.clip\?"),
        ("config.yaml", None, "config.yaml, cannot be read: No such file or directory"),
        ("spec.json", b"\x00\xff{", "spec.json, is damaged: .* Start the run again"),
        ("spec.json", None, "spec.json, cannot be read: No such file or directory"),
    ],
)
def test_a_damaged_configuration_or_spec_of_a_run_is_a_sentence(tmp_path, name, content, says) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError, match=says):
        RunDir(tmp_path).read_config() if name == "config.yaml" else RunDir(tmp_path).read_spec()


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="every name is text there")
def test_a_name_that_is_no_text_is_refused_before_anything_is_made(tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"is not UTF-8 text: b'.*run-\\xff'\. Choose another one with --run-dir"):
        RunDir(tmp_path / os.fsdecode(b"run-\xff")).create()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["token", "config.yaml", "curves.csv"])
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


@pytest.fixture
def shared():
    """A folder that everybody may write to, as the temporary folder is."""
    with tempfile.TemporaryDirectory(prefix="shared-") as folder:
        os.chmod(folder, 0o1777)
        yield Path(folder)


@pytest.fixture
def deep(shared, monkeypatch):
    """A run directory whose path is too long for sockets; they lie in `shared`."""
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    with tempfile.TemporaryDirectory(prefix="deep-" + "x" * 80, dir="/tmp") as folder:
        yield RunDir(Path(folder) / "run")


def test_sockets_elsewhere_lie_in_a_folder_that_nobody_could_have_made_before(deep, shared):
    deep.create()
    sockets = deep.sockets
    assert (sockets.parent, stat.S_IMODE(sockets.stat().st_mode)) == (shared, 0o700)
    assert RunDir(deep.root).sockets == sockets, "roles find it"
    deep.create()
    assert deep.sockets == sockets
    deep.remove_sockets()
    deep.create()
    assert deep.sockets != sockets
    deep.remove()
    assert list(shared.iterdir()) == []


def test_a_folder_of_sockets_that_others_may_enter_is_refused_and_a_start_makes_another(deep, shared):
    deep.create()
    open_to_all = deep.sockets
    open_to_all.chmod(0o777)
    with pytest.raises(ConfigError, match="another user may listen there"):
        deep.endpoint("own")
    deep.create()
    assert deep.sockets != open_to_all


@pytest.mark.parametrize("folder", ["mine", "simul-sockets-0-1", "../mine"])
def test_a_run_directory_of_somebody_else_names_no_folder_of_mine(deep, shared, folder):
    mine = shared / "mine"
    mine.mkdir(mode=0o700)
    (mine / "file").touch()
    deep.create()
    (deep.root / "sockets-folder").write_text(str(shared / folder))
    deep.remove_sockets()
    assert (mine / "file").exists()
    with pytest.raises(ConfigError, match="no folder for sockets"):
        deep.endpoint("own")


@pytest.mark.skipif(sys.platform == "win32", reason="no modes there")
def test_sockets_inside_that_others_may_enter_are_refused(tmp_path):
    run_dir = RunDir(tmp_path)
    (tmp_path / "sockets").mkdir(mode=0o777)
    (tmp_path / "sockets").chmod(0o777)
    with pytest.raises(ConfigError, match="only this user may enter"):
        run_dir.create()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("config.yaml", RunDir.read_config),
        ("config.yaml", RunDir.read_start_files),
        ("spec.json", RunDir.read_spec),
        ("token", RunDir.token),
        ("token", RunDir.repair),
        ("addresses.json", RunDir.addresses),
        ("origin", RunDir.read_origin),
        ("sockets-folder", lambda run_dir: run_dir.sockets),
        ("store.json", lambda run_dir: read_claim(run_dir, 1)),
        ("signature.json", lambda run_dir: signed_trust(run_dir.root)),
        ("status.json", lambda run_dir: status(run_dir.root, as_json=True)),
        ("status.json", lambda run_dir: StatusFile(run_dir, print).read()),
        ("status.json", read_position),
        ("supervisor.pid", living_owner),
        ("curves.csv", lambda run_dir: read_header(run_dir.root / "curves.csv")),
        ("checkpoints/000000001/meta.json", lambda run_dir: newest_checkpoint(run_dir.root)),
        ("checkpoints/000000001/meta.json", read_position),
        ("logs/simul-learner.log", lambda run_dir: LogFile(run_dir.logs / "simul-learner.log")),
    ],
)
def test_a_fifo_in_the_place_of_a_file_is_not_waited_for(tmp_path, name, read):
    run_dir = RunDir(tmp_path)
    run_dir.create()
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)

    def look() -> None:
        with contextlib.suppress(ConfigError, OSError):
            read(run_dir)

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    looking.join(PATIENCE_SEC)
    assert not looking.is_alive()


@pytest.mark.skipif(sys.platform == "win32", reason="no modes there")
@pytest.mark.parametrize(("access", "mode"), [("owner", 0o700), ("group", 0o750)])
@pytest.mark.parametrize("umask", [0, 0o077])
def test_a_new_run_directory_is_its_owners_or_groups_whatever_the_umask(tmp_path, access, mode, umask):
    before = os.umask(umask)
    try:
        RunDir(tmp_path / "run").create(access)
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "run", *(tmp_path / "run").iterdir())}
    assert modes == {"run": mode, "checkpoints": mode, "logs": mode, "sockets": 0o700, "token": 0o600}


@pytest.mark.skipif(sys.platform == "win32", reason="no modes there")
def test_an_older_run_directory_is_closed_to_others_and_the_token_they_could_read_is_made_anew(tmp_path):
    run_dir = RunDir(tmp_path / "run")
    for folder in (run_dir.root, run_dir.checkpoints, run_dir.logs):
        folder.mkdir()
        folder.chmod(0o777)
    (run_dir.root / "token").write_text("known to others")
    (run_dir.root / "token").chmod(0o644)
    run_dir.create()
    assert {stat.S_IMODE(each.stat().st_mode) for each in (run_dir.root, run_dir.checkpoints, run_dir.logs)} == {0o755}
    token = run_dir.token()
    assert token != "known to others"
    run_dir.create()
    assert run_dir.token() == token


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can make another user's file")
@pytest.mark.parametrize("name", [".", "checkpoints", "logs"])
def test_a_run_directory_of_another_user_is_refused(tmp_path, name):
    run_dir = RunDir(tmp_path / "run")
    run_dir.create()
    os.chown(run_dir.root / name, 65534, 65534)
    with pytest.raises(ConfigError, match="belongs to another user"):
        run_dir.create()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no such files there")
@pytest.mark.parametrize("name", ["curves.csv", "logs/simul-learner-0.log", "logs/simul-supervisor.log", "status.json"])
def test_a_fifo_in_the_place_of_a_file_is_named_before_anything_is_written(tmp_path, name):
    run_dir = RunDir(tmp_path / "run")
    run_dir.create()
    os.mkfifo(run_dir.root / name)
    with pytest.raises(ConfigError, match=r"is not a regular file; expected a file\."):
        run_dir.create()


@pytest.mark.skipif(sys.platform == "win32", reason="no modes there")
@pytest.mark.parametrize(("access", "mode"), [("owner", 0o700), ("group", 0o750)])
def test_a_checkpoint_is_read_by_whoever_reads_the_run_directory(tmp_path, access, mode):
    run_dir = RunDir(tmp_path / "run")
    run_dir.create(access)
    with new_folder(run_dir.checkpoints / "000000001") as folder:
        (folder / "meta.json").touch()
    assert stat.S_IMODE((run_dir.checkpoints / "000000001").stat().st_mode) == mode
