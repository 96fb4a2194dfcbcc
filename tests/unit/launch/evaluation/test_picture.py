"""Pictures that cannot be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from simul.common.errors import ConfigError
from simul.launch.evaluation.picture import check_picture, save_picture


def test_a_picture_that_cannot_be_written_is_refused_before_any_game(tmp_path):
    (tmp_path / "folder.png").mkdir()
    for file, sentence in (
        (tmp_path / "x.gif", r"expected a name that ends in \.png or \.svg"),
        (tmp_path / "nowhere" / "x.png", "there is no folder"),
        (tmp_path / "folder.png", "this is a folder"),
        (Path("/proc/x.png"), r"/proc/x\.png cannot be written"),
    ):
        with pytest.raises(ConfigError, match=sentence):
            check_picture("--picture", file)


def test_checking_leaves_nothing_and_a_later_fault_is_a_sentence(tmp_path):
    from matplotlib.figure import Figure  # only here: each process of make test collects this file

    check_picture("--picture", tmp_path / "x.svg")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "x.svg").mkdir()
    with pytest.raises(ConfigError, match=r"x\.svg cannot be written: Is a directory"):
        save_picture(Figure(), tmp_path / "x.svg")
