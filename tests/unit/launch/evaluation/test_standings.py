"""From the workers' sums to means, intervals and ratings."""

from __future__ import annotations

import math

import pytest

from simul.common.config.matchups import Contestant, Pairing
from simul.common.runtime.intervals import t_quantile
from simul.launch.evaluation.standings import (
    contestant_standings,
    pair_standings,
    seat_score,
    seats_text,
    standing_text,
)
from simul.launch.ratings.elo import beaten_share, elo_ratings

T_99 = t_quantile(99)  # 1.984
A, B, C = (Contestant(name, bot=name) for name in "abc")


def sums(games: int, score: float, square: float, prefix: str = "") -> dict[str, float]:
    names = {"score": score, "score_square": square, "rank": 1.5, "rank_square": 2.5, "win": 0.5,
             "figure.foul": 0.1, "figure_square.foul": 0.26}  # fmt: skip
    return {"games": games, **{f"{prefix}{name}": value for name, value in names.items()}}


def test_intervals_come_from_the_spread_of_games_or_of_mirrored_groups():
    alone = {"standings": {"0/first": sums(100, 2.0, 8.0), "0/second": sums(100, -2.0, 8.0)}}
    first = pair_standings(alone, 0)["first"]
    margin = T_99 * math.sqrt((8 - 4) * 100 / 99 / 100)
    assert first["mean_score"] == 2.0
    assert first["score_95"] == pytest.approx((2 - margin, 2 + margin))
    assert (first["games"], first["groups"], first["figures"]["foul"]) == (100, 0, 0.1)
    groups = sums(50, 2.0, 4.0, "first.") | {f"second.{n}": v for n, v in sums(50, -2.0, 5.0).items() if n != "games"}
    mirrored = {"standings": alone["standings"] | {"0/groups": groups}}
    assert pair_standings(mirrored, 0)["first"]["score_95"] is None, "groups are all alike"
    assert pair_standings(mirrored, 0)["second"]["score_95"][0] < -2.0
    assert "mean score 2.00, mean rank 1.50" in standing_text(pair_standings(mirrored, 0)["first"])
    assert pair_standings({}, 0) == {}


def test_games_that_come_again_do_not_make_an_interval_narrower():
    alone = {"standings": {"0/first": sums(100, 2.0, 8.0), "0/p1": {"games": 50, "score": 2.0, "score_square": 8.0}}}
    mirrored = {"standings": alone["standings"] | {"0/groups": sums(50, 2.0, 8.0, "first.")}}

    def widths(distinct):
        counted = {} if distinct is None else {"game_identities": [*range(distinct)]}
        found = [pair_standings(alone | counted, 0), pair_standings(mirrored | counted, 0)]
        intervals = [each["first"]["score_95"] for each in found]
        intervals += [seat_score(alone | counted, 0, 0, 2)["score_95"]]
        (over_all,) = contestant_standings(mirrored | counted, [Pairing(A, B, 100)])
        intervals += [over_all["score_95"]]
        return [None if each is None else each[1] - each[0] for each in intervals]

    assert widths(100) == widths(None)
    for narrow, wide in zip(widths(None), widths(10), strict=True):
        assert wide > 3 * narrow
    assert widths(1) == [None] * 4
    assert widths(2)[1:] == [None] * 3, "one pair, and one game at the seat"


def test_the_games_own_figures_have_intervals_from_the_same_spread():
    alone = {"standings": {"0/first": sums(100, 2.0, 8.0), "0/second": sums(100, -2.0, 8.0)}}
    first = pair_standings(alone, 0)["first"]
    margin = T_99 * math.sqrt(0.25 / 99)
    assert first["figures_95"]["foul"] == pytest.approx((0.1 - margin, 0.1 + margin))
    assert "; foul 0.100 (95%: 0.000 to 0.200)" in standing_text(first)
    groups = sums(50, 2.0, 4.0, "first.") | {"first.figure.foul": 0.1, "first.figure_square.foul": 0.01}
    games = {name: value for name, value in alone["standings"]["0/first"].items() if name != "figure_square.foul"}
    mirrored = {"standings": {"0/first": games, "0/groups": groups}}
    assert pair_standings(mirrored, 0)["first"]["figures_95"]["foul"] is None, "all alike"
    one = {"standings": {"0/first": games, "0/groups": groups | {"games": 1}}}
    assert pair_standings(one, 0)["first"]["figures_95"] == {"foul": None}, "one group has no spread"
    assert "; foul 0.100" in standing_text(pair_standings(one, 0)["first"])
    pairings = [Pairing(A, B, 100, seats=3), Pairing(A, C, 100, seats=3)]
    both = {"standings": {f"{index}/first": sums(100, 2.0, 8.0) for index in (0, 1)}}
    (found,) = contestant_standings(both, pairings)
    margin = t_quantile(199) * math.sqrt(0.25 / 199)
    assert found["figures_95"]["foul"] == pytest.approx((0.1 - margin, 0.1 + margin))


def test_few_games_have_wide_intervals_and_shares_stay_within_0_and_1():
    def described(games, **means):
        figures = {f"figure{part}.{name}": value for name, pair in means.items()
                   for part, value in zip(("", "_square"), pair)}  # fmt: skip
        return pair_standings({"standings": {"0/first": sums(games, 2.0, 5.0) | figures}}, 0)["first"]

    two = described(2, foul_rate=(0.5, 0.5), royalties=(0.5, 1.25))
    assert two["score_95"] == pytest.approx((2 - 12.706, 2 + 12.706), abs=1e-3), "t with one degree of freedom"
    assert two["figures_95"]["foul_rate"] == (0.0, 1.0)
    assert two["figures_95"]["royalties"] == pytest.approx((0.5 - 12.706, 0.5 + 12.706), abs=1e-3)
    few = described(6, foul_rate=(1 / 6, 1 / 6), alike=(0.1, 0.1 * 0.1))
    assert few["figures_95"]["foul_rate"] == pytest.approx((0.0, 1 / 6 + 2.5706 / 6), abs=1e-4)
    assert few["figures_95"]["alike"] is None, "no spread"


def test_a_seat_has_its_mean_score_with_the_interval_of_its_games():
    figures = {"standings": {"0/p1": {"games": 100, "score": 2.0, "score_square": 8.0},
                             "0/p2": {"games": 1, "score": -1.0, "score_square": 1.0}}}  # fmt: skip
    margin = T_99 * math.sqrt(4 / 99)
    first, second = seat_score(figures, 0, 0, 3), seat_score(figures, 0, 1, 3)
    assert first == {"mean_score": 2.0, "score_95": pytest.approx((2 - margin, 2 + margin))}
    assert second == {"mean_score": -1.0, "score_95": None}
    assert seat_score(figures, 0, 2, 3) == {}
    assert seats_text({"as_p1": first, "as_p2": second}) == "mean score by seat: p1 2.00 (95%: 1.60 to 2.40), p2 -1.00"
    assert seats_text({"as_p1": {"wins": 3}}) == ""


def test_a_contestant_is_described_over_everything_it_played():
    figures = {
        "standings": {
            "0/first": sums(100, 2.0, 8.0), "0/second": sums(100, -1.0, 2.0),
            "1/first": sums(300, 4.0, 20.0), "1/second": sums(300, 0.0, 1.0),
        }
    }  # fmt: skip
    found = contestant_standings(figures, [Pairing(A, B, 100, seats=3), Pairing(A, C, 300, seats=3)])
    assert [each["label"] for each in found] == ["a", "b", "c"]
    assert (found[0]["games"], found[0]["mean_score"]) == (400, 3.5)
    assert contestant_standings({}, [Pairing(A, B, 2)]) == []


def test_luck_that_all_pairings_share_is_not_averaged_away():
    """Mirrored games of both pairings have the same deals: with equal results two pairings say as much as one."""
    groups = sums(50, 2.0, 8.0, "first.")
    figures = {"standings": {f"{i}/{name}": part for i in (0, 1)
                             for name, part in (("first", sums(100, 2.0, 20.0)), ("groups", groups))}}  # fmt: skip
    (both,) = contestant_standings(figures, [Pairing(A, B, 100, seats=3), Pairing(A, C, 100, seats=3)])
    assert both["groups"] == 100
    assert both["score_95"] == pytest.approx(pair_standings(figures, 0)["first"]["score_95"])


def test_ratings_of_two_are_the_logit_of_their_score():
    high, low = elo_ratings(["a", "b"], [("a", "b", 1000, 0.75)])
    share = (750 + 0.5) / 1001
    assert high["elo"] - low["elo"] == pytest.approx(400 * math.log10(share / (1 - share)))
    assert (high["label"], high["elo"]) == ("a", pytest.approx(-low["elo"]))
    assert high["elo_95"][0] < high["elo"] < high["elo_95"][1]
    perfect = elo_ratings(["a", "b"], [("a", "b", 10, 1.0)])
    assert 0 < perfect[0]["elo"] < 1000, "the drawn game keeps it finite"
    assert elo_ratings(["a", "b"], [("a", "b", 0, 0.0)]) == []


def test_ratings_of_many_recover_those_that_the_scores_were_made_of():
    true = {"a": 300.0, "b": 100.0, "c": -50.0, "d": -350.0}
    pairs = [
        (one, other, 100_000, 1 / (1 + 10 ** ((true[other] - true[one]) / 400)))
        for one in true for other in true if one < other
    ]  # fmt: skip
    found = {each["label"]: each["elo"] for each in elo_ratings(list(true), pairs)}
    assert found == {label: pytest.approx(rating, abs=1.0) for label, rating in true.items()}


def test_a_share_beaten_counts_ties_half():
    outcomes = {"wins": 3, "losses": 1, "ties": 1, "truncated": 1}
    assert beaten_share(outcomes, None) == pytest.approx(4 / 6)
    assert beaten_share(outcomes, 0.25) == 0.25
