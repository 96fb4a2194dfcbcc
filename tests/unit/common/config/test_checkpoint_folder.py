"""Which past selves stand for a whole run."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from simul.common.config.checkpoint_folder import spread


@given(st.sets(st.integers(0, 10_000)), st.integers(0, 6))
def test_the_newest_is_always_chosen_and_the_oldest_where_there_is_room(versions, count):
    chosen = spread(list(versions), count)
    assert len(chosen) == min(len(versions), count)
    assert set(chosen) <= versions
    assert all(a < b for a, b in pairwise(chosen))
    if chosen:
        assert chosen[-1] == max(versions)
    if len(chosen) > 1:
        assert chosen[0] == min(versions)


def test_older_ones_are_spread():
    assert spread(range(101), 3) == [0, 50, 100]
