"""The decorator of the loops that numba compiles: on the first call for its types, then read from a cache on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from numba import njit

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function`. Where no cache folder can be written, every process compiles it again."""
    try:
        kept = njit(cache=True, error_model="numpy")(function)
    except RuntimeError:  # numba found no folder for its cache
        kept = njit(error_model="numpy")(function)
    return cast(Callable[P, R], kept)
