"""How a value goes from its first to its last over a run."""

from __future__ import annotations

import math
from collections.abc import Callable


def _linear(first: float, last: float, share: float) -> float:
    return first + (last - first) * share


def _cosine(first: float, last: float, share: float) -> float:
    """Half a cosine (Loshchilov and Hutter 2017, arXiv:1608.03983, without restarts)."""
    return last + (first - last) * 0.5 * (1 + math.cos(math.pi * share))


def _exponential(first: float, last: float, share: float) -> float:
    """The same factor over each equal part. Both values are above 0."""
    return first * (last / first) ** share


def _constant(first: float, last: float, share: float) -> float:
    return first


SHAPES: dict[str, Callable[[float, float, float], float]] = {
    "constant": _constant, "linear": _linear, "cosine": _cosine, "exponential": _exponential,
}  # fmt: skip


def scheduled(shape: str, first: float, last: float, decisions: int, total: int) -> float:
    """From `first` at 0 to `last` at `total` decisions, and `last` from then on; `constant`: always `first`."""
    return SHAPES[shape](first, last, min(decisions / total, 1.0))
