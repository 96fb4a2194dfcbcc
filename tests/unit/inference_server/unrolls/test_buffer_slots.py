"""No place is lost, freed twice, or written while the learner may read it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simul.inference_server.unrolls.buffer import UnrollSlots

ROWS, SPARES = 3, 4


@given(st.lists(st.integers(0, ROWS + SPARES - 1), max_size=60))
def test_every_place_is_a_rows_or_lent_or_spare(moves: list[int]) -> None:
    serial = np.zeros(ROWS + SPARES, np.int64)
    slots, lent, serials = UnrollSlots(ROWS, serial), [], set()
    for move in moves:
        if move < ROWS:
            before = int(slots.of_row[move])
            found = slots.lend(move)
            if len(lent) == SPARES:
                assert found is None
                assert slots.of_row[move] == before
            else:
                assert found is not None
                assert found[0] == before != slots.of_row[move]
                assert serial[before] == found[1] not in serials
                serials.add(found[1])
                lent.append(before)
        elif lent:
            place = lent.pop(move % len(lent))
            slots.take_back(place)
            assert serial[place] == 0
            with pytest.raises(KeyError):
                slots.take_back(place)
        assert slots.lent == len(lent)
        assert sorted([*slots.of_row.tolist(), *lent, *slots._spare]) == list(range(ROWS + SPARES))
