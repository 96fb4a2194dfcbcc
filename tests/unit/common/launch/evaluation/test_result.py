"""What an evaluation found: intervals, and what counts as a win."""

from __future__ import annotations

import pytest

from simul.common.config.matchups import Contestant, Pairing
from simul.common.launch.evaluation.result import (
    build_result,
    count_pairs,
    result_text,
)
from simul.common.launch.monitoring.intervals import wilson

AGAINST_RANDOM = Pairing(Contestant("a@1", policy="learner"), Contestant("random", bot="random"), 10)


def test_wilson_against_published_values():
    # Newcombe 1998, table I: 81 of 263 and 15 of 148, Wilson without continuity correction.
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert wilson(0, 0) == (0.0, 1.0)


def test_wilson_stays_inside_and_around_the_rate():
    for games in (1, 7, 1000):
        for wins in {0, games // 2, games}:
            low, high = wilson(wins, games)
            assert 0.0 <= low <= wins / games <= high <= 1.0


def test_ties_and_truncated_games_are_not_wins(tmp_path):
    results = {"0/p1": {"wins": 4, "losses": 1}, "0/p2": {"wins": 2, "losses": 1, "ties": 1, "truncated": 1}}
    figures = {"results": results, "episodes": {"finished": 10}, "mirrored": {"0": {"0": 1, "1": 2, "2": 2}}}
    result = build_result(figures, AGAINST_RANDOM, 10, checkpoint=tmp_path, version=3)
    assert result["win_rate"] == 0.6
    assert result["episodes"] == 10
    assert result["wilson_95"] == wilson(6, 10)
    assert (result["as_p1"]["wins"], result["as_p2"]["wins"]) == (4, 2)
    words = result_text(result)
    assert "6 wins, 2 losses, 1 ties, 1 truncated" in words
    assert "5 pairs of the same battle from both sides: 2 both won, 2 one, 1 none" in words


def test_the_interval_of_mirrored_battles_follows_what_the_two_have_in_common():
    # Means 0, 1/2, 1/2, 1, of mean 0.5 and variance 1/6: 0.5 +- 1.96 * sqrt(1/24).
    found = count_pairs({"0": 1, "1": 2, "2": 1})
    assert (found["complete"], found["none_won"], found["one_won"], found["both_won"]) == (4, 1, 2, 1)
    assert found["win_rate"] == 0.5
    assert found["normal_95"] == pytest.approx((0.1, 0.9), abs=1e-3)
    low, high = wilson(100, 200)
    assert count_pairs({"1": 100})["normal_95"] == (0.5, 0.5), "the better side always wins"
    alike = count_pairs({"0": 50, "2": 50})["normal_95"]
    assert alike[0] < low < high < alike[1], "the second battle tells nothing new"
    assert count_pairs({"2": 1})["normal_95"] is None
    assert count_pairs({})["win_rate"] is None


def test_without_mirrored_battles_nothing_is_said_of_pairs(tmp_path):
    pairing = Pairing(Contestant("a"), Contestant("random"), 2, mirrored=False)
    figures = {"results": {"0/p1": {"wins": 2}}, "episodes": {"finished": 2}}
    result = build_result(figures, pairing, 2, checkpoint=tmp_path, version=3)
    assert not result["mirrored"]
    assert "pairs" not in result
    assert "both sides" not in result_text(result)


def test_missing_games_are_named(tmp_path):
    result = build_result({}, AGAINST_RANDOM, 10, checkpoint=tmp_path, version=None)
    assert result["win_rate"] is None
    assert "10 of 10 episodes were not played" in result_text(result)
    assert "mean return none" in result_text(build_result({}, None, 1, checkpoint=tmp_path, version=0))
