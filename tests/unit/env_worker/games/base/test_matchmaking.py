"""Which past self is drawn: uniformly, or by how hard it is to beat."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from simul.common.config.game_description import POLICIES
from simul.common.config.schema import OpponentsConfig
from simul.env_worker.games.base.matchmaking import OpponentDraw, PastResults

SELVES = ("past/1", "past/2", "past/30")


def draw_of(past_by: str) -> OpponentDraw:
    opponents = OpponentsConfig(self_play=0.0, past=1.0, past_by=past_by)
    draw = OpponentDraw(opponents, POLICIES, 2)
    draw.set_policies(["learner", *SELVES, "eval/1"])
    return draw


def drawn(draw: OpponentDraw, games: int = 4000) -> Counter[str]:
    return Counter(draw.draw(0, random.Random(number)).past_self for number in range(games))


def test_without_games_all_past_selves_weigh_the_same():
    assert PastResults().weights(SELVES) == [0.25] * 3


def test_a_weight_is_the_square_of_the_share_that_was_not_won():
    results = PastResults()
    for outcome in (1, 0, None, -1):
        results.add("past/1", outcome)
    # One game that was tied before the first, and each game is worth 0.99 of the next one.
    won = 0.99**3 * 1 + 0.99**2 * 0.5 + 0.99 * 0.5
    rate = (won + 0.5) / (0.99**3 + 0.99**2 + 0.99 + 1 + 1)
    assert results.win_rate("past/1") == pytest.approx(rate)
    assert results.weights(["past/1"]) == [pytest.approx((1 - rate) ** 2)]


def test_old_games_are_forgotten_and_no_weight_ever_becomes_zero():
    results = PastResults()
    for outcome in [-1] * 1000 + [1] * 1000:
        results.add("past/1", outcome)
    assert 0.99 < results.win_rate("past/1") < 1.0
    assert results.weights(["past/1"])[0] > 0.0


def test_hard_draws_those_that_win_more_often_and_uniform_does_not_look_at_results():
    counts = {}
    for past_by in ("uniform", "hard"):
        draw = draw_of(past_by)
        for _ in range(200):
            draw.add_result("past/1", 1)
            draw.add_result("past/2", -1)
        draw.add_result("", 1)  # a game without a past self
        counts[past_by] = drawn(draw)
    assert all(count > 1200 for count in counts["uniform"].values())
    assert counts["hard"]["past/2"] > 3 * counts["hard"]["past/30"] > 30 * counts["hard"]["past/1"]


def test_equal_seeds_and_results_draw_equally():
    one, other = draw_of("hard"), draw_of("hard")
    for draw in (one, other):
        draw.add_result("past/30", -1)
    assert [one.draw(0, random.Random(n)) for n in range(50)] == [other.draw(0, random.Random(n)) for n in range(50)]


def test_a_frozen_opponent_plays_all_other_seats_and_the_learner_alone_learns():
    opponents = OpponentsConfig(self_play=0.0, frozen=1.0, checkpoint="zoo:x")
    matchup = OpponentDraw(opponents, POLICIES, 3).draw(1, random.Random(1))
    assert [seat.policy for seat in matchup.seats] == ["frozen", "learner", "frozen"]
    assert (matchup.opponent, matchup.past_self, matchup.learns) == ("frozen", "", (False, True, False))
