"""A policy on a device: its network, its table of recurrent state, and the batched forward that ties them.

A batch is staged in host buffers (`Staging`). A backend gathers the states, runs the network, chooses actions and
scatters the new states. On a CPU only the network runs in torch: around it compiled loops cost a fraction, above all
for small batches. On every other device all of it stays there, and one copy each way is made.
"""

from __future__ import annotations

import copy
import math
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simul.common.nets.base import RecurrentNetwork
from simul.common.nets.traced import Forward, TracedNetwork, trace_network, with_packed_weights
from simul.common.protocol.masks import unpack_masks
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.throttle import Throttle, no_throttle
from simul.inference_server.engine.sampling import (
    legal_priors,
    list_packed,
    listed_priors,
    recorded_sampler,
    sample_on_host,
)

ALIGNMENT = 64  # bytes: whole lines of the processor's cache, and what every vector load may ask for
DeviceLost = torch.AcceleratorError  # whatever runs on the device from now on fails: only a new process helps
# Batches are padded up to one of these sizes: every new size costs the device's library milliseconds and memory.
BUCKETS = (1, 2, 4, *range(8, 64, 8), *range(64, 128, 16), *range(128, 257, 32))
TRIALS = 5
DETERMINISTIC_BUCKETS = (64,)  # always the same size: a row's arithmetic does not depend on its batch mates
Ready = TracedNetwork | Mapping[str, Tensor]  # weights as `swap` takes them fastest


class Inputs(NamedTuple):
    """Rows of a batch as tensors, named as in `Staging`; mask: bool."""

    observation: Tensor
    mask: Tensor
    read_rows: Tensor
    write_rows: Tensor
    noise: Tensor
    temperature: Tensor


class StagingLayout:
    """Byte layout of a batch of `rows` rows in one buffer: one copy brings them to a device.

    Observations come last, so that a batch with rows to spare is a shorter copy: its first `stop(n)` bytes.
    """

    def __init__(self, rows: int, spec: GameSpec) -> None:
        observation = getattr(torch, spec.observation_dtype)
        self._row_bytes = spec.observation_size * observation.itemsize
        self._shapes: dict[str, tuple[int, torch.dtype, tuple[int, ...]]] = {}
        offset = 0
        for name, dtype, shape in (
            ("read_rows", torch.int64, (rows,)),
            ("write_rows", torch.int64, (rows,)),
            ("temperature", torch.float32, (rows,)),
            ("noise", torch.float32, (rows, spec.num_actions)),
            ("mask", torch.bool, (rows, spec.num_actions)),
            ("observation", observation, (rows, spec.observation_size)),
        ):
            self._shapes[name] = offset, dtype, shape
            offset += -(-math.prod(shape) * dtype.itemsize // ALIGNMENT) * ALIGNMENT
        self.size = offset

    def stop(self, rows: int) -> int:
        """Bytes that hold the first `rows` observations and all of everything else."""
        return self._shapes["observation"][0] + rows * self._row_bytes

    def views(self, memory: Tensor) -> Inputs:
        """The fields in `memory`, uint8 [`size`]; they share it."""
        fields = {}
        for name, (offset, dtype, shape) in self._shapes.items():
            stop = offset + math.prod(shape) * dtype.itemsize
            fields[name] = memory[offset:stop].view(dtype).view(shape)
        return Inputs(**fields)


class Staging:
    """Rows of one batch, the same memory for every size: what was just used is still in the processor's cache.

    observation: wire dtype [capacity, D]; mask: uint8 [capacity, A], and `legal`, the same memory as bool;
    read_rows, write_rows: int64 [capacity]; noise: float32 [capacity, A]; temperature: float32 [capacity].
    Rows that a batch leaves free keep whatever finite numbers they hold.
    """

    def __init__(self, capacity: int, spec: GameSpec, memory: Tensor | None = None) -> None:
        """`memory`: uint8 [`StagingLayout(capacity, spec).size`] on the host to lie in; None: its own."""
        self.capacity = capacity
        layout = StagingLayout(capacity, spec)
        fields = layout.views(torch.empty(layout.size, dtype=torch.uint8) if memory is None else memory)
        self.observation: NDArray[Any] = fields.observation.zero_().numpy()
        self.mask: NDArray[np.uint8] = fields.mask.fill_(True).view(torch.uint8).numpy()
        self.legal: NDArray[np.bool_] = self.mask.view(np.bool_)
        self.read_rows: NDArray[np.int64] = fields.read_rows.zero_().numpy()
        self.write_rows: NDArray[np.int64] = fields.write_rows.zero_().numpy()
        self.noise: NDArray[np.float32] = fields.noise.zero_().numpy()
        self.temperature: NDArray[np.float32] = fields.temperature.fill_(1.0).numpy()
        self._views: dict[tuple[int, int], Inputs] = {}

    def views(self, rows: slice) -> Inputs:
        """Tensors that share the buffers' memory."""
        views = self._views.get((rows.start, rows.stop))
        if views is None:
            arrays = (self.observation, self.legal, self.read_rows, self.write_rows, self.noise, self.temperature)
            views = self._views[rows.start, rows.stop] = Inputs(*(torch.from_numpy(array[rows]) for array in arrays))
        return views


Forwarded = tuple[slice, Inputs, tuple[Tensor, Tensor, Tensor]]  # rows, what went in, (logits, value, new state)


class Outputs(NamedTuple):
    """Answers on the host, one row each: action int32 [B], log_prob and value float32 [B]."""

    action: NDArray[np.int32]
    log_prob: NDArray[np.float32]
    value: NDArray[np.float32]


class Backend(Protocol):
    """A network, `run`, and its table of states, float32 [rows, state_size], on a device."""

    run: Forward
    table: Tensor

    def forward(self, staging: Staging, rows: slice) -> Forwarded:
        """Run the network. Nothing is written."""

    def sample(self, staging: Staging, forwarded: Forwarded) -> Outputs:
        """Choose the actions and write the new states."""


class HostBackend:
    """Backend of the CPU: numpy and compiled loops around the network."""

    def __init__(self, run: Forward, table: Tensor) -> None:
        self.table = table
        self.run = run
        self._rows = table.numpy()  # the same memory
        self._states: dict[tuple[int, int], tuple[NDArray[np.float32], Tensor]] = {}  # by rows: the same again
        self._state: NDArray[np.float32] = np.zeros((0, table.shape[1]), np.float32)

    def forward(self, staging: Staging, rows: slice) -> Forwarded:
        """See `Backend`."""
        inputs = staging.views(rows)
        state, tensor = self._states.get((rows.start, rows.stop)) or self._make_state(rows)
        self._rows.take(staging.read_rows[rows], axis=0, out=state, mode="clip")
        return rows, inputs, self.run(inputs.observation, inputs.mask, tensor)

    def sample(self, staging: Staging, forwarded: Forwarded) -> Outputs:
        """See `Backend`."""
        rows, _, (logits, value, new_state) = forwarded
        logits, value = logits.float().contiguous(), value.float().contiguous()  # a user's may be slices of one tensor
        action, log_prob = sample_on_host(
            logits.numpy(), staging.legal[rows], staging.noise[rows], staging.temperature[rows]
        )
        self._rows[staging.write_rows[rows]] = new_state.float().numpy()
        return Outputs(action, log_prob, value.numpy())

    def _make_state(self, rows: slice) -> tuple[NDArray[np.float32], Tensor]:
        """The rows' own part of one buffer: what was just used is still in the processor's cache."""
        if rows.stop > len(self._state):
            self._state = np.zeros((rows.stop, self._rows.shape[1]), np.float32)
            self._states.clear()
        state = self._state[rows]
        self._states[rows.start, rows.stop] = state, torch.from_numpy(state)
        return self._states[rows.start, rows.stop]


class DeviceBackend:
    """Backend of every other device: all operations in torch."""

    def __init__(self, run: Forward, table: Tensor, num_actions: int) -> None:
        self.table = table
        self.run = run
        self._sample = recorded_sampler(num_actions, table.device)

    def forward(self, staging: Staging, rows: slice) -> Forwarded:
        """See `Backend`."""
        inputs = Inputs(*(view.to(self.table.device) for view in staging.views(rows)))
        state = torch.index_select(self.table, 0, inputs.read_rows)
        return rows, inputs, self.run(inputs.observation, inputs.mask, state)

    def sample(self, staging: Staging, forwarded: Forwarded) -> Outputs:
        """See `Backend`."""
        _, inputs, (logits, value, new_state) = forwarded
        packed = self._sample(logits, value, inputs.mask, inputs.noise, inputs.temperature)
        self.table.index_copy_(0, inputs.write_rows, new_state.float())
        action, log_prob, values = packed.cpu().numpy()  # device-to-host sync here
        return Outputs(action.astype(np.int32), log_prob, values)


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
        listed = type(self.network).forward_listed is not RecurrentNetwork.forward_listed
        self._lists = listed and self._device.type == "cpu"  # EVALUATE: logits of legal actions alone
        self._rows = 0
        self._forwarded: list[Forwarded] = []

    def twin(self) -> Self:
        """Another engine for the same network with weights and table of its own; nothing is recorded again.

        Raises RuntimeError or TypeError where a user's network cannot be copied.
        """
        twin = copy.copy(self)
        twin._serve(self._recording.clone())
        return twin

    @property
    def network(self) -> RecurrentNetwork:
        """The network on its device, in its precision."""
        return self._recording.network

    def stage(self, rows: int) -> Staging:
        """Buffers whose first `rows` rows are to be filled before `forward(rows)`."""
        largest = self._buckets[-1]
        wanted = -(-rows // largest) * largest
        if wanted > self._staging.capacity:
            self._staging = Staging(wanted, self._spec)
        return self._staging

    def forward(self, rows: int) -> None:
        """Run the network on the staged rows. State rows are written by `sample` only, so an error changes nothing."""
        self._rows = rows
        self._forwarded = [self._backend.forward(self._staging, part) for part in self._parts(rows)]

    def sample(self) -> Outputs:
        """Choose the actions of the last `forward`, and write the new states."""
        parts = [self._backend.sample(self._staging, part) for part in self._forwarded]
        n = self._rows
        action, log_prob, value = parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts))
        return Outputs(action[:n], log_prob[:n], value[:n])

    @torch.inference_mode()
    def evaluate(
        self, observation: NDArray[Any], bits: NDArray[np.uint8], read_rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Probabilities of the legal actions, and values float32 [B]. The table is read, never written.

        Args:
            observation: wire dtype [B, D], B at most `largest_batch`; bits: uint8 [B, ceil(A / 8)], packed masks.
            read_rows: int64 [B], rows of the table.

        Returns:
            priors: float32 [K], in order of their ids, row behind row; K is the number of legal actions in the batch.
        """
        n = len(read_rows)
        size = self._bucket_of[n]
        staging = self.stage(size)
        staging.observation[:n] = observation
        staging.read_rows[:n], staging.read_rows[n:size] = read_rows, self.zero_row
        if self._lists:
            return self._evaluate_listed(staging, bits, size)
        staging.mask[:n] = unpack_masks(bits, self._spec.num_actions)
        _, inputs, (logits, value, _) = self._backend.forward(staging, slice(0, size))
        places = torch.from_numpy(np.flatnonzero(staging.legal[:n])).to(self._device)
        priors = legal_priors(logits.float(), inputs.mask, places)
        packed = torch.cat((value.float()[:n], priors)).cpu().numpy()  # device-to-host sync here
        return packed[n:], packed[:n]

    def _evaluate_listed(
        self, staging: Staging, bits: NDArray[np.uint8], size: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """`evaluate` of the staged rows by `forward_listed`. It is not traced: the trace gives all actions' logits."""
        rows, counts = len(bits), np.bitwise_count(bits).sum(axis=1, dtype=np.int64)
        ids = np.zeros((size, int(counts.max())), np.int64)
        list_packed(bits, staging.mask, ids)
        inputs = staging.views(slice(0, size))
        state = self._table[inputs.read_rows]
        logits, value = self.network.forward_listed(inputs.observation, inputs.mask, state, torch.from_numpy(ids))
        priors = listed_priors(logits[:rows].float().contiguous().numpy(), counts)
        return priors, value[:rows].float().numpy()

    @property
    def largest_batch(self) -> int:
        """Rows of the largest bucket."""
        return self._buckets[-1]

    def states(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Rows of the table on the host, float32 [B, state_size]."""
        if self._device.type == "cpu":
            return self._table.numpy().take(rows, axis=0)  # torch takes ten times as long to index a few rows
        return self._table[torch.from_numpy(rows).to(self._device)].cpu().numpy()

    @torch.inference_mode()
    def load(self, state: Mapping[str, Tensor], rest: Throttle = no_throttle) -> None:
        """Copy verified weights in place. Call it between two batches, never inside one."""
        self._recording.load(state, rest)

    def prepare(self, state: Mapping[str, Tensor], rest: Throttle = no_throttle) -> Ready:
        """Verified weights for `swap`, of this engine or a twin. May run on one thread beside the loop.

        On a CPU they are copied here, into a recorded network that is not in use; elsewhere `swap` copies them in
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
        """Warm up a policy that joins while others are served: nothing to do, the device's library is warm."""

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
