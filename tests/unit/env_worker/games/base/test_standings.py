"""Scores and ranks of the seats, and their means over games and groups."""

from __future__ import annotations

import pytest

from simul.env_worker.games.base.standings import Standings, outcome, seat_values


@pytest.mark.parametrize(
    ("returns", "ranks", "duels"),
    [
        ([3.0, 1.0, 2.0], [1, 3, 2], [1, 0, 0.5]),
        ([2.0, 2.0, 1.0], [1.5, 1.5, 3], [0.75, 0.75, 0]),
        ([0.0, 0.0, 0.0], [2, 2, 2], [0.5, 0.5, 0.5]),
        ([1.0, -1.0], [1, 2], [1, 0]),
    ],
)
def test_ranks_are_shared_and_duels_are_the_share_beaten(returns, ranks, duels):
    values = [seat_values(seat, returns, {"foul": [1.0] * len(returns)}) for seat in range(len(returns))]
    assert [value["rank"] for value in values] == ranks
    assert [value["duel"] for value in values] == duels
    assert [value["win"] for value in values] == [float(rank == 1) for rank in ranks]
    assert values[0]["figure.foul"] == 1.0


def test_first_place_alone_wins_and_a_shared_one_ties():
    assert [outcome(seat, [3.0, 3.0, 1.0]) for seat in range(3)] == [0, 0, -1]
    assert [outcome(seat, [3.0, 2.0, 1.0]) for seat in range(3)] == [1, -1, -1]


def test_groups_are_counted_when_every_game_of_them_is_over():
    standings = Standings()
    standings.add(0, 0, [6.0, 0.0, 3.0], {}, (0, 7))
    standings.add(0, 1, [0.0, 3.0, 0.0], {}, (0, 7))
    assert "0/groups" not in standings.figures()
    standings.add(0, 2, [0.0, 9.0, 0.0], {}, (0, 7))
    found = standings.figures()
    assert found["0/first"]["games"] == found["0/second"]["games"] == 3
    assert found["0/first"]["score"] == 3.0
    assert found["0/first"]["score_square"] == 15.0
    assert found["0/second"]["score"] == pytest.approx((1.5 + 0 + 4.5) / 3)
    assert (found["0/groups"]["games"], found["0/groups"]["first.score"]) == (1, 3.0)
    assert found["0/groups"]["first.score_square"] == 9.0
    standings.add(1, 0, [1.0, 0.0], {}, None)
    assert "1/groups" not in standings.figures()
