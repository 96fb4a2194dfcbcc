"""The model: clients, servers and a learner as discrete events. Each server runs the batcher of the real one.

    worker core -> libzmq -> network -> proxy -> libzmq -> loop: receive, batch, forward, reply -> ... -> worker core
                                                           recorded rows -> learner

A thread takes its jobs in order and competes for its core with the other threads of that core. Which threads share a
core is the layout's matter: all of a server's in the measured stand, none in a fleet. Times are seconds.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import msgspec
import numpy as np
import simpy

from benchmarks.scale.stations import Core, Thread
from benchmarks.scale.times import ServiceTimes
from simul.inference_server.batching.batch_wait import BatchWait
from simul.inference_server.batching.batcher import Batcher, Chunk
from simul.inference_server.frontend.client_socket import RECEIVE_SEC
from simul.inference_server.sessions.clients import Client

US = 1e-6
PIECE_BYTES = 128 * 1024  # messages travel through proxy and libzmq in pieces, so that several stations work on one
_NOTHING = np.zeros(0)


class Device(msgspec.Struct, frozen=True):
    """A forward beside the server's core: seconds of a batch and of a row, in which the loop waits."""

    batch_sec: float
    row_sec: float


class Link:
    """A network link: bytes one after another at a rate, and then a delay. An infinite rate takes no time."""

    def __init__(self, env: simpy.Environment, bytes_per_sec: float = math.inf, delay_sec: float = 0.0) -> None:
        self.thread = Thread(env, Core(env))
        self._env = env
        self._bytes_per_sec = bytes_per_sec
        self._delay_sec = delay_sec

    def send(self, size: float, then: Callable[[], object]) -> None:
        """Call `then` when `size` bytes have arrived."""
        if self._bytes_per_sec == math.inf:
            self.delay(then)
        else:
            self.thread.submit(size / self._bytes_per_sec, partial(self.delay, then))

    def delay(self, then: Callable[[], object]) -> None:
        """The way back, for answers: they are small."""
        if self._delay_sec:
            self._env.timeout(self._delay_sec).callbacks.append(partial(_call, then))
        else:
            then()


class Learner:
    """Learns rows in the order of their arrival, on `ranks` cores. Open for more while fewer than `room` rows wait."""

    def __init__(self, env: simpy.Environment, row_sec: float, ranks: int, room: float) -> None:
        self.thread = Thread(env, Core(env))
        self.servers: list[Server] = []
        self._row_sec = row_sec / ranks
        self._room = room
        self._waiting = 0

    @property
    def is_open(self) -> bool:
        """Whether recorded rows may be answered."""
        return self._waiting < self._room

    def take(self, rows: int) -> None:
        """Rows of a batch arrived."""
        self._waiting += rows
        self.thread.submit(rows * self._row_sec, partial(self._learned, rows))

    def _learned(self, rows: int) -> None:
        was_open, self._waiting = self.is_open, self._waiting - rows
        if self.is_open and not was_open:
            for server in self.servers:
                server.wake()


def _call(then: Callable[[], object], event: simpy.Event) -> None:
    then()


@dataclass
class Message:
    """A STEP message on its way.

    Attributes:
        answered: triggered when the client has every answer.
        arrived: pieces that the server has. owed: rows that it has not answered.
    """

    player: Player
    rows: np.ndarray
    answered: simpy.Event
    pieces: int
    arrived: int = 0
    owed: int = 0


class Server:
    """One inference server; its proxy, its libzmq thread and its loop are on `core`, or each on one of its own (None).

    Attributes:
        rows, batches: answered since the start.
        busy_sec: of the loop, the time of a device included.
    """

    def __init__(
        self,
        env: simpy.Environment,
        times: ServiceTimes,
        *,
        core: Core | None = None,
        link: Link | None = None,
        learner: Learner | None = None,
        device: Device | None = None,
        max_batch: int = 256,
    ) -> None:
        self.rows = self.batches = 0
        self.busy_sec = 0.0
        self.link = link or Link(env)
        self.times = times
        wake_sec = times.wake_us * US
        self.proxy = Thread(env, core or Core(env), wake_sec)
        self.io = Thread(env, core or Core(env), wake_sec)
        self._env = env
        self._core = core or Core(env)  # of the loop
        self._learner = learner
        self._device = device
        self._wake_sec = wake_sec
        self._inbox: deque[Message] = deque()
        self._sent: dict[int, Message] = {}
        self._woken = env.event()
        one_row_sec = (times.forward_batch + times.forward_row) * US
        self._batcher = Batcher(max_batch, BatchWait(one_row_sec))
        if learner is not None:
            learner.servers.append(self)
        env.process(self._run())

    def send(self, message: Message, piece_bytes: float) -> None:
        """One piece of a message from a client, on the link, the proxy and libzmq's thread."""
        times, share, rows = self.times, 1 / message.pieces, len(message.rows)
        proxy_sec = (times.proxy_message / 2 * share + times.proxy_row * rows * share) * US
        io_sec = (times.io_message / 2 * share + times.io_row * rows * share) * US
        arrive = partial(self._arrive, message)
        through_io = partial(self.io.submit, io_sec, arrive)
        self.link.send(piece_bytes, partial(self.proxy.submit, proxy_sec, through_io) if proxy_sec else through_io)

    def wake(self) -> None:
        """Something happened that the loop waits for."""
        if not self._woken.triggered:
            self._woken.succeed()

    def _arrive(self, message: Message) -> None:
        message.arrived += 1
        if message.arrived == message.pieces:
            message.owed = len(message.rows)
            self._inbox.append(message)
            self.wake()

    def _run(self) -> Generator[simpy.Event, Any, None]:
        env, batcher, times = self._env, self._batcher, self.times
        while True:
            enough = env.now + RECEIVE_SEC
            while self._inbox and env.now <= enough:
                message = self._inbox.popleft()
                yield self._compute(times.loop_message)
                self._queue(message)
            wait_sec = batcher.wait_sec(env.now)
            if batcher.waiting and not wait_sec:
                batch = batcher.take_batch(training_open=self._learner is None or self._learner.is_open)
                if batch:
                    yield from self._act(batch)
                    continue
            if self._inbox:
                continue
            self._woken = env.event()
            if wait_sec:
                yield self._woken | env.timeout(wait_sec)
            else:
                yield self._woken
                if self._wake_sec:
                    yield env.timeout(self._wake_sec)

    def _queue(self, message: Message) -> None:
        self._sent[id(message)] = message
        rows = message.rows
        client, recorded = cast(Client, message.player), self._learner is not None
        arrays = _NOTHING, _NOTHING, rows, rows, rows, rows
        self._batcher.queue_chunk(Chunk(client, id(message), "learner", recorded, self._env.now, *arrays))

    def _act(self, batch: Sequence[Chunk]) -> Generator[simpy.Event, Any, None]:
        times, rows = self.times, sum(map(len, batch))
        yield self._compute(times.loop_batch + times.loop_row * rows)
        begin = self._env.now
        if self._device is not None:
            device_sec = self._device.batch_sec + self._device.row_sec * rows
            self.busy_sec += device_sec
            yield self._env.timeout(device_sec)
        else:
            yield self._compute(times.forward_batch + times.forward_row * rows)
        self.rows += rows
        self.batches += 1
        forward_sec = self._env.now - begin
        for chunk in batch:
            self._reply(self._sent[chunk.message], len(chunk))
        if self._learner is not None:
            yield self._compute(times.record_us * rows)
            self.io.submit(times.record_io_us * rows * US, partial(self._learner.take, rows))
        self._batcher.batch_answered(list(batch), forward_sec, self._env.now)

    def _reply(self, message: Message, rows: int) -> None:
        message.owed -= rows
        last = not message.owed
        if last:
            del self._sent[id(message)]
        share = rows / len(message.rows)
        proxy_sec, io_sec = self.times.proxy_message / 2 * US * share, self.times.io_message / 2 * US * share
        arrive = partial(message.player.receive, message) if last else _ignore
        through_link = partial(self.link.delay, arrive)
        self.io.submit(io_sec, partial(self.proxy.submit, proxy_sec, through_link) if proxy_sec else through_link)

    def _compute(self, us: float) -> simpy.Event:
        self.busy_sec += us * US
        return self._core.compute(us * US)


def _ignore() -> None:
    pass


class Player:
    """A client: `groups` messages of `rows` rows circulate. Each is computed by its main thread, then sent.

    `think_us`: of a row, in place of the client's own time for messages and rows; None: a load-test client.
    """

    def __init__(
        self,
        env: simpy.Environment,
        server: Server,
        core: Core,
        rows: int,
        row_bytes: float,
        *,
        groups: int = 1,
        think_us: float | None = None,
        start: float = 0.0,
    ) -> None:
        times = server.times
        self.main = Thread(env, core, times.wake_us * US)
        self.io = Thread(env, core, times.wake_us * US)
        self.round_trips: list[tuple[float, float]] = []  # (when answered, seconds)
        self._env = env
        self._server = server
        self._rows = np.arange(rows)
        self._bytes = rows * row_bytes
        self._play_sec = rows * think_us if think_us is not None else times.client_message + rows * times.client_row
        self._play_sec *= US
        self._io_sec = (times.client_io_message / 2 + rows * times.client_io_row) * US
        self._receive_sec = times.client_io_message / 2 * US
        for _ in range(groups):
            env.process(self._circulate(start))

    def _circulate(self, start: float) -> Generator[simpy.Event, Any, None]:
        env, pieces = self._env, max(1, math.ceil(self._bytes / PIECE_BYTES))
        yield env.timeout(start)
        while True:
            played = env.event()
            self.main.submit(self._play_sec, played.succeed)
            yield played
            sent = env.now
            message = Message(self, self._rows, env.event(), pieces)
            for _ in range(pieces):
                self.io.submit(self._io_sec / pieces, partial(self._server.send, message, self._bytes / pieces))
            yield message.answered
            self.round_trips.append((env.now, env.now - sent))

    def receive(self, message: Message) -> None:
        """The last answer to a message arrived at the client's machine."""
        self.io.submit(self._receive_sec, message.answered.succeed)


@dataclass(frozen=True)
class Outcome:
    """What a simulated span found.

    Attributes:
        p50_us, p99_us: of the round trips of messages.
        busy: share of the time by kind of station, the mean of its stations.
    """

    actions_per_sec: float
    mean_batch: float
    p50_us: float
    p99_us: float
    busy: Mapping[str, float] = field(default_factory=dict)

    @property
    def bottleneck(self) -> str:
        """The busiest station."""
        return max(self.busy, key=lambda name: self.busy[name])


def observe(
    env: simpy.Environment,
    servers: Sequence[Server],
    players: Sequence[Player],
    stations: Mapping[str, Callable[[], float]],
    warm_up_sec: float,
    seconds: float,
) -> Outcome:
    """Run the model for a span after a warm-up. `stations`: seconds of work since the start, the mean of each kind."""
    env.run(until=env.now + warm_up_sec)
    begin = env.now
    rows, batches = sum(s.rows for s in servers), sum(s.batches for s in servers)
    worked = {name: work() for name, work in stations.items()}
    env.run(until=begin + seconds)
    rows, batches = sum(s.rows for s in servers) - rows, sum(s.batches for s in servers) - batches
    trips = [us for player in players for at, us in player.round_trips if at >= begin]
    p50, p99 = np.percentile(np.array(trips) * 1e6, (50, 99)).tolist() if trips else (math.nan, math.nan)
    busy = {name: (work() - worked[name]) / seconds for name, work in stations.items()}
    return Outcome(rows / seconds, rows / max(1, batches), p50, p99, busy)
