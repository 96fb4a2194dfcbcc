"""Where `simul export` puts its file is checked before the export, which takes its time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from simul.launch import cli


def test_a_name_at_which_no_file_can_be_put_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("spec.json")
    for name, said in (("fifo", "this is no regular file"), ("link", "this is a link"), (".", "this is a folder")):
        assert cli.main(["export", "--checkpoint", "zoo:cartpole", "--out", str(tmp_path / name)]) == 2
        assert said in capsys.readouterr().err
    assert cli.main(["export", "--checkpoint", "zoo:cartpole", "--out", str(tmp_path / "none" / "file")]) == 2
    assert f"there is no folder {tmp_path / 'none'}" in capsys.readouterr().err
    assert sorted(os.listdir(tmp_path)) == ["fifo", "link"]
    assert (tmp_path / "fifo").is_fifo()
