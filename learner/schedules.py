"""What changes with the decisions learned."""

from __future__ import annotations


def linear(first: float, last: float, decisions: int, total: int) -> float:
    """From `first` at 0 to `last` at `total` decisions, and `last` from then on."""
    return first + (last - first) * min(decisions / total, 1.0)
