"""Where `simul sweep` puts its study: a folder that is named, else a name below runs/sweeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from simul.launch.cli import main
from simul.launch.sweep import sweep as module


@pytest.mark.parametrize(
    ("arguments", "folder"),
    [
        (["mygame/mygame.yaml"], "runs/sweeps/mygame"),  # mygame/ is the user's package
        (["cartpole"], "runs/sweeps/cartpole"),
        (["cartpole", "--study", "first"], "runs/sweeps/first"),
        (["cartpole", "--study", "mygame"], "mygame"),
        (["cartpole", "--study", "a/b"], "a/b"),
    ],
)
def test_the_folder_of_the_study(arguments, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mygame").mkdir()
    given = []
    monkeypatch.setattr(module, "sweep", lambda options: given.append(options.folder) or 0)
    assert main(["sweep", *arguments, "--space", "space.yaml", "--trials", "1"]) == 0
    assert given == [Path(folder)]
