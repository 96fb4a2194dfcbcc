"""Batches as replays of captured graphs: one copy to the device, one replay, one copy back, one wait.

The device that captures and replays is passed in (`GraphDevice`): `simul.inference_server.engine.cuda` on a GPU, a
stand-in where there is none. A `Bucket` is one batch size of one policy: static inputs and outputs on both sides, and
the graph between them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from logging import Logger
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simul.common.nets.base import RecurrentNetwork
from simul.common.nets.traced import TracedNetwork
from simul.common.protocol.specs import GameSpec, random_observations
from simul.common.runtime.throttle import Throttle, no_throttle
from simul.inference_server.engine.engine import BUCKETS, Inputs, Outputs, PolicyEngine, Ready, Staging, StagingLayout
from simul.inference_server.engine.sampling import sample_packed

OUTPUTS = 3  # action, log-prob, value
TOLERANCE = 0.02  # between a replay and the same operations one at a time: bfloat16's
UNWRITTEN = 1e9
GRAPH_BUCKETS = (*BUCKETS, 512, 1024, 2048, 4096)
CAPTURE_ERRORS = (RuntimeError, ValueError, TypeError, IndexError)  # what torch raises about what cannot be captured


class Graph(Protocol):
    """Recorded work on fixed memory."""

    def replay(self) -> None:
        """Queue all of it again."""


class Lane(Protocol):
    """Where the graphs of one policy are captured. They share memory, since only one of them runs at a time."""

    def capture(self, body: Callable[[], None]) -> Graph:
        """Run `body` to warm up, then record it. Raises RuntimeError where it cannot be recorded."""


class Event(Protocol):
    """A mark in the device's queue."""

    def record(self) -> None:
        """Place it behind everything queued so far."""

    def synchronize(self) -> None:
        """Wait until the device has reached it."""


class GraphDevice(Protocol):
    """A device that executes a queue in order, asynchronously to the host."""

    def host_bytes(self, size: int) -> Tensor:
        """uint8 [size] on the host, which the device can copy from and to by itself (pinned memory)."""

    def copy(self, target: Tensor, source: Tensor) -> None:
        """Queue a copy, of `host_bytes` on one side or the other."""

    def event(self) -> Event:
        """A new mark."""

    def lane(self) -> Lane:
        """A lane for a new policy; its resources are freed with the last reference."""


class Bucket:
    """`staging` is filled, `launch` queues the work, `collect` waits for the answers.

    Buckets share no buffers: the rows that a batch leaves free hold what an earlier one left there, never other bytes.

    Attributes:
        rows: size of the padded batch. inputs: what the graph reads. outputs: float32 [3, rows], what it writes.
    """

    def __init__(
        self, rows: int, spec: GameSpec, graphs: GraphDevice, device: torch.device, padding: tuple[int, int]
    ) -> None:
        """`padding`: the row of the state table that free rows read, and the one that they write."""
        self.rows = rows
        self._spec = spec
        layout = StagingLayout(rows, spec)
        self._host = graphs.host_bytes(layout.size)
        self.staging = Staging(rows, spec, self._host)
        self._bytes = torch.zeros(layout.size, dtype=torch.uint8, device=device)
        self.inputs = layout.views(self._bytes)
        self.outputs = torch.zeros(OUTPUTS, rows, device=device)
        self._arrived = graphs.host_bytes(self.outputs.nbytes).view(torch.float32).view(OUTPUTS, rows)
        self._numbers: NDArray[np.float32] = self._arrived.numpy()
        self._layout, self._padding = layout, padding
        self._graphs, self._done = graphs, graphs.event()
        self._copies: dict[int, tuple[Tensor, Tensor]] = {}  # by rows: where to, where from
        self._launched = 0
        self._graph: Graph

    def capture(self, lane: Lane, body: Callable[[], None]) -> None:
        """Record `body`, which computes `outputs` from `inputs`.

        Raises:
            RuntimeError: it cannot be recorded, or its replay gives other answers.
        """
        self._fill_at_random()
        self._graphs.copy(self._bytes, self._host)
        self._graph = lane.capture(body)
        replayed = self._answers_of(self._graph.replay, UNWRITTEN)
        expected = self._answers_of(body, -UNWRITTEN)
        if not np.allclose(replayed, expected, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
            raise RuntimeError(f"the graph of {self.rows} rows gives other answers than what it was captured from")

    def launch(self, rows: int) -> None:
        """Queue copy, replay and copy for the first `rows` rows of `staging`."""
        self._pad(rows)
        copy = self._copies.get(rows)
        if copy is None:
            stop = self._layout.stop(rows)
            copy = self._copies[rows] = self._bytes[:stop], self._host[:stop]
        self._graphs.copy(*copy)
        self._graph.replay()
        self._graphs.copy(self._arrived, self.outputs)
        self._done.record()
        self._launched = rows

    def collect(self) -> NDArray[np.float32]:
        """Action, log_prob and value, float32 [3, rows launched]; device-to-host sync here."""
        self._done.synchronize()
        return self._numbers[:, : self._launched].copy()  # the next batch writes over the original

    def _pad(self, rows: int) -> None:
        self.staging.read_rows[rows:], self.staging.write_rows[rows:] = self._padding

    def _fill_at_random(self) -> None:
        """Observations without noise: the most probable action must not depend on a last bit."""
        self._pad(0)
        self.staging.observation[:] = random_observations(self._spec, self.rows, np.random.default_rng(self.rows))

    def _answers_of(self, run: Callable[[], None], before: float) -> NDArray[np.float32]:
        """log_prob and value, float32 [2, rows], for the inputs on the device; `before` where nothing is written."""
        self.outputs.fill_(before)
        run()
        self._graphs.copy(self._arrived, self.outputs)
        self._done.record()
        self._done.synchronize()
        return self._numbers[1:].copy()


# a GPU takes large batches whole: padding costs it less than a launch


class GraphEngine(PolicyEngine):
    """A PolicyEngine that replays one graph a bucket. Before they are captured, and where that fails, it runs as one.

    A replay writes the new states itself, as its last act, to rows that no step reads before its turn is committed.
    """

    def __init__(
        self,
        network: RecurrentNetwork,
        spec: GameSpec,
        *,
        max_sessions: int,
        max_batch: int,
        device: torch.device,
        precision: torch.dtype,
        graphs: GraphDevice,
        log: Logger,
        deterministic: bool = False,
        staging: Staging | None = None,
    ) -> None:
        """As PolicyEngine. `max_batch`: a batch of so many rows is one replay."""
        enough = next((size for size in GRAPH_BUCKETS if size >= max_batch), GRAPH_BUCKETS[-1])
        super().__init__(
            network, spec, max_sessions=max_sessions, device=device, precision=precision,
            deterministic=deterministic, staging=staging,
            buckets=tuple(size for size in GRAPH_BUCKETS if size <= enough),
        )  # fmt: skip
        self._graphs = graphs
        self._log = log

    def _serve(self, recording: TracedNetwork) -> None:
        super()._serve(recording)
        self._lane: Lane | None = None
        self._by_rows: tuple[Bucket, ...] = ()  # the bucket of each number of rows; empty: no graphs
        self._bucket: Bucket | None = None  # whose staging is being filled; None: the staging of PolicyEngine
        self._answers: list[NDArray[np.float32]] = []  # of a batch that ran in parts

    def stage(self, rows: int) -> Staging:
        """As PolicyEngine; where one graph takes all the rows, its own pinned buffers."""
        if rows < len(self._by_rows):
            self._bucket = self._by_rows[rows]
            return self._bucket.staging
        self._bucket = None
        return super().stage(rows)

    def forward(self, rows: int) -> None:
        """As PolicyEngine. A batch of one bucket is only queued: the device is at it when this returns."""
        if self._bucket is not None:
            self._bucket.launch(rows)
        elif self._by_rows:
            largest = self.largest_batch
            self._answers = [
                self._answer_part(slice(start, min(rows, start + largest))) for start in range(0, rows, largest)
            ]
        else:
            super().forward(rows)

    def sample(self) -> Outputs:
        """As PolicyEngine: the answers of what was forwarded."""
        if self._bucket is not None:
            packed = self._bucket.collect()
        elif self._answers:
            packed = np.concatenate(self._answers, axis=1)
        else:
            return super().sample()
        return Outputs(packed[0].astype(np.int32), packed[1], packed[2])

    def prepare(self, state: Mapping[str, Tensor], rest: Throttle = no_throttle) -> Ready:
        """As PolicyEngine. Graphs read the weights where they lay when they were captured: they are copied there."""
        return self.converted(state)

    def warm_up(self, sizes: tuple[int, ...]) -> None:
        """As PolicyEngine, after every bucket's graph was captured."""
        self._capture()
        super().warm_up(sizes)

    def warm_up_beside(self) -> None:
        """Capture on a thread beside the loop, which until then runs this engine one operation at a time."""
        threading.Thread(target=self._capture, name="graph-capture").start()

    def _capture(self) -> None:
        try:
            buckets, self._lane = self._captured()
        except CAPTURE_ERRORS as error:
            sentence = str(_first(error)).partition("\n")[0]
            self.runner = f"eager: {sentence}"
            self._log.warning("no graphs, the network runs one operation at a time: %s", sentence)
            return
        self.runner = f"{len(buckets)} graphs"
        rising, largest = buckets[::-1], buckets[0].rows
        self._by_rows = tuple(next(b for b in rising if b.rows >= rows) for rows in range(largest + 1))

    def _captured(self) -> tuple[list[Bucket], Lane]:
        """A bucket of every size, the largest first: the others fit into the memory that its capture leaves behind."""
        lane, buckets = self._graphs.lane(), []
        for rows in reversed(self._buckets):
            bucket = Bucket(rows, self._spec, self._graphs, self._device, (self.zero_row, self._scratch_row))
            bucket.capture(lane, self._body(bucket.inputs, bucket.outputs))
            buckets.append(bucket)
        return buckets, lane

    def _body(self, inputs: Inputs, outputs: Tensor) -> Callable[[], None]:
        """What one graph does: gather, forward, mask, sample, and scatter last, so that one that raises writes nothing.

        It calls the plain network: the recorded one's executor may still be compiling for a size new to it.
        """
        table, network = self._table, self.network

        @torch.inference_mode()
        def body() -> None:
            state = torch.index_select(table, 0, inputs.read_rows)
            logits, value, new_state = network(inputs.observation, inputs.mask, state)
            outputs.copy_(sample_packed(logits, value, inputs.mask, inputs.noise, inputs.temperature))
            table.index_copy_(0, inputs.write_rows, new_state.float())

        return body

    def _answer_part(self, part: slice) -> NDArray[np.float32]:
        """Rows of a batch that no bucket takes whole: float32 [3, rows]."""
        rows, whole = part.stop - part.start, self._staging
        bucket = self._by_rows[rows]
        for name in Inputs._fields:
            getattr(bucket.staging, name)[:rows] = getattr(whole, name)[part]
        bucket.launch(rows)
        return bucket.collect()


def _first(error: BaseException) -> BaseException:
    """The first error: ending a failed capture raises a second, less specific one."""
    while error.__context__ is not None:
        error = error.__context__
    return error
