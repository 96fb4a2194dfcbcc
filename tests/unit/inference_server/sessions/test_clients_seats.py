"""The seat map against a dict, with numbers that are small, huge and negative."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simul.inference_server.sessions.clients import MOST_CELLS, NO_SLOT, SeatIndex

numbers = st.one_of(st.integers(-2, 9), st.sampled_from([300, MOST_CELLS - 1, MOST_CELLS, -(2**63), 2**63 - 1]))
seats = st.tuples(numbers, numbers)


@given(st.lists(st.tuples(seats, st.booleans()), max_size=60))
def test_it_holds_what_a_dict_holds(changes: list[tuple[tuple[int, int], bool]]) -> None:
    seat_map, model = SeatIndex(), dict[tuple[int, int], int]()
    for slot, (seat, begins) in enumerate(changes):
        if seat in model:
            seat_map.remove_seat(*seat)
            del model[seat]
        elif begins:
            seat_map.add_seat(*seat, slot)
            model[seat] = slot
    assert len(seat_map) == len(model)
    assert seat_map.slots == sorted(model.values())
    asked = [seat for seat, _ in changes]
    guesses = seat_map.guess_slots(np.array([(*seat, 0, 0, 0) for seat in asked], np.int64).reshape(-1, 5))
    for seat, guess in zip(asked, guesses.tolist()):
        assert seat_map.get(*seat) == model.get(seat, NO_SLOT)
        assert seat not in model or guess == model[seat]


def test_a_client_with_huge_numbers_costs_no_more_than_its_sessions() -> None:
    seat_map = SeatIndex()
    for env in range(10):
        seat_map.add_seat(env * 10**15, 0, env)
    assert seat_map._dense.size <= MOST_CELLS
    assert [seat_map.get(env * 10**15, 0) for env in range(10)] == list(range(10))
