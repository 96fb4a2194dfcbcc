"""A policy on a device: its network, its table of recurrent state, and the batched forward that ties them."""

from __future__ import annotations

import copy
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simul.common.nets.base import RecurrentNetwork
from simul.common.nets.traced import TracedNetwork, trace_network, with_packed_weights
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.throttle import Throttle, no_throttle
from simul.inference_server.engine.backends import Backend, DeviceBackend, Forwarded, HostBackend, Outputs
from simul.inference_server.engine.sampling import masked_softmax
from simul.inference_server.engine.staging import Staging

# Batches are padded up to one of these sizes: every new size costs the device's library milliseconds and memory.
BUCKETS = (1, 2, 4, *range(8, 64, 8), *range(64, 128, 16), *range(128, 257, 32))
TRIALS = 5
DETERMINISTIC_BUCKETS = (64,)  # always the same size: a row's arithmetic does not depend on its batch mates

Ready = TracedNetwork | Mapping[str, Tensor]  # weights as `swap` takes them fastest


class PolicyEngine:
    """Network and state table of one policy.

    The table is float32 [2 * max_sessions + 2, state_size]: two rows a slot (see `sessions/table.py`),
    then a row of zeros that every session's first step reads, then a scratch row for padding.
    """

    def __init__(
        self,
        network: RecurrentNetwork,
        spec: GameSpec,
        *,
        max_sessions: int,
        device: torch.device,
        precision: torch.dtype,
        deterministic: bool = False,
        staging: Staging | None = None,
        buckets: tuple[int, ...] = BUCKETS,
    ) -> None:
        """`staging`: shared by the engines of one loop, which takes one batch at a time; None: its own."""
        self.zero_row = 2 * max_sessions
        self.state_size = network.state_size
        self.least_forward_sec = 0.0  # of one row, known after `warm_up`: what a batch costs whatever its size
        self._scratch_row = self.zero_row + 1
        self._device = device
        self._buckets = DETERMINISTIC_BUCKETS if deterministic else buckets
        self._spares: deque[TracedNetwork] = deque()  # of this engine and its twins: they serve in turns
        own = network.lowered(precision) if precision != torch.float32 else network
        self._spec = spec
        self._staging = staging or Staging(self._buckets[-1], spec)
        self._bucket_of = [next(b for b in self._buckets if b >= n) for n in range(self.largest_batch + 1)]
        recording = trace_network(own.to(device).eval().requires_grad_(False), spec)
        if device.type == "cpu" and not deterministic:
            recording = with_packed_weights(recording, spec, self._buckets)
        self._serve(recording)

    def _serve(self, recording: TracedNetwork) -> None:
        """Run this network from now on, with an empty table of states."""
        self._recording = recording
        self.runner = recording.runner
        self._table = torch.zeros(self.zero_row + 2, self.state_size, device=self._device)
        self._backend: Backend = (
            HostBackend(recording.forward, self._table)
            if self._device.type == "cpu"
            else DeviceBackend(recording.forward, self._table, self._spec.num_actions)
        )
        self._rows = 0
        self._forwarded: list[Forwarded] = []

    def twin(self) -> Self:
        """Another engine for the same network, its weights and table its own: nothing is recorded, beside the loop.

        Raises RuntimeError or TypeError where a user's network cannot be copied.
        """
        twin = copy.copy(self)
        twin._serve(self._recording.clone())
        return twin

    @property
    def network(self) -> RecurrentNetwork:
        """What runs, on the device and in its precision."""
        return self._recording.network

    def stage(self, rows: int) -> Staging:
        """Buffers whose first `rows` rows are to be filled before `forward(rows)`."""
        largest = self._buckets[-1]
        wanted = -(-rows // largest) * largest
        if wanted > self._staging.capacity:
            self._staging = Staging(wanted, self._spec)
        return self._staging

    def forward(self, rows: int) -> None:
        """Run the network on what is staged. Nothing is written yet, and nothing ever where it raises."""
        self._rows = rows
        self._forwarded = [self._backend.forward(self._staging, part) for part in self._parts(rows)]

    def sample(self) -> Outputs:
        """Choose the actions of what was forwarded, and write the new states."""
        parts = [self._backend.sample(self._staging, part) for part in self._forwarded]
        n = self._rows
        action, log_prob, value = parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts))
        return Outputs(action[:n], log_prob[:n], value[:n])

    @torch.inference_mode()
    def evaluate(
        self, observation: NDArray[Any], mask: NDArray[np.uint8], read_rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Probabilities float32 [B, A] (0 where illegal) and values float32 [B]. The table is read, never written.

        Args:
            observation: wire dtype [B, D], B at most `largest_batch`; mask: uint8 [B, A], 1 = legal.
            read_rows: int64 [B], rows of the table.
        """
        n = len(read_rows)
        size = self._bucket_of[n]
        staging = self.stage(size)
        staging.observation[:n], staging.mask[:n] = observation, mask
        staging.read_rows[:n], staging.read_rows[n:size] = read_rows, self.zero_row
        _, inputs, (logits, value, _) = self._backend.forward(staging, slice(0, size))
        priors = masked_softmax(logits.float(), inputs.mask)
        packed = torch.cat((priors, value.float()[:, None]), dim=1).cpu().numpy()  # device-to-host sync here
        return packed[:n, :-1], packed[:n, -1]

    @property
    def largest_batch(self) -> int:
        """Rows of the largest bucket."""
        return self._buckets[-1]

    def states(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Rows of the table on the host, float32 [B, state_size]."""
        return self._table[torch.from_numpy(rows).to(self._device)].cpu().numpy()

    @torch.inference_mode()
    def load(self, state: Mapping[str, Tensor], rest: Throttle = no_throttle) -> None:
        """Copy verified weights in place. Call it between two batches, never inside one."""
        self._recording.load(state, rest)

    def prepare(self, state: Mapping[str, Tensor], rest: Throttle = no_throttle) -> Ready:
        """Verified weights for `swap`, of this engine or a twin. May run on one thread beside the loop.

        On a CPU they are copied here, into a recorded network that serves nobody; elsewhere `swap` copies them in
        place, from tensors that lie on the device already.
        """
        if not isinstance(self._backend, HostBackend):
            return self.converted(state)
        try:
            spare = self._spares.popleft() if self._spares else self._recording.clone()
        except (RuntimeError, TypeError):  # a user's network that cannot be copied
            return self.converted(state)
        spare.load(state, rest)
        return spare

    def swap(self, ready: Ready) -> None:
        """Serve these weights from the next batch on. Call it between two batches, never inside one."""
        if not isinstance(ready, TracedNetwork):
            self.load(ready)
            return
        self._spares.append(self._recording)
        self._recording = ready
        self._backend.run = ready.forward

    def converted(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Verified weights as `load` copies them fastest: on the device, in its precision. May run beside the loop."""
        own = self.network.state_dict()
        return {name: value.to(own[name].device, own[name].dtype) for name, value in state.items()}

    def warm_up(self, sizes: tuple[int, ...]) -> None:
        """Run every batch size once, on the scratch row, and measure the smallest.

        In buffers of its own: the loop may be using the others while a policy is loaded.
        """
        shared, self._staging = self._staging, Staging(max(sizes), self._spec)
        for size in sizes:
            self._try(size)
        self.least_forward_sec = min(self._try(1) for _ in range(TRIALS))
        self._staging = shared
        self._table.zero_()
        if not self._spares:  # made now, the first swap finds one
            ready = self.prepare(self.network.state_dict())
            if isinstance(ready, TracedNetwork):
                self._spares.append(ready)

    def warm_up_beside(self) -> None:
        """What is left to do for a policy that joins while others are served: nothing, the device's library is warm."""

    def _try(self, size: int) -> float:
        staging = self.stage(size)
        staging.observation[:size], staging.mask[:size], staging.noise[:size] = 0, 1, 0
        staging.read_rows[:size] = staging.write_rows[:size] = self._scratch_row
        begin = time.perf_counter()
        self.forward(size)
        self.sample()
        return time.perf_counter() - begin

    def _parts(self, rows: int) -> list[slice]:
        """Staged rows of each forward, padded up to a bucket."""
        largest, staging = self.largest_batch, self._staging
        parts = []
        for start in range(0, rows, largest):
            stop = min(rows, start + largest)
            end = start + self._bucket_of[stop - start]
            if end > stop:
                staging.read_rows[stop:end], staging.write_rows[stop:end] = self.zero_row, self._scratch_row
            parts.append(slice(start, end))
        return parts
