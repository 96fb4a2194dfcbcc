"""Reads figures out of what a role reported."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def episodes_of(game: str) -> str:
    """What people call the episodes of a configuration's `game`."""
    return "battles" if game == "pokemon" else "episodes"


def number(metrics: Mapping[str, Any], *path: str) -> float | None:
    """The number at `path`, None where there is none (or NaN: not measured yet)."""
    value: Any = metrics
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
    return value if is_number else None


def counts(metrics: Mapping[str, Any], *path: str) -> dict[str, float]:
    """The {name: number} dict at `path`, {} where there is none. A bare number is called `total`."""
    value: Any = metrics
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, Mapping):
        return {str(key): n for key, n in value.items() if isinstance(n, int | float)}
    return {"total": value} if isinstance(value, int | float) and value else {}
