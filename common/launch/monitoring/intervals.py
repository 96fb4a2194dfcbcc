"""Intervals of rates. Pure."""

from __future__ import annotations

import math

Z_95 = 1.959964


def wilson(wins: int, games: int, z: float = Z_95) -> tuple[float, float]:
    """Wilson's score interval of a rate (Wilson 1927)."""
    if not games:
        return 0.0, 1.0
    rate = wins / games
    centre = rate + z * z / (2 * games)
    margin = z * math.sqrt(rate * (1 - rate) / games + z * z / (4 * games * games))
    scale = 1 + z * z / games
    low = (centre - margin) / scale if wins else 0.0  # exact; rounding would leave 1e-19
    high = (centre + margin) / scale if wins < games else 1.0
    return low, high
