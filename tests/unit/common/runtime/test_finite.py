from __future__ import annotations

import numpy as np
import pytest

from simul.common.runtime.finite import finite_rows


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_only_rows_of_finite_numbers_are_finite(dtype):
    largest, smallest = np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal
    rows = np.array(
        [[0, -0.0, smallest], [largest, -largest, largest], [1, np.nan, 1], [np.inf, 1, 1], [1, 1, -np.inf]], dtype
    )
    assert finite_rows(rows).tolist() == [True, True, False, False, False]
    assert finite_rows(rows[::2]).tolist() == [True, False, False]
    assert finite_rows(rows[:0]).tolist() == []


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_all_bits_of_a_number_are_judged_as_numpy_judges_them(dtype):
    bits = np.random.default_rng(1).integers(0, 256, (4096, np.dtype(dtype).itemsize), dtype=np.uint8)
    numbers = bits.view(dtype)
    assert finite_rows(numbers).tolist() == np.isfinite(numbers[:, 0]).tolist()
