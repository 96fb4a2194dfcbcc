"""Steps are written where numpy would write them, past the cache or through it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from simul.inference_server.unrolls.buffer import append_rows

N, PLACES, STEPS, ACTIONS = 6, 9, 5, 3
CHECKOUT = Path(__file__).parents[4]


def _aligned(shape: tuple[int, ...], offset: int) -> np.ndarray:
    """Zeros, uint8, `offset` bytes behind a multiple of 64."""
    size = int(np.prod(shape))
    memory = np.zeros(size + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    return memory[start : start + size].reshape(shape)


@pytest.mark.parametrize("size", [64, 8640, 63, 12])
@pytest.mark.parametrize("offset", [0, 16])
def test_rows_are_written_where_they_belong_and_nowhere_else(size: int, offset: int) -> None:
    rng = np.random.default_rng(size)
    table, expected = _aligned((PLACES, STEPS, size), offset), np.zeros((PLACES, STEPS, size), np.uint8)
    columns = [np.zeros((PLACES, STEPS), dtype) for dtype in (np.int32, np.float32, np.float32, np.int64, np.float32)]
    masks, filled = np.zeros((PLACES, STEPS, ACTIONS), np.uint8), rng.integers(1, STEPS - 1, PLACES)
    rows, of_row = rng.permutation(PLACES)[:N], rng.permutation(PLACES)
    redo = rng.random(N) < 0.5
    observation, mask = rng.integers(0, 255, (N, size), np.uint8), rng.integers(0, 2, (N, ACTIONS), np.uint8)
    at = filled[rows] - redo
    expected[of_row[rows], at] = observation
    numbers = np.arange(1, N + 1)
    new = append_rows(
        rows, of_row, redo, observation, mask, numbers.astype(np.int32), *(numbers.astype(np.float32),) * 2, 7, filled,
        table, masks, *columns,
    )  # fmt: skip
    assert new == N - redo.sum()
    assert np.array_equal(table, expected)
    assert np.array_equal(masks[of_row[rows], at], mask)
    assert np.array_equal(columns[0][of_row[rows], at], numbers)
    assert np.array_equal(filled[rows], at + 1)


def test_without_a_compiler_they_are_written_too() -> None:
    call = "from tests.unit.inference_server.unrolls.test_buffer_rows import *; "
    call += "test_rows_are_written_where_they_belong_and_nowhere_else(64, 0)"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(CHECKOUT)}
    subprocess.run([sys.executable, "-c", call], check=True, env=environment, timeout=280)
