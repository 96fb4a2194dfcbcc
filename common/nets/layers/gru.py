"""A GRU (Cho et al. 2014, arXiv:1406.1078), stepped or run over packed rows: torch's, with a float32 state.

See `simul.common.nets.layers.lstm` for packed rows. The state row is h: [H].
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from simul.common.nets.base import compute_dtype

UPDATE_BIAS = 2.0  # at first 0.88 of h stays at each step; what 1.0 and 3.0 give: benchmarks/RESULTS.md


class PackedGRU(nn.Module):
    """Weights of a GRU layer, `torch.nn.GRU`'s: gates in the order reset, update, new."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.layer: Any = nn.GRU(input_size, hidden_size)  # torch declares no types of its weights
        of_x, of_h, bias_x, bias_h = self.layer.parameters()
        with torch.no_grad():
            nn.init.xavier_uniform_(of_x)
            for gate in of_h.split(hidden_size):
                nn.init.orthogonal_(gate)
            for bias in (bias_x, bias_h):
                nn.init.zeros_(bias)
            bias_x[hidden_size : 2 * hidden_size] = UPDATE_BIAS

    def forward(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """One step. x: [B, I]; state: float32 [B, H]. Returns h float32 [B, H] twice, the second as the new state.

        The products run in the weights' dtype, everything else in float32: a rounded state forgets.
        """
        layer = self.layer
        dtype = compute_dtype(layer.weight_ih_l0)
        of_x = F.linear(x.to(dtype), layer.weight_ih_l0.to(dtype), layer.bias_ih_l0.to(dtype)).float()
        of_h = F.linear(state.to(dtype), layer.weight_hh_l0.to(dtype), layer.bias_hh_l0.to(dtype)).float()
        gates_x, new_x = of_x.split((2 * self.hidden_size, self.hidden_size), dim=1)
        gates_h, new_h = of_h.split((2 * self.hidden_size, self.hidden_size), dim=1)
        reset, update = (gates_x + gates_h).sigmoid().chunk(2, dim=1)
        new = torch.addcmul(new_x, reset, new_h).tanh()
        h = torch.lerp(new, state, update)
        return h, h

    def run(self, x: Tensor, state: Tensor, batch_sizes: list[int]) -> Tensor:
        """All packed rows. x: [P, I]; state: float32 [B, H] of the sorted sessions. Returns h float32 [P, H].

        In float32, with autocast too: torch's kernels round the state between the steps otherwise.
        """
        valid = sum(batch_sizes)
        if not valid:
            return state.new_zeros(len(x), self.hidden_size)
        with torch.autocast(x.device.type, enabled=False):
            rows = PackedSequence(x[:valid].float(), torch.tensor(batch_sizes))
            packed, _ = self.layer(rows, state[None, : batch_sizes[0]].contiguous())
        return F.pad(packed.data, (0, 0, 0, len(x) - valid))
