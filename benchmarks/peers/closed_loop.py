"""The closed loop of every client of this comparison: the games of `serving.client`, one request for all envs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.serving.client import Games

EPISODE = 200
CHECKED_STEPS = 16
# (observation [E, 2160], mask [E, 26], start bool [E]) ->
# actions, log-probs and values, float32 [3, E], and the rows that were served together
Decide = Callable[[NDArray[np.float32], NDArray[np.uint8], NDArray[np.bool_]], tuple[NDArray[np.float32], int]]


def measure(decide: Decide, games: Games, begin: float, end: float) -> dict[str, float]:
    """Decisions between two moments of the system-wide monotonic clock.

    Returns decisions, seconds, batches (this client's share of them), p50 and p99 of a round trip in microseconds, and
    `checked`: the first steps' absolute values, added up. The games do not depend on the actions, so every system that
    serves the same policy and keeps its state gets the same sum; 0 where there were fewer steps.
    Raises RuntimeError where an illegal action comes back: a wrong answer does not count.
    """
    decisions, batches, latencies = 0, 0.0, []
    values: list[float] = []
    while (now := time.monotonic()) < end:
        columns = games.next()
        rows = columns.kind == 0
        envs = int(rows.sum())  # the ends of episodes lie before the decisions, and only our own server needs them
        mask, start = columns.mask[-envs:], columns.keys[-envs:, 3] == 0
        sent = time.monotonic()
        answer, batch = decide(columns.observation[-envs:], mask, start)
        spent = time.monotonic() - sent
        if now >= begin:
            decisions += envs
            batches += envs / batch
            latencies.append(spent * 1e6)
        if not mask[np.arange(envs), answer[0].astype(np.intp)].all():
            raise RuntimeError("An illegal action came back.")
        if len(values) < CHECKED_STEPS:
            values.append(float(np.abs(answer[2]).sum()))
    p50, p99 = np.percentile(latencies, (50, 99)).tolist() if latencies else (0.0, 0.0)
    seconds = time.monotonic() - begin
    checked = sum(values) if len(values) == CHECKED_STEPS else 0.0
    return {"decisions": decisions, "seconds": seconds, "batches": batches, "p50": p50, "p99": p99, "checked": checked}


def run_orders(decide_of: Callable[[int], Decide]) -> None:
    """Say `ready`, then measure one window for each JSON line {"envs", "begin", "end"} until stdin ends.

    `decide_of(envs)` makes what decides, with zero state; each line is answered by one JSON list of results.
    """
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        order = json.loads(line)
        envs = int(order["envs"])
        found = measure(decide_of(envs), Games(envs, EPISODE, False), order["begin"], order["end"])
        sys.stdout.write(json.dumps([found]) + "\n")
        sys.stdout.flush()
