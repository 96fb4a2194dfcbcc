"""Everybody against everybody else, spread over workers with even seats."""

from __future__ import annotations

from collections import Counter

import pytest

from simul.common.config.matchups import (
    Contestant,
    Pairing,
    decode_pairings,
    distinct_labels,
    encode_pairings,
    round_robin,
    share_out,
)

A, B = Contestant("a@1", policy="learner"), Contestant("b@2", policy="eval/1")
BOT = Contestant("random", bot="random")


def test_a_round_robin_pairs_everybody_once():
    pairings = round_robin([A, B, BOT], 10)
    assert [(pairing.first, pairing.second) for pairing in pairings] == [(A, B), (A, BOT), (B, BOT)]
    assert {pairing.battles for pairing in pairings} == {10}


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
@pytest.mark.parametrize("battles", [1, 5, 40])
def test_shares_add_up_and_keep_the_seats_even(workers, battles):
    shares = share_out(round_robin([A, B, BOT], battles), workers)
    assert len(shares) == workers
    for pairing in range(3):
        parts = [share[pairing] for share in shares]
        assert sum(part.battles for part in parts) == battles
        seats = Counter(part.first_seat(battle) for part in parts for battle in range(part.battles))
        assert abs(seats[0] - seats[1]) <= 1


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
@pytest.mark.parametrize(
    ("seats", "battles"), [(1, 5), (2, 1), (2, 2), (2, 5), (2, 40), (3, 2), (3, 31), (4, 8)]
)  # fmt: skip
def test_battles_with_the_same_seeds_stay_with_one_worker_and_the_first_has_each_seat_once(seats, battles, workers):
    groups: dict[int | None, list[tuple[int, int]]] = {}
    for worker, (part,) in enumerate(share_out([Pairing(A, BOT, battles, seats=seats)], workers)):
        for battle in range(part.battles):
            first, seated = part.first_seat(battle), part.seated(battle)
            assert (seated[first], seated.count(BOT)) == (A, seats - 1)
            groups.setdefault(part.mirror(battle), []).append((worker, first))
    assert sum(map(len, groups.values())) == battles
    assert sorted(groups) == list(range(-(-battles // seats)))
    assert {len({worker for worker, _ in group}) for group in groups.values()} == {1}
    whole = [sorted(first for _, first in group) for group in groups.values() if len(group) == seats]
    assert whole == [list(range(seats))] * (battles // seats), "only the last group has fewer"
    assert Pairing(A, BOT, battles, mirrored=False).mirror(0) is None


def test_who_is_named_again_has_a_label_of_its_own():
    assert distinct_labels(["random", "mcts", "random", "random"]) == ["random", "mcts", "random#2", "random#3"]
    assert distinct_labels(["a", "a", "a#2"]) == ["a", "a#2", "a#2#2"]


def test_they_travel_on_a_command_line():
    pairings = share_out(round_robin([A, B, BOT], 5), 2)[1]
    assert decode_pairings(encode_pairings(pairings)) == pairings
    assert pairings[0] == Pairing(A, B, 1, 4)
    unlike = share_out(round_robin([A, B], 5, mirrored=False), 1)[0]
    assert decode_pairings(encode_pairings(unlike)) == [Pairing(A, B, 5, mirrored=False)]
