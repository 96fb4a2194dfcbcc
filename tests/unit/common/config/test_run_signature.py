"""A run directory that this user made on this machine is trusted; one that was moved, changed or unpacked is not."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from simul.common.checkpoints.folders import checkpoint_trust
from simul.common.config.loader import config_from_tree
from simul.common.config.run_signature import SECRET, SECRET_VARIABLE, SIGNATURE
from simul.common.config.schema import NetworkConfig
from simul.common.config.trust import EVERYTHING, NOTHING, network_values
from simul.common.errors import ConfigError
from simul.common.role.run_directory import RunDir
from simul.common.runtime.installation import ROOT
from simul.launch.cluster.agent import Agent
from simul.launch.cluster.messages import WriteFiles

OWN = {"game": "own.game:Game", "game_options": {"size": 5}, "network": {"name": "own.network:Net"}}
ROLE = "import sys; from simul.common.role.run_directory import RunDir; RunDir(sys.argv[1]).read_trusted_config()"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's state folder."""
    monkeypatch.delenv(SECRET_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "simul"


@pytest.fixture
def run_dir(tmp_path: Path, state: Path) -> RunDir:
    """Made here by this user."""
    return signed(tmp_path / "run")


def signed(root: Path, tree: dict | None = None) -> RunDir:
    run_dir = RunDir(root)
    run_dir.create()
    run_dir.write_config(config_from_tree(OWN if tree is None else tree, "the test"))
    return run_dir


def reason(run_dir: RunDir) -> str:
    """Why it is refused."""
    with pytest.raises(ConfigError, match="--trust") as refused:
        run_dir.read_trusted_config()
    return str(refused.value)


def test_a_run_that_this_user_made_here_is_trusted(run_dir, state):
    config, trust = run_dir.read_trusted_config()
    trust.check_name(config.game)
    trust.check_name(config.network.name)
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert stat.S_IMODE((state / SECRET).stat().st_mode) == 0o600
    assert not checkpoint_trust(run_dir.checkpoints / "000000001", NOTHING).everything
    own = network_values(NetworkConfig(name="own.network:Net"))
    for name in ("000000001", "best", "past/000000001"):
        assert all(checkpoint_trust(run_dir.checkpoints / name, NOTHING).covers(value) for value in own), name
    for elsewhere in ("past/000000001", "checkpoints/other/000000001", "checkpoints/past/past/000000001"):
        assert not checkpoint_trust(run_dir.root / "sub" / elsewhere, NOTHING).values


def test_a_link_to_it_is_the_same_directory(run_dir, tmp_path):
    (tmp_path / "link").symlink_to(run_dir.root)
    RunDir(tmp_path / "link").read_trusted_config()


def test_a_moved_run_says_where_it_was_until_it_is_signed_again(run_dir, tmp_path):
    run_dir.root.rename(tmp_path / "moved")
    moved = RunDir(tmp_path / "moved")
    assert f"you made this run directory at {run_dir.root}, from where it was moved or copied" in reason(moved)
    moved.read_trusted_config(EVERYTHING)
    moved.write_config(moved.read_config())  # as `simul up CONFIG` does
    moved.read_trusted_config()


def test_a_changed_value_is_refused_and_so_is_one_with_a_changed_signature(run_dir):
    for name, says in (
        ("config.yaml", "its values are not those that you started the run with"),
        (SIGNATURE, "another user or machine, or a changed one"),
    ):
        path = run_dir.root / name
        path.write_text(path.read_text().replace("own.game:Game", "subprocess:Popen"))
        assert says in reason(run_dir)


def test_the_signature_of_another_user_or_machine_is_refused(run_dir, state):
    (state / SECRET).unlink()
    signed(run_dir.root.with_name("other"))  # makes another secret
    assert "another user or machine" in reason(run_dir)


def test_a_run_of_before_has_no_signature(run_dir):
    (run_dir.root / SIGNATURE).unlink()
    assert "no signature of yours" in reason(run_dir)


@pytest.mark.parametrize("kind", ["fifo", "link", "folder", "large", "damaged"])
def test_a_hostile_signature_file_is_refused_at_once(kind, run_dir, tmp_path):
    path = run_dir.root / SIGNATURE
    path.rename(tmp_path / "kept")
    makers = {
        "fifo": lambda: os.mkfifo(path), "link": lambda: path.symlink_to(tmp_path / "kept"), "folder": path.mkdir,
        "large": lambda: path.write_bytes(b" " * (2 << 20)), "damaged": lambda: path.write_bytes(b"\xff{"),
    }  # fmt: skip
    makers[kind]()
    assert "cannot be read" in reason(run_dir)


@pytest.mark.parametrize("fault", ["file mode", "folder mode", "link", "length"])
def test_a_secret_that_others_could_know_is_not_used(fault, run_dir, state, tmp_path):
    secret = state / SECRET
    if fault == "file mode":
        secret.chmod(0o644)
    elif fault == "folder mode":
        state.chmod(0o755)
    elif fault == "link":
        secret.rename(tmp_path / "elsewhere")
        secret.symlink_to(tmp_path / "elsewhere")
    else:
        secret.write_bytes(b"")
    assert "your secret cannot be used" in reason(run_dir)


def test_without_a_place_for_the_secret_the_run_works_and_later_commands_say_so(tmp_path, state, monkeypatch):
    state.parent.mkdir()
    state.write_text("")  # no folder can be made there, even by root
    run_dir = signed(tmp_path / "run")
    line = [sys.executable, "-c", ROLE, str(run_dir.root)]
    subprocess.run(line, cwd=ROOT, check=True)  # a role of the run has the secret in its environment
    monkeypatch.delenv(SECRET_VARIABLE)
    assert "another user or machine" in reason(run_dir)


def test_a_run_with_registered_names_has_no_signature_and_makes_no_secret(tmp_path, state):
    run_dir = signed(tmp_path / "run", {"gymnasium": {"id": "CartPole-v1"}})
    run_dir.read_trusted_config()
    assert not (run_dir.root / SIGNATURE).exists()
    assert not state.exists()
    signed(run_dir.root)
    signed(run_dir.root, {})
    assert not (run_dir.root / SIGNATURE).exists()


def test_a_failed_start_puts_the_signature_back_with_the_configuration(run_dir):
    before = run_dir.read_start_files()
    signed(run_dir.root, {"game": "other:Game"})
    run_dir.restore_start_files(before)
    assert run_dir.read_trusted_config()[0].game == OWN["game"]


def test_an_unpacked_copy_with_the_signature_of_its_maker_is_refused(run_dir, tmp_path, monkeypatch):
    shutil.copytree(run_dir.root, tmp_path / "unpacked")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    assert "another user or machine" in reason(RunDir(tmp_path / "unpacked"))


def test_an_agent_signs_what_its_supervisor_sends(run_dir, tmp_path):
    reading, writing = os.pipe()
    agent = Agent(tmp_path / "node", reading, writing)
    try:
        config = (run_dir.root / "config.yaml").read_bytes()
        agent._carry_out(WriteFiles(files={"config.yaml": config}))
        assert RunDir(tmp_path / "node").read_trusted_config()[0].game == OWN["game"]
    finally:
        os.close(reading)
        os.close(writing)
