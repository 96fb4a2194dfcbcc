"""Trials: the way that answers more is taken, the other is tried ever more rarely, and a change is noticed."""

from __future__ import annotations

import pytest

from simul.inference_server.batching.batch_wait import MOST_TRIALS_BETWEEN, PAUSE_SEC, WaitAutotune


def _play(
    autotune: WaitAutotune, waiting_sec: float, greedy_sec: float, batches: int, now: float
) -> tuple[float, float]:
    """Batches of 10 rows that take so long each; (the time at the end, share of the batches that waited)."""
    waited = 0
    for _ in range(batches):
        waited += autotune.waits
        now += waiting_sec if autotune.waits else greedy_sec
        autotune.batch_answered(10, now)
    return now, waited / batches


@pytest.mark.parametrize(("waiting", "greedy", "better"), [(0.002, 0.003, True), (0.003, 0.002, False)])
def test_the_way_that_answers_more_is_taken_nearly_always(waiting: float, greedy: float, better: bool) -> None:
    autotune = WaitAutotune()
    now, _ = _play(autotune, waiting, greedy, 4000, 1.0)
    _, waited = _play(autotune, waiting, greedy, 40 * 60 * MOST_TRIALS_BETWEEN // 10, now)
    assert waited > 0.9 if better else waited < 0.1


def test_a_change_is_noticed_in_both_directions() -> None:
    autotune = WaitAutotune()
    now, _ = _play(autotune, 0.002, 0.003, 6000, 1.0)
    now, _ = _play(autotune, 0.003, 0.002, 6000, now)
    now, waited = _play(autotune, 0.003, 0.002, 3000, now)
    assert waited < 0.15
    now, _ = _play(autotune, 0.002, 0.003, 6000, now)
    _, waited = _play(autotune, 0.002, 0.003, 3000, now)
    assert waited > 0.85


def test_pauses_of_the_clients_say_nothing() -> None:
    autotune, now = WaitAutotune(), 1.0
    for _ in range(400):
        now, _ = _play(autotune, 0.002, 0.003, 40, now)
        now += 0.0 if autotune.waits else 2 * PAUSE_SEC  # else the greedy way would be blamed for them
    _, waited = _play(autotune, 0.003, 0.002, 12_000, now)
    assert waited < 0.3
