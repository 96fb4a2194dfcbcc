"""Which runs can be played against, and by which command."""

from __future__ import annotations

import argparse
import shlex
import sys

import pytest

from simul.launch.commands.play import add_play
from simul.launch.monitoring.page.runs.play_command import play_command


@pytest.mark.parametrize("name", ["run", "it's; rm -rf $HOME"])
@pytest.mark.parametrize("game", ["ofc", "pokemon", "mine:Game"])
def test_the_command_is_one_that_simul_play_takes(tmp_path, name, game):
    run = tmp_path / name
    assert play_command(run, game) == ""
    (run / "checkpoints" / "000000012").mkdir(parents=True)
    simul, play, *arguments = shlex.split(play_command(run, game))
    parser = argparse.ArgumentParser()
    add_play(parser)
    options = parser.parse_args(arguments)
    assert (simul, play, str(options.checkpoint), options.page, options.page_port) == (
        "simul",
        "play",
        str(run),
        True,
        0,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="no such names there")
@pytest.mark.parametrize(
    ("name", "game"), [("run", "gymnasium"), ("run", ""), ("x\ny", "ofc"), ("\x1b[2J", "ofc"), ("\udcff", "ofc"),
                       ("a/" * 300 + "b", "ofc")]
)  # fmt: skip
def test_what_cannot_be_played_or_written_in_a_line_has_no_command(tmp_path, name, game):
    (tmp_path / name / "checkpoints" / "000000012").mkdir(parents=True)
    assert play_command(tmp_path / name, game) == ""
