"""`simul eval` of games at a table: replays of every game, and engines that speak GTP, good and bad."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from simul.common import cli
from simul.common.runtime.installation import ROOT
from simul.env_worker.games.base.replays import read_replay
from tests.support.stand import PATIENCE_SEC

ENGINE = f"{sys.executable} {Path(__file__).parents[2] / 'support' / 'gtp_engine.py'}"


def evaluated(*arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "simul.common.cli", "eval", *arguments]
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=2.5 * PATIENCE_SEC)


def test_a_replay_of_every_game_and_a_picture_that_watch_shows(tmp_path):
    done = evaluated(
        "blokus", "--opponent", "largest_piece", "--gtp", ENGINE, "--games", "2", "--json", "--replays", str(tmp_path)
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["pairs"][0]["battles"] == 2
    files = sorted(tmp_path.glob("*.json"))
    replays = [read_replay(file) for file in files]
    assert sorted(replay.players for replay in replays) == [["gtp", "largest_piece"], ["largest_piece", "gtp"]]
    assert all(file.with_suffix(".svg").read_text().startswith("<svg") for file in files)
    shown = subprocess.run(
        [sys.executable, "-m", "simul.common.cli", "watch", "--replay", str(files[0])],
        cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_SEC,
    )  # fmt: skip
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.count("\n14 ") == len(replays[0].turns) + 1, "every position"


def test_an_engine_that_dies_is_named_with_what_it_did():
    done = evaluated("blokus", "--opponent", "random", "--gtp", f"{ENGINE} --fault dies", "--games", "2", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["pairs"][0]["battles"] == 0
    assert re.search("ended with exit code 3 at `genmove [bw]`; run it by hand to see why", done.stderr)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["blokus", "--opponent", "random", "--gtp", "/nowhere/engine -x"], "There is no program '/nowhere/engine'"),
        pytest.param(  # this one and the next: unit tests of gtp.py, each in a worker of its own here
            ["blokus", "--opponent", "random", "--gtp", ""],
            "Set blokus.gtp to its path and arguments",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ["blokus", "--opponent", "random", "--gtp", 'engine "'],
            "blokus.gtp is not a command line",
            marks=pytest.mark.slow,
        ),
        (["ofc", "--opponent", "random", "--gtp", "engine"], "there is no opponent 'gtp'"),
    ],
)
def test_engines_that_cannot_be_started_are_a_sentence(arguments, says, capfd):
    assert cli.main(["eval", *arguments]) == 2
    assert says in capfd.readouterr().err
