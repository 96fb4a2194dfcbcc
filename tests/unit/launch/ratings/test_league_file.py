"""league.json as it is shown: the latest self first, every number with its interval, read again where it changed."""

from __future__ import annotations

import json
import math
import sys

import pytest

from simul.common.errors import ConfigError
from simul.common.runtime.intervals import wilson
from simul.launch.ratings import pair_results
from simul.launch.ratings.league_file import LOOK_EVERY_SEC, LeagueFile, read_league
from tests.support.league import write_league
from tests.support.waiting import wait_for


def labels(members) -> list[str]:
    return [member["label"] for member in members]


def test_the_latest_self_is_first_and_scripted_players_are_last(tmp_path):
    assert read_league(tmp_path) is None
    write_league(tmp_path)
    league = read_league(tmp_path)
    assert labels(league.members) == ["learner@300", "past/200", "past/100", "random"]
    assert labels(league.best_first) == ["past/100", "random", "learner@300", "past/200"]
    assert league.latest == 300
    rate = league.rates["random", "past/100"]
    assert (rate.games, rate.wins, rate.win_rate) == (100, 25, 0.25)
    assert (rate.low, rate.high) == pytest.approx(wilson(25, 100))
    low, high = league.members[0]["elo_95"]
    assert low < league.members[0]["elo"] < high
    assert len(league.payoffs) == 12


def test_players_that_are_no_selves_of_the_run_have_no_latest_one(tmp_path):
    write_league(tmp_path, ["random", "runs/a", "past/x", "learner@-1"])
    league = read_league(tmp_path)
    assert league.latest is None
    assert labels(league.members) == labels(league.best_first)


def test_a_watched_file_is_read_where_it_changed_and_its_last_figures_outlive_a_damaged_one(tmp_path):
    file = LeagueFile(tmp_path)
    assert not file.poll()
    write_league(tmp_path)
    assert file.poll()
    assert not file.poll()
    assert len(file.figures.members) == 4
    path = write_league(tmp_path, ["past/1", "past/22"])
    assert file.poll()
    assert labels(file.figures.members) == ["past/22", "past/1"]
    path.write_text("[" * 100)
    assert file.poll()
    assert file.fault.endswith("Move it away, or name another file.")
    assert len(file.figures.members) == 2
    path.unlink()
    assert file.poll()
    assert (file.figures, file.fault) == (None, "")


def test_a_loop_has_it_read_by_a_thread(tmp_path):
    file = LeagueFile(tmp_path)
    write_league(tmp_path)
    assert not file.poll_beside(0.0)
    wait_for(lambda: file.poll_beside(0.0))
    assert len(file.figures.members) == 4
    write_league(tmp_path, ["past/1", "past/22"])
    assert not file.poll_beside(LOOK_EVERY_SEC / 2), "looks only so often"
    assert len(file.figures.members) == 4
    wait_for(lambda: file.poll_beside(LOOK_EVERY_SEC))
    assert len(file.figures.members) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_a_watched_file_that_is_a_link_is_refused(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "league.json").symlink_to(write_league(tmp_path))
    file = LeagueFile(run)
    assert file.poll()
    assert "cannot be read" in file.fault
    assert file.figures is None


def test_counts_as_large_as_a_file_may_hold_give_finite_ratings(tmp_path, monkeypatch):
    monkeypatch.setattr(pair_results, "MOST_CONTESTANTS", 30)
    write_league(tmp_path, [f"past/{n}" for n in range(31)], games=10**9, share=1.0)
    league = read_league(tmp_path)
    assert len(league.members) == 30
    assert all(map(math.isfinite, [number for member in league.members for number in member["elo_95"]]))


def test_what_is_wrong_with_a_file_is_short_whatever_is_in_it(tmp_path):
    (tmp_path / "league.json").write_text(json.dumps({"x" * 100_000: 1}))
    with pytest.raises(ConfigError, match="does not hold results of pairs") as refused:
        read_league(tmp_path)
    assert len(str(refused.value)) < 600
