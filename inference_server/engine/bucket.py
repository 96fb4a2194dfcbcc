"""One batch size of one policy: static inputs and outputs on both sides, and the graph between them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simul.common.protocol.specs import GameSpec
from simul.inference_server.engine.graph_device import Graph, GraphDevice, Lane
from simul.inference_server.engine.staging import Packing, Staging

OUTPUTS = 3  # action, log-prob, value
TOLERANCE = 0.02  # between a replay and the same operations one at a time: bfloat16's
UNWRITTEN = 1e9


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
        packing = Packing(rows, spec)
        self._host = graphs.host_bytes(packing.size)
        self.staging = Staging(rows, spec, self._host)
        self._bytes = torch.zeros(packing.size, dtype=torch.uint8, device=device)
        self.inputs = packing.views(self._bytes)
        self.outputs = torch.zeros(OUTPUTS, rows, device=device)
        self._arrived = graphs.host_bytes(self.outputs.nbytes).view(torch.float32).view(OUTPUTS, rows)
        self._numbers: NDArray[np.float32] = self._arrived.numpy()
        self._packing, self._padding = packing, padding
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
            stop = self._packing.stop(rows)
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
        """Observations without noise: which action is the most probable shall not hang on a last bit."""
        self._pad(0)
        draw = np.random.default_rng(self.rows)
        self.staging.observation[:] = draw.random(self.staging.observation.shape)

    def _answers_of(self, run: Callable[[], None], before: float) -> NDArray[np.float32]:
        """log_prob and value, float32 [2, rows], for the inputs on the device; `before` where nothing is written."""
        self.outputs.fill_(before)
        run()
        self._graphs.copy(self._arrived, self.outputs)
        self._done.record()
        self._done.synchronize()
        return self._numbers[1:].copy()
