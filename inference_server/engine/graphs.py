"""Batches as replays of captured graphs: one copy to the device, one replay, one copy back, one wait.

What captures and replays is passed in: `simul.inference_server.engine.cuda` on a GPU, a stand-in where there is none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from logging import Logger

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simul.common.nets.base import RecurrentNetwork
from simul.common.nets.traced import TracedNetwork
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.throttle import Throttle, no_throttle
from simul.inference_server.engine.backends import Outputs
from simul.inference_server.engine.bucket import Bucket
from simul.inference_server.engine.engine import BUCKETS, PolicyEngine, Ready
from simul.inference_server.engine.graph_device import GraphDevice, Lane
from simul.inference_server.engine.sampling import sample_packed
from simul.inference_server.engine.staging import Inputs, Staging

# a GPU takes large batches whole: padding costs it less than a launch
GRAPH_BUCKETS = (*BUCKETS, 512, 1024, 2048, 4096)
CAPTURE_ERRORS = (RuntimeError, ValueError, TypeError, IndexError)  # what torch raises about what cannot be captured


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
    """Ending a capture that went wrong raises once more, and says less."""
    while error.__context__ is not None:
        error = error.__context__
    return error
