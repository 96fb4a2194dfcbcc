"""Who shares a core with whom: the stand of two cores that the model is validated on, and a fleet of machines."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from functools import partial
from statistics import median

import msgspec
import numpy as np
import simpy
from msgspec.structs import replace

from benchmarks.scale.model import US, Device, Learner, Link, Outcome, Player, Server, observe
from benchmarks.scale.stations import Core
from benchmarks.scale.times import ServiceTimes, Window

TRIED_WAKE_US = 20.0
# Standard deviation of a job's time in the stand, by its mean. Without any, clients and servers that share cores fall
# into step and never meet. Its size hardly matters: a shared core is insensitive to the distribution.
SPREAD = 0.3
ALONE_WARM_UP, ALONE_MESSAGES = 20, 120  # of one simulated client
WORKER_STATION = "worker cores"  # a kind of station


def simulate_stand(
    times: ServiceTimes, servers: int, clients: int, rows: int, row_bytes: float, seconds: float = 2.0,
    spread: float = SPREAD,
) -> Outcome:  # fmt: skip
    """Server i on core i of two, its `clients` closed-loop clients of `rows` rows a message on the other core."""
    if servers not in (1, 2):
        raise ValueError(f"a stand has two cores: expected 1 or 2 servers, not {servers}")
    env, rng = simpy.Environment(), np.random.default_rng(1)
    draw = partial(rng.gamma, 1 / spread**2, spread**2) if spread else None
    cores = [Core(env, draw), Core(env, draw)]
    serving = [Server(env, times, core=cores[index]) for index in range(servers)]
    players = [
        Player(env, server, cores[1 - index], rows, row_bytes, start=1e-4 * number)
        for index, server in enumerate(serving)
        for number in range(clients)
    ]
    busy = {f"core {index}": core.busy_sec for index, core in enumerate(cores)}
    return observe(env, serving, players, busy, 0.5 * seconds, seconds)


def message_us(times: ServiceTimes, rows: int, row_bytes: float) -> float:
    """Time of a message of one client alone, from one answer to the next, in us; not rounded to whole messages."""
    env = simpy.Environment()
    player = Player(env, Server(env, times, core=Core(env)), Core(env), rows, row_bytes)
    while len(player.round_trips) <= ALONE_MESSAGES:
        env.step()
    answered = [at for at, _ in player.round_trips]
    return (answered[-1] - answered[ALONE_WARM_UP]) * 1e6 / (len(answered) - 1 - ALONE_WARM_UP)


def fit_wake(times: ServiceTimes, windows: Sequence[Window], row_bytes: float) -> ServiceTimes:
    """With the `wake_us` at which one client alone takes as long for a message as it did, the median of its windows.

    Processor times alone make a round trip too short: threads take turns, and each sleeps until the other wakes it.
    """
    found = []
    for window in windows:
        if window.clients == 1 and not window.recorded:
            measured_us = window.client_seconds * 1e6 / window.client_messages
            short, longer = (
                message_us(woken, window.rows, row_bytes)
                for woken in (replace(times, wake_us=0.0), replace(times, wake_us=TRIED_WAKE_US))
            )
            found.append(TRIED_WAKE_US * (measured_us - short) / (longer - short))
    return replace(times, wake_us=max(0.0, median(found)))


class Fleet(msgspec.Struct, frozen=True):
    """Machines of a run. Every thread of a server has a core of its own; a worker core hosts its games and its client.

    Attributes:
        sessions: games' seats of all workers together. rows: of a message.
        think_us: a worker core's processor time for a decision: simulator and worker.
        learner_ranks, learner_us: cores that learn, and the time of one for a decision; 0 ranks: nothing is recorded.
        link_gbit: of a server's machine, each way. network_us: one way.
        device: a forward beside the loop's core; None: on it.
    """

    servers: int
    rows: int
    row_bytes: float
    worker_cores: int = 1000
    sessions: int = 1_000_000
    think_us: float = 415.0
    learner_ranks: int = 0
    learner_us: float = 107.0
    link_gbit: float = 25.0
    network_us: float = 50.0
    device: Device | None = None
    max_batch: int = 256

    @property
    def supply(self) -> float:
        """Decisions a second that the worker cores can play."""
        return self.worker_cores * 1e6 / self.think_us


MOST_SERVERS = 2  # that are simulated: all are alike, and share nothing but the learner
ENOUGH = 3.0  # times what a server's loop can answer: more workers only wait longer


def simulate_fleet(times: ServiceTimes, fleet: Fleet, warm_up_sec: float = 0.4, seconds: float = 0.3) -> Outcome:
    """Every worker plays on one server, the same number on each. Figures are of the whole fleet.

    At most MOST_SERVERS are simulated, with their share of workers, sessions and learner; of workers that a server
    cannot answer, as many as keep it full. So the latencies of a full fleet are too short.

    Raises ValueError where a server has no worker core, or a message no row.
    """
    if not 1 <= fleet.servers <= fleet.worker_cores:
        raise ValueError(f"expected 1 to {fleet.worker_cores:,} servers, as many as worker cores, got {fleet.servers}")
    if fleet.rows < 1:
        raise ValueError(f"expected messages of at least 1 row, got {fleet.rows}")
    servers = min(fleet.servers, MOST_SERVERS)
    workers = fleet.worker_cores * servers / fleet.servers
    enough = ENOUGH * servers * loop_limit(times, fleet) * fleet.think_us * US
    simulated = max(1, round(min(workers, enough)))
    rounded = simulated / workers if workers <= enough else 1.0  # by as much longer is a simulated worker's decision
    outcome = _simulate(
        times,
        replace(
            fleet,
            servers=servers,
            worker_cores=simulated,
            sessions=round(fleet.sessions * simulated / fleet.worker_cores),
            think_us=fleet.think_us * rounded,
            learner_us=fleet.learner_us * fleet.servers / servers,
        ),
        warm_up_sec,
        seconds,
    )
    busy = {**outcome.busy, WORKER_STATION: outcome.busy[WORKER_STATION] * simulated / (workers * rounded)}
    return dataclasses.replace(outcome, actions_per_sec=outcome.actions_per_sec * fleet.servers / servers, busy=busy)


def loop_limit(times: ServiceTimes, fleet: Fleet) -> float:
    """Actions a second of a loop that has nothing else to wait for, in full batches."""
    forward_us = times.forward_batch / fleet.max_batch + times.forward_row
    if fleet.device is not None:
        forward_us = (fleet.device.batch_sec / fleet.max_batch + fleet.device.row_sec) / US
    record_us = times.record_us if fleet.learner_ranks else 0.0
    per_batch = times.loop_batch / fleet.max_batch + times.loop_message / fleet.rows
    return 1e6 / (forward_us + per_batch + times.loop_row + record_us)


def _simulate(times: ServiceTimes, fleet: Fleet, warm_up_sec: float, seconds: float) -> Outcome:
    env = simpy.Environment()
    learner = None
    if fleet.learner_ranks:
        room = max(0.1 * fleet.learner_ranks * 1e6 / fleet.learner_us, 2.0 * fleet.max_batch * fleet.servers)
        learner = Learner(env, fleet.learner_us * US, fleet.learner_ranks, room)
    bytes_per_sec = fleet.link_gbit * 1e9 / 8 if fleet.link_gbit else math.inf
    servers = [
        Server(
            env, times, link=Link(env, bytes_per_sec, fleet.network_us * US), learner=learner, device=fleet.device,
            max_batch=fleet.max_batch,
        )
        for _ in range(fleet.servers)
    ]  # fmt: skip
    cores = [Core(env) for _ in range(fleet.worker_cores)]
    groups = max(1, round(fleet.sessions / fleet.worker_cores / fleet.rows))
    round_sec = fleet.rows * fleet.think_us * US
    starts = np.random.default_rng(1).uniform(0.0, round_sec, fleet.worker_cores)
    players = [
        Player(
            env, servers[number % fleet.servers], core, fleet.rows, fleet.row_bytes, groups=groups,
            think_us=fleet.think_us, start=float(starts[number]),
        )
        for number, core in enumerate(cores)
    ]  # fmt: skip

    def mean(worked: list[float]) -> float:
        return sum(worked) / len(worked)

    stations = {
        WORKER_STATION: lambda: mean([core.busy_sec() for core in cores]),
        "network": lambda: mean([server.link.thread.worked_sec for server in servers]),
        "proxy": lambda: mean([server.proxy.worked_sec for server in servers]),
        "libzmq": lambda: mean([server.io.worked_sec for server in servers]),
        "loop": lambda: mean([server.busy_sec for server in servers]),
    }
    if learner is not None:
        stations["learner"] = partial(getattr, learner.thread, "worked_sec")
    return observe(env, servers, players, stations, warm_up_sec, seconds)
