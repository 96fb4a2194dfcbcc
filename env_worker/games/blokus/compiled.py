"""Compilation of the loops over arrays: for stated types, when a module is first imported, then read from a cache.

Numba notices a change only in the file of the function itself, not in files of functions that it calls or constants
that it reads: compiled functions that call each other belong into one file. NUMBA_DISABLE_JIT=1 runs them as the plain
Python they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from numba import njit, types

P = ParamSpec("P")
R = TypeVar("R")

INT = types.int64
STATE = types.Array(types.int32, 1, "C")
TABLE = types.Array(types.int32, 2, "C", readonly=True)
SMALL_TABLE = types.Array(types.int16, 2, "C", readonly=True)
RULES = types.Array(types.int32, 1, "C", readonly=True)
BYTES = types.Array(types.uint8, 1, "C")
FLOATS = types.Array(types.float64, 1, "C")
RANDOM = types.Array(types.uint64, 1, "C")
NODES, COUNTS, SUMS = (
    types.Array(types.int32, 2, "C"),
    types.Array(types.int64, 1, "C"),
    types.Array(types.float64, 2, "C"),
)


def compiled(*arguments: types.Type) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Compile a function for these types of arguments; others raise TypeError."""

    def compile_it(function: Callable[P, R]) -> Callable[P, R]:
        options: dict[str, Any] = {"error_model": "numpy", "nogil": True}
        try:
            kept = njit(arguments, cache=True, **options)(function)
        except Exception:  # noqa: BLE001 no folder to write to, or a torn file, which may raise anything
            kept = njit(arguments, **options)(function)
        return cast(Callable[P, R], kept)

    return compile_it
