"""Where the arithmetic happens: gather the states, run the network, choose actions, scatter the new states.

A batch is staged on the host (`simul.inference_server.engine.staging`); `rows` is the slice of it that one forward
takes, padding included. On a CPU only the network runs in torch: around it compiled loops cost a fraction, above all
for small batches. On every other device all of it stays there, and one copy each way is made.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simul.common.nets.traced import Forward
from simul.inference_server.engine.sampling import recorded_sampler, sample_on_host
from simul.inference_server.engine.staging import Inputs, Staging

DeviceLost = torch.AcceleratorError  # whatever runs on the device from now on fails: only a new process helps
Forwarded = tuple[slice, Inputs, tuple[Tensor, Tensor, Tensor]]  # rows, what went in, (logits, value, new state)


class Outputs(NamedTuple):
    """One row an answer, on the host: action int32 [B], log_prob and value float32 [B]."""

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
    """The CPU."""

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
    """Any other device."""

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
