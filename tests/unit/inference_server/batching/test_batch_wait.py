"""Fill: who is waited for, for how long, and whether waiting pays. Times in seconds, made up."""

from __future__ import annotations

import heapq

import pytest

from simul.inference_server.batching.batch_wait import (
    LAST_BATCHES,
    MOST_DOUBLINGS,
    MOST_TRIALS_BETWEEN,
    PAUSE_SEC,
    BatchWait,
    WaitAutotune,
)
from simul.inference_server.sessions.clients import Client

FORWARD, WINDOW = 0.004, 0.001


def _clients(n: int) -> list[Client]:
    return [Client(str(i), 1, str(i), b"", False, 0.0) for i in range(n)]


def test_a_lone_client_never_waits() -> None:
    batch_wait, (client,) = BatchWait(WINDOW), _clients(1)
    for turn in range(10):
        batch_wait.client_returned(client, float(turn), first=True)
        assert batch_wait.wait_sec(float(turn)) == 0
        batch_wait.batch_answered([client], FORWARD, turn + 0.5)


@pytest.mark.parametrize(("forward", "limit"), [(FORWARD, WINDOW), (WINDOW / 4, WINDOW / 4)])
def test_it_waits_for_who_holds_a_reply_and_no_longer_than_the_window_or_the_last_forward(forward, limit) -> None:
    batch_wait, (a, b) = BatchWait(WINDOW), _clients(2)
    batch_wait.batch_answered([a], forward, 1.0)
    batch_wait.batch_answered([b], forward, 2.0)
    batch_wait.client_returned(a, 2.0, first=True)
    assert batch_wait.wait_sec(2.0) == pytest.approx(limit)
    assert batch_wait.wait_sec(2.0 + limit / 2) == pytest.approx(limit / 2)
    batch_wait.client_returned(b, 2.0 + limit / 2, first=False)
    assert batch_wait.wait_sec(2.0 + limit / 2) == 0


def test_who_is_away_for_longer_than_two_batches_is_not_waited_for() -> None:
    batch_wait, (a, b) = BatchWait(WINDOW), _clients(2)
    batch_wait.batch_answered([b], FORWARD, 0.0)
    for turn in range(LAST_BATCHES):
        batch_wait.batch_answered([a], FORWARD, 1.0 + turn)
    batch_wait.client_returned(a, 5.0, first=True)
    assert batch_wait.wait_sec(5.0) == 0


def test_waits_in_vain_become_rare_and_a_client_that_comes_in_time_is_waited_for_again() -> None:
    batch_wait, (fast, slow) = BatchWait(WINDOW), _clients(2)
    now, waits = 0.0, 0
    for _ in range(1000):
        batch_wait.batch_answered([fast, slow], FORWARD, now)
        batch_wait.client_returned(fast, now, first=True)
        if batch_wait.wait_sec(now):
            waits += 1
            assert batch_wait.wait_sec(now + WINDOW) == 0
        batch_wait.client_returned(slow, now + 10 * WINDOW, first=False)
        now += 1.0
    assert 1000 / (1 << MOST_DOUBLINGS) <= waits < 30
    together = 0
    for _ in range(200):
        batch_wait.batch_answered([fast, slow], FORWARD, now)
        batch_wait.client_returned(fast, now, first=True)
        batch_wait.client_returned(slow, now + WINDOW / 2, first=False)
        now += 1.0
        batch_wait.batch_answered([fast, slow], FORWARD, now)
        batch_wait.client_returned(fast, now, first=True)
        together += batch_wait.wait_sec(now) > 0
        batch_wait.client_returned(slow, now + WINDOW / 2, first=False)
    assert together > 60


def _closed_loop(batch_wait: BatchWait | None, clients: int, think: float, fixed: float) -> float:
    """Mean clients in a batch; each is back `think` after its reply, clients share a core, a batch costs `fixed`."""
    everybody = _clients(clients)
    arrivals = [(0.001 * i, i) for i in range(clients)]
    heapq.heapify(arrivals)
    now, core, waiting, sizes = 0.0, 0.0, [], []
    while len(sizes) < 400:
        while arrivals and arrivals[0][0] <= now:
            _, i = heapq.heappop(arrivals)
            if batch_wait is not None:
                batch_wait.client_returned(everybody[i], now, first=not waiting)
            waiting.append(i)
        patience = batch_wait.wait_sec(now) if batch_wait is not None and waiting else 0.0
        if patience or not waiting:
            now = (
                min(now + patience, arrivals[0][0])
                if patience and arrivals
                else now + patience
                if patience
                else arrivals[0][0]
            )
            continue
        now += fixed
        sizes.append(len(waiting))
        if batch_wait is not None:
            batch_wait.batch_answered([everybody[i] for i in waiting], fixed, now)
        for i in waiting:
            core = max(core, now) + think
            heapq.heappush(arrivals, (core, i))
        waiting = []
    return sum(sizes[200:]) / 200


def test_two_quick_clients_share_their_batches_where_greedy_keeps_them_apart() -> None:
    assert _closed_loop(None, 2, think=0.0001, fixed=0.0005) == 1.0
    assert _closed_loop(BatchWait(0.0005), 2, think=0.0001, fixed=0.0005) > 1.95


def test_clients_that_think_for_longer_than_a_batch_costs_are_served_as_greedily_as_before() -> None:
    greedy = _closed_loop(None, 4, think=0.0004, fixed=0.0005)
    assert _closed_loop(BatchWait(0.0005), 4, think=0.0004, fixed=0.0005) == pytest.approx(greedy, rel=0.2)


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
