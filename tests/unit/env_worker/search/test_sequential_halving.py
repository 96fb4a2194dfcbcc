"""The schedule of sequential halving: visits of each action, the best ones first."""

from __future__ import annotations

from collections import Counter

import pytest

from simul.env_worker.search.sequential_halving import visit_schedule


def _visits(actions: int, simulations: int) -> list[int]:
    """Visits of the actions where the one of lowest number is always the best."""
    visits = [0] * actions
    for wanted in visit_schedule(actions, simulations):
        visits[visits.index(wanted)] += 1
    return visits


@pytest.mark.parametrize(
    ("actions", "simulations", "visits"),
    [
        (16, 64, [15, 15, 7, 7, 3, 3, 3, 3, *[1] * 8]),  # phases of 16 x 1, 8 x 2, 4 x 4, 2 x 8
        (4, 16, [6, 6, 2, 2]),  # 4 x 2, 2 x 4
        (2, 5, [3, 2]),
        (7, 50, [18, 17, 7, 2, 2, 2, 2]),  # 7 x 2, 3 x 5, and 2 share what is left
        (16, 5, [1, 1, 1, 1, 1, *[0] * 11]),  # fewer simulations than actions
        (1, 3, [3]),
    ],
)
def test_every_phase_visits_the_better_half_equally(actions: int, simulations: int, visits: list[int]) -> None:
    assert _visits(actions, simulations) == visits


@pytest.mark.parametrize("actions", range(1, 20))
@pytest.mark.parametrize("simulations", [1, 2, 7, 16, 50, 200])
def test_an_action_with_the_scheduled_visits_always_exists(actions: int, simulations: int) -> None:
    visits = _visits(actions, simulations)
    assert sum(visits) == simulations
    assert visits == sorted(visits, reverse=True)
    assert Counter(visits)[max(visits)] <= max(2, actions)
