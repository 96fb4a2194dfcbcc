from __future__ import annotations

import numpy as np
import pytest

from simul.inference_server.serving.gather_rows import gather_rows


@pytest.mark.parametrize("dtype", ["float16", "float32", "uint8"])
@pytest.mark.parametrize("begin", [0, 1])
def test_rows_are_copied_bit_for_bit_and_judged_as_numpy_judges_them(dtype, begin):
    """`begin` 1: a frame of a message, which begins at any address."""
    size, draw = np.dtype(dtype).itemsize, np.random.default_rng(1)
    memory = draw.integers(0, 256, begin + 300 * 5 * size, dtype=np.uint8)
    observation = np.frombuffer(memory.tobytes(), dtype, 300 * 5, begin).reshape(300, 5)
    mask, rows = draw.integers(0, 2, (300, 3), dtype=np.uint8), draw.permutation(300)[:200]
    to_observation, to_mask, finite = np.zeros((200, 5), dtype), np.zeros((200, 3), np.uint8), np.zeros(200, np.bool_)
    gather_rows(observation, mask, rows, to_observation, to_mask, finite)
    assert to_observation.tobytes() == observation[rows].tobytes()
    assert np.array_equal(to_mask, mask[rows])
    assert finite.tolist() == np.isfinite(observation[rows]).all(axis=1).tolist()


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 17, 99])
def test_one_number_that_is_not_finite_is_found_anywhere_in_its_row(dtype, number, place):
    observation = np.full((3, 100), np.finfo(dtype).max, dtype)
    observation[1, place] = number
    copied, mask, finite = np.zeros_like(observation), np.ones((3, 2), np.uint8), np.zeros(3, np.bool_)
    gather_rows(observation, mask, np.arange(3), copied, mask.copy(), finite)
    assert finite.tolist() == [True, False, True]
