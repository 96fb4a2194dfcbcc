"""Fill: who is waited for, for how long, and that waits in vain become rare. Times in seconds, made up."""

from __future__ import annotations

import heapq

import pytest

from simul.inference_server.batching.batch_wait import LAST_BATCHES, MOST_DOUBLINGS, Fill
from simul.inference_server.frontend.clients import Client

FORWARD, WINDOW = 0.004, 0.001


def _clients(n: int) -> list[Client]:
    return [Client(str(i), 1, str(i), b"", False, 0.0) for i in range(n)]


def test_a_lone_client_never_waits() -> None:
    fill, (client,) = Fill(WINDOW), _clients(1)
    for turn in range(10):
        fill.back(client, float(turn), first=True)
        assert fill.patience(float(turn)) == 0
        fill.replied([client], FORWARD, turn + 0.5)


@pytest.mark.parametrize(("forward", "limit"), [(FORWARD, WINDOW), (WINDOW / 4, WINDOW / 4)])
def test_it_waits_for_who_holds_a_reply_and_no_longer_than_the_window_or_the_last_forward(forward, limit) -> None:
    fill, (a, b) = Fill(WINDOW), _clients(2)
    fill.replied([a], forward, 1.0)
    fill.replied([b], forward, 2.0)
    fill.back(a, 2.0, first=True)
    assert fill.patience(2.0) == pytest.approx(limit)
    assert fill.patience(2.0 + limit / 2) == pytest.approx(limit / 2)
    fill.back(b, 2.0 + limit / 2, first=False)
    assert fill.patience(2.0 + limit / 2) == 0


def test_who_is_away_for_longer_than_two_batches_is_not_waited_for() -> None:
    fill, (a, b) = Fill(WINDOW), _clients(2)
    fill.replied([b], FORWARD, 0.0)
    for turn in range(LAST_BATCHES):
        fill.replied([a], FORWARD, 1.0 + turn)
    fill.back(a, 5.0, first=True)
    assert fill.patience(5.0) == 0


def test_waits_in_vain_become_rare_and_a_client_that_comes_in_time_is_waited_for_again() -> None:
    fill, (fast, slow) = Fill(WINDOW), _clients(2)
    now, waits = 0.0, 0
    for _ in range(1000):
        fill.replied([fast, slow], FORWARD, now)
        fill.back(fast, now, first=True)
        if fill.patience(now):
            waits += 1
            assert fill.patience(now + WINDOW) == 0
        fill.back(slow, now + 10 * WINDOW, first=False)
        now += 1.0
    assert 1000 / (1 << MOST_DOUBLINGS) <= waits < 30
    together = 0
    for _ in range(200):
        fill.replied([fast, slow], FORWARD, now)
        fill.back(fast, now, first=True)
        fill.back(slow, now + WINDOW / 2, first=False)
        now += 1.0
        fill.replied([fast, slow], FORWARD, now)
        fill.back(fast, now, first=True)
        together += fill.patience(now) > 0
        fill.back(slow, now + WINDOW / 2, first=False)
    assert together > 60


def _closed_loop(fill: Fill | None, clients: int, think: float, fixed: float) -> float:
    """Mean clients in a batch; each is back `think` after its reply, clients share a core, a batch costs `fixed`."""
    everybody = _clients(clients)
    arrivals = [(0.001 * i, i) for i in range(clients)]
    heapq.heapify(arrivals)
    now, core, waiting, sizes = 0.0, 0.0, [], []
    while len(sizes) < 400:
        while arrivals and arrivals[0][0] <= now:
            _, i = heapq.heappop(arrivals)
            if fill is not None:
                fill.back(everybody[i], now, first=not waiting)
            waiting.append(i)
        patience = fill.patience(now) if fill is not None and waiting else 0.0
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
        if fill is not None:
            fill.replied([everybody[i] for i in waiting], fixed, now)
        for i in waiting:
            core = max(core, now) + think
            heapq.heappush(arrivals, (core, i))
        waiting = []
    return sum(sizes[200:]) / 200


def test_two_quick_clients_share_their_batches_where_greedy_keeps_them_apart() -> None:
    assert _closed_loop(None, 2, think=0.0001, fixed=0.0005) == 1.0
    assert _closed_loop(Fill(0.0005), 2, think=0.0001, fixed=0.0005) > 1.95


def test_clients_that_think_for_longer_than_a_batch_costs_are_served_as_greedily_as_before() -> None:
    greedy = _closed_loop(None, 4, think=0.0004, fixed=0.0005)
    assert _closed_loop(Fill(0.0005), 4, think=0.0004, fixed=0.0005) == pytest.approx(greedy, rel=0.2)
