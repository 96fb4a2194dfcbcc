"""The measured process's side: print `ready`, wait for the order, warm up, measure, print one JSON line."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

import orjson

from benchmarks.harness.cores import family_seconds
from benchmarks.pokemon_layers.layer import Sample
from simul.launch.loadtest.cores import allowed_cores, busy_seconds

WARM_UP_LIMIT_SEC = 60.0
Turn = Callable[[], object]


def serve(turn: Turn, decisions: Callable[[], int], others: Iterable[int], warm_up_decisions: int = 1) -> None:
    """Measure `turn` called over and over.

    Args:
        turn: once around the layer's loop; must return within a fraction of a second.
        decisions: how many were answered since the start.
        others: processes whose processor time counts besides this one's (a host, a server).
        warm_up_decisions: answered before the window opens, however long that takes.
    """
    others, cores = list(others), allowed_cores()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    line = sys.stdin.readline()
    if not line:
        return
    order = orjson.loads(line)
    _turn_for(turn, order["warm_up_sec"])
    limit = time.perf_counter() + WARM_UP_LIMIT_SEC
    while decisions() < warm_up_decisions and time.perf_counter() < limit:
        turn()
    before = decisions()
    begin, cpu, busy = time.perf_counter(), _cpu(others), busy_seconds(cores)
    _turn_for(turn, order["seconds"])
    seconds, cpu, busy = time.perf_counter() - begin, _cpu(others) - cpu, busy_seconds(cores) - busy
    tell(asdict(Sample(decisions() - before, seconds, cpu, busy, len(cores))))


def tell(message: Any) -> None:
    """One JSON line on stdout."""
    sys.stdout.write(orjson.dumps(message).decode() + "\n")
    sys.stdout.flush()


def _turn_for(turn: Turn, seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        turn()


def _cpu(others: Iterable[int]) -> float:
    return time.process_time() + family_seconds(others)
