"""Cores and threads of the model against the formulas of queueing theory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import simpy

from benchmarks.scale.stations import Core, Thread

JOBS = 10_000


def _times_in_system(gaps: list[float], services: list[float], *, one_thread: bool) -> list[float]:
    """Seconds from arrival to end of each job of a core, on one thread or each on its own."""
    env = simpy.Environment()
    core, times = Core(env), []
    shared = Thread(env, core)

    def arrive() -> Iterator[simpy.Event]:
        for gap, service in zip(gaps, services):
            yield env.timeout(gap)
            thread = shared if one_thread else Thread(env, core)
            thread.submit(service, lambda begin=env.now: times.append(env.now - begin))

    env.process(arrive())
    env.run()
    return times


def _exponential(mean: float, seed: int) -> list[float]:
    draws = np.random.default_rng(seed).exponential(mean, JOBS)
    return (draws * (mean / draws.mean())).tolist()


def test_every_job_of_a_thread_waits_as_lindleys_recursion_says() -> None:
    gaps, services = _exponential(1.25, 1), _exponential(1.0, 2)
    waits = [0.0]
    for service, gap in zip(services, gaps[1:]):
        waits.append(max(0.0, waits[-1] + service - gap))
    found = _times_in_system(gaps, services, one_thread=True)
    assert found == pytest.approx(np.add(waits, services).tolist(), rel=1e-6)


@pytest.mark.parametrize("services", [[1.0] * JOBS, _exponential(1.0, 3)], ids=["M/D/1", "M/M/1"])
def test_a_shared_core_is_processor_sharing_whatever_the_service_times(services: list[float]) -> None:
    found = _times_in_system(_exponential(2.0, 4), services, one_thread=False)  # load 0.5
    assert np.mean(found) == pytest.approx(1 / (1 - 0.5), rel=0.12)
