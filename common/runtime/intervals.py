"""Intervals of rates, and how an interval is written. Pure."""

from __future__ import annotations

import math

Z_95 = 1.959964


def wilson(wins: float, games: float) -> tuple[float, float]:
    """Wilson's score interval of a rate (Wilson 1927), of 95%."""
    if not games:
        return 0.0, 1.0
    rate = wins / games
    centre = rate + Z_95 * Z_95 / (2 * games)
    margin = Z_95 * math.sqrt(rate * (1 - rate) / games + Z_95 * Z_95 / (4 * games * games))
    scale = 1 + Z_95 * Z_95 / games
    low = (centre - margin) / scale if wins else 0.0  # exact; rounding would leave 1e-19
    high = (centre + margin) / scale if wins < games else 1.0
    return low, high


def format_interval(low: float, high: float) -> str:
    """`0.9021 to 0.9487`: with two digits of its width."""
    digits = interval_digits(low, high)
    return f"{low:.{digits}f} to {high:.{digits}f}"


def interval_digits(low: float, high: float) -> int:
    """Decimal places that show two digits of the width, so that the ends of an interval differ; 2 where it has none."""
    width = high - low
    if not (math.isfinite(width) and width > 0):
        return 2
    return min(max(1 - math.floor(math.log10(width)), 0), 12)
