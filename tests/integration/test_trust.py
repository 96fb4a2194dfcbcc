"""Files of a stranger, opened by real commands: nothing that they name is run, and what the user trusts is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from simul.common.protocol.specs import GameSpec
from simul.common.runtime.installation import ROOT, import_path
from simul.common.store.remote import Store
from tests.support.checkpoints import write_small_checkpoint
from tests.support.stores import make_mirror, new_run

SPEC = GameSpec(name="gymnasium/CartPole-v1", observation_size=4, num_actions=2)
LIMIT_SEC = 60.0  # a command that waits for an answer fails


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """Exists once the module `stranger` was imported, which lies in the working directory of the commands."""
    path = tmp_path / "was_run"
    (tmp_path / "stranger.py").write_text(f"open({str(path)!r}, 'w').close()\n")
    return path


def simul(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """`simul ...` in `folder`."""
    line = [sys.executable, "-m", "simul.launch.cli", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": import_path()}
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=LIMIT_SEC, env=environment)


def test_a_run_directory_and_a_store_of_a_stranger_run_nothing(marker, tmp_path):
    theirs = tmp_path / "theirs"
    write_small_checkpoint(theirs / "checkpoints" / "000000001", 1, spec=SPEC)
    settings = {"game": "subprocess:Popen", "game_options": {"args": f"touch {marker}", "shell": True}}
    (theirs / "config.yaml").write_text(yaml.safe_dump(settings))
    store, uploading = f"file://{tmp_path}/store", new_run(tmp_path / "uploading")
    spec = GameSpec(name="stranger:Game", observation_size=4, num_actions=2)
    write_small_checkpoint(uploading.checkpoints / "000000001", 1, spec=spec)
    make_mirror(store, uploading, 1).copy_all(Store(store))
    for checkpoint, shown in ((theirs, f'game_options: {{"args":"touch {marker}"'), (store, 'game: "stranger:Game"')):
        refused = simul(tmp_path, "eval", "--checkpoint", checkpoint, "--games", "1")
        assert refused.returncode == 2, refused.stderr
        assert shown in refused.stderr
        assert "--trust" in refused.stderr
        assert not marker.exists()
    simul(tmp_path, "eval", "--checkpoint", theirs, "--games", "1", "--trust")
    assert marker.exists()  # which shows that the refusals above could have failed


@pytest.mark.slow  # .ci/long runs it; that no endpoint is taken out of data, tests/unit/common/config/test_trust.py
def test_an_endpoint_of_a_stranger_opens_no_port_and_removes_no_file(tmp_path):
    theirs, precious = tmp_path / "theirs", tmp_path / "authorized_keys"
    shutil.copytree(ROOT / "tests" / "golden" / "run_75cb9e87", theirs)
    precious.write_text("ssh-ed25519 AAAA")
    settings = yaml.safe_load((theirs / "config.yaml").read_text())
    settings["server"] |= {"endpoint": f"ipc://{precious}", "ipc_access": "everyone"}
    (theirs / "config.yaml").write_text(yaml.safe_dump(settings))
    played = simul(tmp_path, "eval", "--checkpoint", theirs, "--games", "1")
    assert played.returncode == 0, played.stderr
    assert precious.read_text() == "ssh-ed25519 AAAA"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["authorized_keys", "theirs"]
