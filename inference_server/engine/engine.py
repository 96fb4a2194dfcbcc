"""A policy on a device: its network, its table of recurrent state, and the batched forward that ties them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from common.nets.base import RecurrentNetwork
from common.specs import GameSpec
from inference_server.engine.sampling import sample

DETERMINISTIC_BUCKET = 64


@dataclass(frozen=True)
class Outputs:
    """One row an answer, on the host: action int32 [B], log_prob and value float32 [B]."""

    action: NDArray[np.int32]
    log_prob: NDArray[np.float32]
    value: NDArray[np.float32]


class PolicyEngine:
    """Network and state table of one policy.

    The table is float32 [2 * max_sessions + 2, state_size]: two rows a slot (see `inference_server.sessions`),
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
    ) -> None:
        self.zero_row = 2 * max_sessions
        self.state_size = network.state_size
        self._scratch_row = self.zero_row + 1
        self._device = device
        self._bucket = DETERMINISTIC_BUCKET if deterministic else 0
        own = network.lowered(precision) if precision != torch.float32 else network
        self._network = own.to(device).eval().requires_grad_(False)
        self._spec = spec
        self._table = torch.zeros(self.zero_row + 2, self.state_size, device=device)

    @torch.inference_mode()
    def act(
        self,
        observation: NDArray[Any],
        mask: NDArray[np.uint8],
        read_rows: NDArray[np.int64],
        write_rows: NDArray[np.int64],
        noise: NDArray[np.float32],
    ) -> Outputs:
        """Forward, sample, and write the new states. Nothing is written when the forward raises.

        Args:
            observation: wire dtype [B, D]; mask: uint8 [B, A], 1 = legal.
            read_rows, write_rows: int64 [B], rows of the table; no two rows of a batch write the same one.
            noise: float32 [B, A], Gumbel noise, zeros for greedy rows.
        """
        n = len(read_rows)
        if self._bucket:
            return self._act_in_buckets(observation, mask, read_rows, write_rows, noise)
        action, log_prob, value = self._forward(
            torch.from_numpy(observation), torch.from_numpy(mask), torch.from_numpy(read_rows),
            torch.from_numpy(write_rows), torch.from_numpy(noise),
        )  # fmt: skip
        packed = torch.stack((action.to(torch.float32), log_prob, value)).cpu().numpy()  # device-to-host sync here
        return Outputs(packed[0, :n].astype(np.int32), packed[1, :n], packed[2, :n])

    def states(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Rows of the table on the host, float32 [B, state_size]."""
        return self._table[torch.from_numpy(rows).to(self._device)].cpu().numpy()

    @torch.inference_mode()
    def load(self, state: Mapping[str, Tensor]) -> None:
        """Copy verified weights in place. Call it between two batches, never inside one."""
        self._network.load_state_dict(state)

    def warm_up(self, sizes: tuple[int, ...]) -> None:
        """Run every batch size once, on the scratch row."""
        for size in sizes:
            rows = np.full(size, self._scratch_row, np.int64)
            self.act(
                np.zeros((size, self._spec.observation_size), self._spec.dtype()),
                np.ones((size, self._spec.num_actions), np.uint8),
                rows,
                rows,
                np.zeros((size, self._spec.num_actions), np.float32),
            )
        self._table.zero_()

    def _forward(
        self, observation: Tensor, mask: Tensor, read_rows: Tensor, write_rows: Tensor, noise: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        to = self._device
        legal = mask.to(to) > 0
        logits, value, new_state = self._network(observation.to(to), legal, self._table[read_rows.to(to)])
        action, log_prob = sample(logits.float(), legal, noise.to(to))
        self._table[write_rows.to(to)] = new_state.float()
        return action, log_prob, value.float()

    def _act_in_buckets(
        self,
        observation: NDArray[Any],
        mask: NDArray[np.uint8],
        read_rows: NDArray[np.int64],
        write_rows: NDArray[np.int64],
        noise: NDArray[np.float32],
    ) -> Outputs:
        """Always the same batch size, so that a row's arithmetic does not depend on its batch mates."""
        size, parts = self._bucket, []
        for start in range(0, len(read_rows), size):
            n = min(size, len(read_rows) - start)
            pad = size - n
            part = slice(start, start + n)
            outputs = self._forward(
                torch.from_numpy(np.pad(observation[part], ((0, pad), (0, 0)))),
                torch.from_numpy(np.pad(mask[part], ((0, pad), (0, 0)), constant_values=1)),
                torch.from_numpy(np.pad(read_rows[part], (0, pad), constant_values=self.zero_row)),
                torch.from_numpy(np.pad(write_rows[part], (0, pad), constant_values=self._scratch_row)),
                torch.from_numpy(np.pad(noise[part], ((0, pad), (0, 0)))),
            )
            parts.append([tensor[:n].cpu().numpy() for tensor in outputs])
        action, log_prob, value = (np.concatenate(columns) for columns in zip(*parts))
        return Outputs(action.astype(np.int32), log_prob, value)
