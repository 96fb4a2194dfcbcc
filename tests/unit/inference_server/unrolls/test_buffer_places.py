"""No place is lost, freed twice, or written while the learner may read it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simul.inference_server.unrolls.buffer import UnrollPlaces

ROWS, SPARES = 3, 4


@given(st.lists(st.integers(0, ROWS + SPARES - 1), max_size=60))
def test_every_place_is_a_rows_or_lent_or_spare(moves: list[int]) -> None:
    serial = np.zeros(ROWS + SPARES, np.int64)
    places, lent, serials = UnrollPlaces(ROWS, serial), [], set()
    for move in moves:
        if move < ROWS:
            before = int(places.of_row[move])
            found = places.lend(move)
            if len(lent) == SPARES:
                assert found is None
                assert places.of_row[move] == before
            else:
                assert found is not None
                assert found[0] == before != places.of_row[move]
                assert serial[before] == found[1] not in serials
                serials.add(found[1])
                lent.append(before)
        elif lent:
            place = lent.pop(move % len(lent))
            places.take_back(place)
            assert serial[place] == 0
            with pytest.raises(KeyError):
                places.take_back(place)
        assert places.lent == len(lent)
        assert sorted([*places.of_row.tolist(), *lent, *places._spare]) == list(range(ROWS + SPARES))
