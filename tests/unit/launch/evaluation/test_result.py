"""What an evaluation found: intervals, and what counts as a win."""

from __future__ import annotations

from pathlib import Path

import pytest

from simul.common.config.matchups import IDENTITY_BITS, Contestant, Pairing, round_robin
from simul.common.runtime.intervals import t_quantile, wilson
from simul.launch.evaluation.openings import opening_figures
from simul.launch.evaluation.result import build_result, count_pairs, result_text
from simul.launch.ratings.mirrored_games import OUTCOMES, count_groups

A, RANDOM = Contestant("a@1", policy="learner"), Contestant("random", bot="random")
AGAINST_RANDOM = Pairing(A, RANDOM, 10)


def result_of(figures, pairings=(), wanted=10, version=3, contestants=None):
    contestants = contestants or ([A, RANDOM] if pairings else [A])
    return build_result(figures, contestants, pairings, wanted, {"learner": Path("/x")}, {"learner": version}, "game")


def test_wilson_against_published_values():
    # Newcombe 1998, table I: 81 of 263 and 15 of 148, Wilson without continuity correction.
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert wilson(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("freedom", "t"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (9, 2.262), (29, 2.045), (120, 1.980), (1001, 1.962), (10**4, 1.960)],
)
def test_quantiles_of_t_against_published_values(freedom, t):
    assert t_quantile(freedom) == pytest.approx(t, abs=6e-4)


def test_the_mean_return_has_the_interval_of_its_spread():
    # Mean 3, standard deviation sqrt(2.5), t = 2.776 with 4 degrees of freedom: 3 +- 1.963.
    figures = {
        "episodes": {"finished": 5}, "returns": {"mean": 3.0, "mean_square": 11.0, "count": 5},
        "episode_returns": [1.0, 2.0, 3.0, 4.0, 5.0],
    }  # fmt: skip
    result = result_of(figures, wanted=5)
    assert result["std_return"] == pytest.approx(2.5**0.5)
    assert result["t_95"] == pytest.approx((1.037, 4.963), abs=1e-3)
    assert (result["lowest_return"], result["highest_return"]) == (1.0, 5.0)
    assert "mean return 3.00 (95%: 1.04 to 4.96, Student's t) over 5 greedy episodes" in result_text(result)


def test_one_episode_has_no_interval_and_returns_that_are_not_all_listed_no_extremes():
    figures = {"episodes": {"finished": 1}, "returns": {"mean": 3.0, "mean_square": 9.0, "count": 1}}
    result = result_of(figures, wanted=1)
    assert (result["mean_return"], result["t_95"]) == (3.0, None)
    assert (result["lowest_return"], result["highest_return"]) == (None, None)
    assert "mean return 3.00 over 1 greedy" in result_text(result)
    none = result_of({"episodes": {}}, wanted=1)
    assert none["mean_return"] is None
    assert "mean return none" in result_text(none)


def test_ties_and_truncated_games_are_not_wins():
    results = {"0/p1": {"wins": 4, "losses": 1}, "0/p2": {"wins": 2, "losses": 1, "ties": 1, "truncated": 1}}
    figures = {"results": results, "episodes": {"finished": 10}, "mirrored": {"0": {"0": 1, "1": 2, "2": 2}}}
    result = result_of(figures, [AGAINST_RANDOM])
    assert result["win_rate"] == 0.6
    assert result["episodes"] == 10
    assert result["wilson_95"] == wilson(6, 10)
    (pair,) = result["pairs"]
    assert (pair["as_p1"]["wins"], pair["as_p2"]["wins"]) == (4, 2)
    words = result_text(result)
    assert "6 wins, 2 losses, 1 ties, 1 truncated" in words
    assert "5 pairs of the same battle from both sides: 2 both won, 2 one, 1 none" in words


def pairs_of(found, distinct=None):
    return count_pairs(count_groups(found, 2, distinct))


def test_pairs_that_come_again_do_not_make_the_interval_narrower():
    found = {"0": 50, "1": 100, "2": 50}
    widths = [high - low for low, high in (pairs_of(found, distinct)["normal_95"] for distinct in (None, 400, 40, 21))]
    assert widths[0] == widths[1] < widths[2] / 3 < widths[3] / 3
    assert pairs_of(found, 2)["normal_95"] is None, "the games of one pair"
    repeated = opened({"0": 30, "1": 40, "2": 30}, 100, [1, 2], plies=0)
    assert "40 one, 30 none" in result_text(repeated)
    assert "from their spread" not in result_text(repeated)


def test_the_interval_of_mirrored_battles_follows_what_the_two_have_in_common():
    # Means 0, 1/2 six times, 1, of mean 0.5 and variance 1/14: 0.5 +- 2.365 * sqrt(1/112), t with 7 degrees of freedom.
    found = pairs_of({"0": 1, "1": 6, "2": 1})
    assert (found["complete"], found["none_won"], found["one_won"], found["both_won"]) == (8, 1, 6, 1)
    assert found["win_rate"] == 0.5
    assert found["normal_95"] == pytest.approx((0.2766, 0.7234), abs=1e-4)
    assert pairs_of({"0": 1, "1": 1})["normal_95"] == (0.0, 1.0), "two pairs say next to nothing"
    low, high = wilson(100, 200)
    assert pairs_of({"1": 100})["normal_95"] is None, "the better side always wins: pairs show no spread"
    alike = pairs_of({"0": 50, "2": 50})["normal_95"]
    assert alike[0] < low < high < alike[1], "the second battle tells nothing new"
    assert pairs_of({"2": 1})["normal_95"] is None
    assert pairs_of({})["win_rate"] is None


def opened(mirrored, wins, identities=(), plies=4):
    results = {"0/p1": {"wins": wins, "losses": 200 - wins}}
    figures = {"results": results, "episodes": {"finished": 200}, "mirrored": {"0": mirrored}, "opening_plies": plies,
               "game_identities": [*identities, 1 << IDENTITY_BITS | 5]}  # fmt: skip
    return result_of(figures, [Pairing(A, RANDOM, 200)], 200)


def test_with_openings_the_interval_is_that_of_as_many_games_as_the_pairs_are_worth():
    alike = opened({"0": 40, "2": 60}, 120)
    assert alike["pairs"][0]["effective_games"] == pytest.approx(100), "the second game of a pair tells nothing new"
    assert alike["wilson_95"] == alike["pairs"][0]["wilson_95"] == pytest.approx(wilson(60, 100))
    assert opened({"0": 16, "1": 48, "2": 36}, 120)["pairs"][0]["effective_games"] == pytest.approx(200)
    assert opened({"1": 100}, 100)["wilson_95"] == wilson(100, 200), "the first to move always wins"
    assert opened({"2": 100}, 200)["wilson_95"] == wilson(100, 100), "nothing shows what the two have in common"
    assert opened({"0": 40, "2": 60}, 120, plies=0)["wilson_95"] == wilson(120, 200)


def test_the_first_line_says_how_games_began_and_how_many_differ():
    result = opened({"0": 40, "2": 60}, 120, [*range(150), *range(50)])
    assert (result["openings"], result["pairs"][0]["distinct_games"]) == (4, 150)
    said = "each opening of up to 4 random plies is played from every seat; 150 of 200 games are distinct"
    assert result_text(result).splitlines()[0] == said
    single = opened({"0": 40, "2": 60}, 120, [*range(150), *range(50)], plies=1)
    assert result_text(single).startswith("each opening of up to 1 random ply is played from every seat; 150 of 200 ")
    repeated = opened({"0": 40, "2": 60}, 120, [1, 2], plies=0)
    assert result_text(repeated).startswith("2 of 200 games are distinct, the others repeat them: --openings N")
    assert repeated["wilson_95"] == wilson(1.2, 2), "a game that comes again tells nothing new"
    assert result_text(result_of({}, [AGAINST_RANDOM])).startswith("version 3 against random")


def test_games_are_counted_only_where_every_worker_has_listed_its_own():
    assert opening_figures([4, 4], [[1], [2, 3]]) == {"opening_plies": 4, "game_identities": [1, 2, 3]}
    assert opening_figures([4, 4], [[1]]) == {"opening_plies": 4}
    assert opening_figures([], []) == {}


def test_without_mirrored_battles_nothing_is_said_of_pairs():
    pairing = Pairing(A, RANDOM, 2, mirrored=False)
    figures = {"results": {"0/p1": {"wins": 2}}, "episodes": {"finished": 2}}
    result = result_of(figures, [pairing], 2)
    (pair,) = result["pairs"]
    assert not pair["mirrored"]
    assert pair["pairs"] is None
    assert "both sides" not in result_text(result)


def test_games_of_three_are_counted_by_group_and_described_by_score():
    pairing = Pairing(A, RANDOM, 6, seats=3)
    figures = {
        "results": {"0/p1": {"wins": 2}, "0/p2": {"wins": 1, "losses": 1}, "0/p3": {"losses": 2}},
        "mirrored": {"0": {"1": 1, "2": 1}},
        "standings": {"0/first": {"games": 6, "score": 1.5, "score_square": 4.0, "rank": 1.5, "rank_square": 2.5,
                                  "win": 0.5, "duel": 0.75, "figure.foul": 0.25},
                      "0/p2": {"games": 2, "score": 0.5, "score_square": 0.25}},
    }  # fmt: skip
    result = result_of(figures, [pairing], 6)
    (pair,) = result["pairs"]
    assert [pair[f"as_p{seat}"]["wins"] for seat in (1, 2, 3)] == [2, 1, 0]
    assert pair["pairs"] is None
    groups = pair["groups"]
    assert (groups["complete"], groups["won"], groups["win_rate"]) == (2, {"0": 0, "1": 1, "2": 1, "3": 0}, 0.5)
    assert groups["normal_95"] == (0.0, 1.0), "0.5 +- 12.7 / 6"
    assert pair["standings"]["first"]["figures"] == {"foul": 0.25}
    assert "mean score 1.50 (95%: " in result_text(result)
    assert "2 groups of the same game from each of 3 seats; means have intervals over them" in result_text(result)
    assert "foul 0.250" in result_text(result)
    assert pair["as_p2"] == {"wins": 1, "losses": 1, "ties": 0, "truncated": 0, "mean_score": 0.5,
                               "score_95": None}  # fmt: skip
    assert "\nmean score by seat: p2 0.50" in result_text(result)


def test_missing_games_are_named():
    result = result_of({}, [AGAINST_RANDOM], version=None)
    assert result["win_rate"] is None
    assert "10 of 10 episodes were not played" in result_text(result)
    assert "mean return none" in result_text(result_of({}, wanted=1, version=0))


def test_the_shape_is_the_same_for_no_opponent_one_and_many():
    other, twice = Contestant("b@2", policy="eval/1"), Contestant("random#2", bot="random")
    served = {"learner": Path("/x"), "eval/1": Path("/y")}
    shapes = {
        frozenset(build_result({}, contestants, round_robin(contestants, 4), 4, served, {}, "game"))
        for contestants in ([A], [A, RANDOM], [A, other, RANDOM], [RANDOM, twice])
    }
    assert len(shapes) == 1
    shaped = [(mirrored, seats) for mirrored in (True, False) for seats in (2, 3)]
    tables = [round_robin([A, RANDOM], 6, mirrored=mirrored, seats=seats) for mirrored, seats in shaped]
    pairs = [build_result({}, [A, RANDOM], each, 6, served, {}, "game")["pairs"][0] for each in tables]
    assert {frozenset(key for key in pair if not key.startswith("as_p")) for pair in pairs} == {
        frozenset(("first", "second", "wanted", "battles", *OUTCOMES, "win_rate", "wilson_95", "mirrored", "pairs",
                   "groups", "standings", "effective_games", "distinct_games"))
    }  # fmt: skip
    alone = result_of({"episodes": {"finished": 4}})
    assert (alone["pairs"], alone["ratings"], alone["standings"], alone["win_rate"]) == ([], [], [], None)
    figures = {"results": {"0/p1": {"wins": 2}, "1/p1": {"wins": 1, "losses": 1}, "2/p1": {"losses": 2}}}
    contestants = [A, other, RANDOM]
    many = build_result(figures, contestants, round_robin(contestants, 2), 6, served, {"learner": 1}, "game")
    assert (many["wins"], many["losses"], many["win_rate"], many["wilson_95"]) == (3, 1, 0.75, wilson(3, 4))
    assert (many["policy_version"], many["episodes"], many["mean_return"]) == (1, 6, None)
