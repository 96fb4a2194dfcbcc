"""Payoffs and ratings as curves: plain names, a bounded number of them."""

from __future__ import annotations

import re

import pytest

from simul.launch.monitoring.curves import league_curves
from simul.launch.monitoring.curves.figures import Figure
from simul.launch.monitoring.curves.league_curves import MOST_MEMBERS, LeagueNames, league_figures, with_league
from simul.launch.ratings.league_file import read_league
from tests.support.league import write_league
from tests.support.recorded_run import snapshot


def figures(root, *members: str) -> dict[str, float]:
    write_league(root, members)
    return {figure.name: figure.value for figure in league_figures(read_league(root))}


def test_the_latest_self_has_one_name_whatever_its_version(tmp_path):
    found = figures(tmp_path, "past/100", "random", "learner@300")
    assert (found["league/policy_version"], found["league/rank"], found["league/members"]) == (300, 3, 3)
    assert found["league/elo_low/learner"] < found["league/elo/learner"] < found["league/elo_high/learner"]
    assert (found["league/win_rate/learner/past_100"], found["league/win_rate/past_100/learner"]) == (0.25, 0.75)
    assert found["league/win_rate_low/random/learner"] < 0.75 < found["league/win_rate_high/random/learner"]
    assert len(found) == 3 + 3 * 3 + 6 * 3


def test_scripted_players_come_before_past_selves_where_there_are_many(tmp_path):
    found = figures(tmp_path, *(f"past/{n}" for n in range(20)), "random")
    rated = [name.rpartition("/")[2] for name in found if name.startswith("league/elo/")]
    assert sorted(rated) == sorted(["learner", "random", *(f"past_{n}" for n in range(13, 19))])
    assert len(rated) == MOST_MEMBERS
    assert found["league/members"] == 21


def test_names_of_others_are_plain_short_and_distinct(tmp_path):
    found = figures(tmp_path, "a\nb,\x1b[31m", "a\nb;\x1b[31m", "x" * 300, "learner")
    assert all(re.fullmatch(r"[A-Za-z0-9_./#@-]+", name) and len(name) < 160 for name in found)
    assert len([name for name in found if name.startswith("league/elo/")]) == 4
    assert not any(name.startswith("league/rank") for name in found), "none is a self of the run"


def test_a_start_of_a_run_has_so_many_names_at_most_and_says_so_once(monkeypatch):
    monkeypatch.setattr(league_curves, "MOST_NAMES", 2)
    names = LeagueNames()
    three = [Figure("league/elo/<member>", 1.0, name) for name in "abc"]
    admitted, said = names.admit(three)
    assert ([figure.label for figure in admitted], len(said)) == (["a", "b"], 1)
    assert names.admit(three[1:]) == ([three[1]], [])


def test_a_file_that_was_read_later_replaces_the_figures_of_a_report(tmp_path):
    found = snapshot(figures={"league/elo/past_1": 5.0, "evaluation/score": 1.0})
    assert with_league(found, None) is found
    write_league(tmp_path)
    later = with_league(found, read_league(tmp_path)).figures
    assert "league/elo/past_1" not in later
    assert (later["evaluation/score"], later["league/policy_version"]) == (1.0, pytest.approx(300))
