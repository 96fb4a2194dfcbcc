"""`simul status`: the ratings of a league; `simul down`: which summary it names."""

from __future__ import annotations

import json
import os
import re
import time

import pytest

from simul.common.errors import ConfigError
from simul.common.role.run_directory import RunDir
from simul.common.runtime.private_files import written_since
from simul.launch.commands.status import status
from simul.launch.monitoring.profiling.profiler import Profiler
from simul.launch.monitoring.snapshot import StatusFile
from simul.launch.ratings.pair_results import LEAGUE_FILE, PairResult, add_result
from tests.support.recorded_run import snapshot


def test_only_a_summary_of_this_stop_is_named(tmp_path):
    summary = tmp_path / "summary.json"
    now = time.time()
    assert not written_since(summary, now)
    summary.touch()
    os.utime(summary, (now - 60, now - 60))
    assert not written_since(summary, now)
    os.utime(summary, (now + 1, now + 1))
    assert written_since(summary, now)


def test_ratings_of_the_league_stand_below_the_figures_and_a_damaged_file_is_a_sentence(tmp_path, capsys):
    run_dir = RunDir(tmp_path)
    StatusFile(run_dir, print).write(snapshot())
    assert status(tmp_path, as_json=False) == 3
    assert "Elo" not in capsys.readouterr().out
    played = PairResult("a", "bot:random", "0" * 16, 2, 10, 9, 1, 0, 0, beaten=9.0)
    add_result(tmp_path / LEAGUE_FILE, {"a": "past/7", "bot:random": "random"}, played)
    assert status(tmp_path, as_json=False) == 3
    shown = capsys.readouterr().out
    assert re.search(r"league +version 7: Elo \+\d+ \(95%: [+-]\d+ to \+\d+\), rank 1 of 2", shown)
    assert re.search(r"past/7 +\+\d+ +0\.90 *\n +[+-]\d+ to \+\d+ +0\.60-0\.98", shown)
    assert status(tmp_path, as_json=True) == 3
    found = json.loads(capsys.readouterr().out)
    assert [each["label"] for each in found["league"]] == ["past/7", "random"]
    assert [(each["first"], each["win_rate"]) for each in found["payoffs"]] == [("past/7", 0.9), ("random", 0.1)]
    (tmp_path / LEAGUE_FILE).write_text("[]")
    assert status(tmp_path, as_json=False) == 3
    assert "Move it away, or name another file." in " ".join(capsys.readouterr().out.split())


def test_the_status_of_another_version_says_which_one_reads_it(tmp_path):
    (tmp_path / "status.json").write_text('{"phase": 1}')
    with pytest.raises(ConfigError, match=r"not a status of this version .* Use `simul status` of the checkout that "):
        status(tmp_path, as_json=False)
    profiler = Profiler(RunDir(tmp_path), lambda: "", 1.0)
    with pytest.raises(ConfigError, match=r"not a status of this version .* Use `simul profile` of .* or stop it with"):
        profiler.begin(warm_up=False)
