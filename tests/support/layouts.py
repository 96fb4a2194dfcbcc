"""What every layout of an observation promises."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simul.common.protocol.specs import Slice


def check_cover(slices: Sequence[Slice], size: int) -> None:
    """They have names of their own, and neither gap nor overlap."""
    start = 0
    for part in slices:
        assert part.start == start, part.name
        start += part.size
    assert start == size
    assert len({part.name for part in slices}) == len(slices)


def check_ranges(observations: NDArray[np.float16], slices: Sequence[Slice]) -> None:
    """Every number of observations [N, D] lies in the range that its slice names; ids are whole."""
    assert np.isfinite(observations).all()
    for part in slices:
        values = observations[:, part.start : part.start + part.size].astype(np.float64)
        assert values.min() >= part.low, part.name
        assert values.max() <= part.high + 1e-3, part.name
        if part.kind == "id":
            assert (values == np.round(values)).all(), part.name
