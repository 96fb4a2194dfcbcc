"""Intervals of rates, and how an interval is written. Pure."""

from __future__ import annotations

import functools
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


@functools.cache
def t_quantile(freedom: int) -> float:
    """t > 0 so that |T| <= t with probability 0.95, of Student's T with `freedom` >= 1 degrees of freedom."""
    if freedom > 1000:  # the series below takes as many steps; Abramowitz and Stegun, 26.7.5, to 1e-6
        return Z_95 + (Z_95**3 + Z_95) / (4 * freedom)
    low, high = 0.0, 1000.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_inside(middle, freedom) < 0.95 else (low, middle)
    return high


def _t_inside(t: float, freedom: int) -> float:
    """P(|T| <= t): the finite series of Abramowitz and Stegun, 26.7.3 (odd) and 26.7.4 (even)."""
    angle = math.atan2(t, math.sqrt(freedom))
    square = math.cos(angle) ** 2
    odd = freedom % 2
    term = math.cos(angle) if odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(2 + odd, freedom - 1, 2):
        term *= (k - 1) / k * square
        total += term
    return (angle + math.sin(angle) * total) * 2 / math.pi if odd else math.sin(angle) * total


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
