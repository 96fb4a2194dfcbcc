"""`simul league --games`: a call that is killed keeps the pairs that were over, and the next one plays the others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from simul.common.config.loader import load_game
from simul.common.config.trust import NOTHING
from simul.common.runtime.installation import ROOT
from simul.env_worker.games.loading import game_spec
from tests.support.checkpoints import write_checkpoint
from tests.support.waiting import PATIENCE_SEC

pytestmark = pytest.mark.slow
CONFIG = "{game: openspiel, opponents: {self_play: 0.8, random: 0.2}, network: {options: {hidden: 16}}}"


def league(run: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "simul.launch.cli", "league", str(run), *arguments]


def test_a_killed_call_loses_the_pair_in_progress_only(tmp_path):
    spec = game_spec(load_game("openspiel"), NOTHING)
    run = tmp_path / "run"
    for version, folder in ((3, "past/000000003"), (9, "past/000000009"), (12, "000000012")):
        write_checkpoint(run / "checkpoints" / folder, spec, version)
    (run / "config.yaml").write_text(CONFIG)
    with subprocess.Popen(
        league(run, "--games", "10"), cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as first:
        assert first.stderr is not None
        for line in first.stderr:
            if line.startswith("pair 3 of 6"):
                break
        os.kill(first.pid, signal.SIGKILL)
    kept = json.loads((run / "league.json").read_text())["pairs"]
    assert [pair["scheduled"] for pair in kept] == [10, 10]
    second = subprocess.run(
        league(run, "--games", "10", "--json", "--picture", str(tmp_path / "league.svg")),
        cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_SEC,
    )  # fmt: skip
    assert second.returncode == 0, second.stderr
    figures = json.loads(second.stdout)
    assert len(figures["pairs"]) == 6
    assert all(pair["battles"] == 10 and pair["openings"] == 4 for pair in figures["pairs"])
    assert json.loads((run / "league.json").read_text())["pairs"][:2] == kept
    assert {rating["label"]: rating["games"] for rating in figures["ratings"]} == dict.fromkeys(
        ["learner@12", "past/3", "past/9", "random"], 30
    )
    assert (tmp_path / "league.svg").read_text().count("past/3") >= 1
