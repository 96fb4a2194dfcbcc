"""Sequential halving: how many visits each action of the root gets (Karnin et al. 2013; Danihelka et al. 2022)."""

from __future__ import annotations

import functools
import math


@functools.cache
def visit_schedule(actions: int, simulations: int) -> tuple[int, ...]:
    """For each simulation, the visits that the action to be simulated has so far; length `simulations`.

    Of m `actions`, every phase gives each remaining one max(1, floor(n / (ceil(log2 m) * remaining))) visits and keeps
    the better half; the last two share what is left. The best actions of that many visits are taken first, so the
    schedule needs no list of those that remain.
    """
    if actions <= 1:
        return tuple(range(simulations))
    phases = math.ceil(math.log2(actions))
    schedule: list[int] = []
    visits, remaining = 0, actions
    while len(schedule) < simulations:
        for _ in range(max(1, simulations // (phases * remaining))):
            schedule += [visits] * remaining
            visits += 1
        remaining = max(2, remaining // 2)
    return tuple(schedule[:simulations])
