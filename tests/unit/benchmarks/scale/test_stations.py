"""Cores and threads of the model against the formulas of queueing theory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pytest
import simpy

from benchmarks.scale.stations import Core, Thread

JOBS = 10_000


def _times_in_system(arrivals: Iterator[float], services: Iterator[float], *, threads: int = 1) -> list[float]:
    """Seconds from arrival to end of each job of a core, on one thread or on each job's own (0)."""
    env = simpy.Environment()
    core, times = Core(env), []
    shared = Thread(env, core)

    def arrive() -> Iterator[simpy.Event]:
        for gap, service in zip(arrivals, services):
            yield env.timeout(gap)
            thread = shared if threads else Thread(env, core)
            thread.submit(service, lambda begin=env.now: times.append(env.now - begin))

    env.process(arrive())
    env.run()
    return times


def _exponential(mean: float, seed: int) -> Iterator[float]:
    draws = np.random.default_rng(seed).exponential(mean, JOBS)
    return iter((draws * (mean / draws.mean())).tolist())


def _constant(value: float) -> Iterator[float]:
    return iter([value] * JOBS)


@pytest.mark.parametrize("load", [0.3, 0.7])
@pytest.mark.parametrize(
    ("services", "waiting"),
    [
        (lambda: _constant(1.0), lambda load: load / (2 * (1 - load))),  # M/D/1, Pollaczek-Khinchine
        (lambda: _exponential(1.0, 8), lambda load: load / (1 - load)),  # M/M/1
    ],
    ids=["M/D/1", "M/M/1"],
)
def test_a_thread_alone_on_a_core_is_a_queue_with_one_server(
    load: float, services: Callable[[], Iterator[float]], waiting: Callable[[float], float]
) -> None:
    found = _times_in_system(_exponential(1 / load, 7), services())
    assert len(found) == JOBS
    assert np.mean(found) - 1.0 == pytest.approx(waiting(load), rel=0.12)


def test_every_job_of_a_thread_waits_as_lindleys_recursion_says() -> None:
    gaps, services = list(_exponential(1.25, 1)), list(_exponential(1.0, 2))
    waits = [0.0]
    for service, gap in zip(services, gaps[1:]):
        waits.append(max(0.0, waits[-1] + service - gap))
    found = _times_in_system(iter(gaps), iter(services))
    assert found == pytest.approx(np.add(waits, services).tolist(), rel=1e-6)


@pytest.mark.parametrize("services", [lambda: _constant(1.0), lambda: _exponential(1.0, 3)], ids=["M/D/1", "M/M/1"])
def test_a_shared_core_is_processor_sharing_whatever_the_service_times(services: Callable[[], Iterator[float]]) -> None:
    found = _times_in_system(_exponential(2.0, 4), services(), threads=0)  # load 0.5
    assert np.mean(found) == pytest.approx(1 / (1 - 0.5), rel=0.12)


def test_littles_law_holds_on_a_thread() -> None:
    gaps = list(_exponential(1.25, 5))
    times = _times_in_system(iter(gaps), _exponential(1.0, 6))
    arrivals = np.cumsum(gaps)
    ends = arrivals + times
    moments = np.linspace(arrivals[100], arrivals[-100], 5_000)
    present = np.mean([np.sum((arrivals <= moment) & (ends > moment)) for moment in moments])
    assert present == pytest.approx(np.mean(times) / np.mean(gaps), rel=0.12)


def test_two_threads_of_a_core_get_half_of_it_each_and_the_rest_when_the_other_is_done() -> None:
    env = simpy.Environment()
    core, ends = Core(env), {}
    for name, seconds in (("short", 1.0), ("long", 3.0)):
        Thread(env, core).submit(seconds, lambda name=name: ends.setdefault(name, env.now))
    env.run()
    assert ends == pytest.approx({"short": 2.0, "long": 4.0})
    assert core.busy_sec() == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("spread", "round_sec"),
    [
        (
            0.3,
            1.35 * (1 + 0.3 / 1.65) + 0.3 * (1 + 1.35 / 1.65),
        ),  # mean value analysis of a closed product-form network
        (0.0, 1.65),
    ],
    ids=["some spread", "none: they fall into step, and never meet"],
)
def test_two_pairs_of_threads_that_cross_on_two_cores_meet_as_a_closed_network_says(spread, round_sec) -> None:
    env, rng = simpy.Environment(), np.random.default_rng(9)
    draw = partial(rng.gamma, 1 / spread**2, spread**2) if spread else None
    cores = [Core(env, draw), Core(env, draw)]
    rounds = [0, 0]

    def circulate(pair: int) -> Iterator[simpy.Event]:
        while True:
            yield cores[pair].compute(1.35)
            yield cores[1 - pair].compute(0.3)
            rounds[pair] += 1

    for pair in range(2):
        env.process(circulate(pair))
    env.run(until=20_000.0)
    assert [20_000.0 / done for done in rounds] == pytest.approx([round_sec] * 2, rel=0.02)


def test_an_idle_thread_wakes_late_and_a_busy_one_does_not_sleep() -> None:
    env = simpy.Environment()
    ends: list[float] = []
    thread = Thread(env, Core(env), wake_sec=0.5)
    thread.submit(1.0, lambda: ends.append(env.now))
    thread.submit(1.0, lambda: ends.append(env.now))
    env.run()
    env.timeout(1.0).callbacks.append(lambda _: thread.submit(1.0, lambda: ends.append(env.now)))
    env.run()
    assert ends == pytest.approx([1.5, 2.5, 5.0])
    assert thread.worked_sec == pytest.approx(3.0)
