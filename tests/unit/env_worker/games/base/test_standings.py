"""Scores and ranks of the seats, and their means over games and groups."""

from __future__ import annotations

import msgspec
import pytest

from simul.common.protocol.codec import MAX_HEADER_BYTES
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
    assert [found[f"0/p{seat}"]["score"] for seat in (1, 2, 3)] == [6.0, 3.0, 0.0]
    assert found["0/p1"]["score_square"] == 36.0
    standings.add(1, 0, [1.0, 0.0], {}, None)
    assert "1/groups" not in standings.figures()


def test_squares_of_the_games_own_figures_are_kept_where_their_intervals_come_from():
    standings = Standings()
    for seat, foul in enumerate([1.0, 2.0]):
        standings.add(0, seat, [1.0, 0.0], {"foul": [foul, foul], "foul_square": [7.0, 7.0]}, (0, 7))
        standings.add(1, seat, [1.0, 0.0], {"foul": [foul, foul]}, None)
    found = standings.figures()
    assert found["1/first"]["figure_square.foul"] == found["1/second"]["figure_square.foul"] == 2.5
    assert found["0/groups"]["first.figure.foul"] == found["0/groups"]["second.figure.foul"] == 1.5
    assert found["0/groups"]["first.figure_square.foul"] == 2.25
    assert found["0/groups"]["first.figure.foul_square"] == 7.0, "a figure of that name is another"
    assert "figure_square.foul" not in found["0/first"], "the groups have them"


def test_a_report_of_seven_contestants_with_the_figures_of_ofc_fits_a_message():
    names = ("foul_rate", "royalties_per_hand", "royalties_top", "royalties_middle", "royalties_bottom",
             "fantasyland_entry", "fantasyland_stay", "fantasyland_hands", "score_per_hand")  # fmt: skip
    standings = Standings()
    for pairing in range(7 * 6 // 2):
        for seat in range(3):
            figures = {name: [0.1, 0.2, 0.3] for name in names}
            standings.add(pairing, seat, [0.1, 0.2, 0.3], figures, (pairing, 0))
    assert len(msgspec.msgpack.encode(standings.figures())) < 0.9 * MAX_HEADER_BYTES
