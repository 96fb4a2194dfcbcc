"""An LSTM (Hochreiter and Schmidhuber 1997) with one weight for input and state, stepped or run over packed rows.

Stepping is one product [x, h] W. Training computes the input's share for all rows at once, walks through time for the
state's share only, and computes the weight's gradient in one product at the end. Cell state and gates are float32.

Packed rows: sessions sorted by length, longest first; the rows of step t of all sessions that reach it
(`batch_sizes[t]` of them) follow those of step t - 1. Their number is rounded up by repeating row 0 behind the N valid
ones, see `round_up_rows`. Padding rows come out as zeros.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from simul.common.nets.base import compute_dtype


def round_up_rows(rows: Tensor) -> Tensor:
    """int64 [N] -> [P], zeros behind. P has at most five significant bits, so it is at most 1/16 above N.

    Low-precision products are compiled for every size they meet, which costs a millisecond and half a MiB each time.
    """
    unit = 1 << max(len(rows).bit_length() - 5, 0)
    return F.pad(rows, (0, -len(rows) % unit))


@dataclass(frozen=True)
class Packing:
    """Where the valid rows of a padded batch are.

    Attributes:
        order: int64 [B], sessions from the longest to the shortest.
        rows: int64 [P], positions of the packed rows in the flattened [T * B]; the first N are valid.
        valid: N, the sum of `batch_sizes`.
        batch_sizes: rows of each step that any session reaches.
        shape: (T, B).
    """

    order: Tensor
    rows: Tensor
    valid: int
    batch_sizes: list[int]
    shape: tuple[int, int]

    def pack(self, padded: Tensor) -> Tensor:
        """[T, B, ...] -> [P, ...]."""
        return padded.flatten(0, 1).index_select(0, self.rows)

    def pad(self, packed: Tensor) -> Tensor:
        """[P, ...] -> [T, B, ...], zeros where padded."""
        steps, sessions = self.shape
        flat = packed.new_zeros((steps * sessions, *packed.shape[1:]))
        flat = flat.index_copy(0, self.rows[: self.valid], packed[: self.valid])
        return flat.unflatten(0, (steps, sessions))

    def places_of(self, chosen: Tensor) -> Tensor:
        """int64 [N]: packed places of the valid rows where `chosen`, bool [T, B], is True; in the order of [T, B]."""
        places = torch.zeros(chosen.numel(), dtype=torch.int64, device=chosen.device)
        places[self.rows[: self.valid]] = torch.arange(self.valid, device=chosen.device)
        return places[chosen.flatten()]


def make_packing(lengths: Tensor, steps: int, device: torch.device) -> Packing:
    """Packing of B sessions of `lengths` (int64 [B], CPU) inside T = `steps` padded steps."""
    sessions = lengths.shape[0]
    sorted_lengths, order = torch.sort(lengths, descending=True, stable=True)
    valid = torch.arange(steps)[:, None] < sorted_lengths[None, :]  # (T, B), each row's ones at its left end
    step, place = valid.nonzero(as_tuple=True)
    rows = step * sessions + order[place]
    batch_sizes = [n for n in valid.sum(1).tolist() if n]
    return Packing(order.to(device), round_up_rows(rows).to(device), len(rows), batch_sizes, (steps, sessions))


class PackedLSTM(nn.Module):
    """Weights of an LSTM layer; gates in the order input, forget, output, cell.

    `weight` is [4H, I + H] (input columns, then state columns), `bias` [4H]. State row: h, then c: [2H].
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.weight = nn.Parameter(torch.empty(4 * hidden_size, input_size + hidden_size))
        self.bias = nn.Parameter(torch.zeros(4 * hidden_size))
        with torch.no_grad():
            nn.init.xavier_uniform_(self.weight[:, :input_size])
            for gate in self.weight[:, input_size:].split(hidden_size):
                nn.init.orthogonal_(gate)
            self.bias[hidden_size : 2 * hidden_size] = 1.0  # forget-gate bias of 1 (Jozefowicz et al. 2015)

    def forward(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """One step. x: [B, I]; state: float32 [B, 2H]. Returns h float32 [B, H] and the new state [B, 2H]."""
        dtype = compute_dtype(self.weight)
        h, c = state.split(self.hidden_size, dim=1)
        gates = F.linear(torch.cat((x.to(dtype), h.to(dtype)), dim=1), self.weight.to(dtype), self.bias.to(dtype))
        ifo, g = gates.float().split(3 * self.hidden_size, dim=1)
        i, f, o = ifo.sigmoid().split(self.hidden_size, dim=1)
        c = torch.addcmul(f * c, i, g.tanh())
        h = o * c.tanh()
        return h, torch.cat((h, c), dim=1)

    def run(self, x: Tensor, state: Tensor, batch_sizes: list[int]) -> Tensor:
        """All packed rows. x: [P, I]; state: float32 [B, 2H] of the sorted sessions. Returns h float32 [P, H]."""
        out: Tensor = _PackedLSTM.apply(x, state, self.weight, self.bias, batch_sizes)
        return out


class _PackedLSTM(torch.autograd.Function):
    """Back-propagation through time over packed rows, written out. State before the first row gets no gradient.

    tanh x is 1 - 2 sigmoid(-2 x), which takes a third of the time on a CPU.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, state: Tensor, weight: Tensor, bias: Tensor, batch_sizes: list[int]) -> Tensor:
        dtype = compute_dtype(weight)
        hidden = weight.shape[0] // 4
        inputs = weight.shape[1] - hidden
        x_low, weight_low = x.to(dtype), weight.to(dtype)
        state_weight = weight_low[:, inputs:].t().contiguous()  # (H, 4H)
        gates = F.linear(x_low, weight_low[:, :inputs], bias.to(dtype)).float()  # (P, 4H), then activated in place
        for sums in (state_weight, gates):
            sums[:, 3 * hidden :] *= -2  # of tanh, exact
        h_in = torch.zeros(len(gates), hidden, dtype=dtype, device=x.device)  # h before each row
        cells, tanh_cells, out = torch.zeros(3, len(gates), hidden, device=x.device)
        h, c = (part.float() for part in state.split(hidden, dim=1))
        one = torch.ones((), device=x.device)
        for n, gate, before, cell, tanh_cell, after in zip(
            batch_sizes, *(_by_step(rows, batch_sizes) for rows in (gates, h_in, cells, tanh_cells, out))
        ):
            before.copy_(h[:n])
            gate += before @ state_weight
            i, f, o, g = gate.sigmoid_().split(hidden, dim=1)
            torch.sub(one, g, alpha=2, out=g)
            c = torch.mul(f, c[:n], out=cell).addcmul_(i, g)
            torch.sub(one, (-2 * c).sigmoid_(), alpha=2, out=tanh_cell)
            h = torch.mul(o, tanh_cell, out=after)
        ctx.save_for_backward(x_low, weight_low, gates, h_in, cells, tanh_cells, state)
        ctx.batch_sizes, ctx.dtypes = batch_sizes, (x.dtype, weight.dtype)
        return out

    @staticmethod
    def backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, None, Tensor, Tensor, None]:
        x, weight, gates, h_in, cells, tanh_cells, state = ctx.saved_tensors
        hidden = cells.shape[1]
        inputs = x.shape[1]
        sizes: list[int] = ctx.batch_sizes
        state_weight = weight[:, inputs:]  # (4H, H)
        grad_gates = torch.zeros(gates.shape, dtype=weight.dtype, device=gates.device)
        grad_bias = cells.new_zeros(4 * hidden)
        grad_h = grad_c = cells.new_zeros(0, hidden)  # from the step behind
        before_steps = (state[:, hidden:], *_by_step(cells, sizes)[:-1])
        by_step = (_by_step(rows, sizes) for rows in (grad_out.clone(), gates, tanh_cells, grad_gates))
        for before, into_h, gate, tanh_cell, grad in zip(*map(reversed, (before_steps, *by_step))):
            into_h[: len(grad_h)] += grad_h
            slopes, cell_slope = _slopes(gate, before[: len(gate)], tanh_cell)
            into_c = into_h * cell_slope
            into_c[: len(grad_c)] += grad_c
            slopes *= torch.cat((into_c, into_c, into_h, into_c), dim=1)
            grad_bias += slopes.sum(0)
            grad.copy_(slopes)
            grad_h, grad_c = grad @ state_weight, into_c * gate[:, hidden : 2 * hidden]
        grad_weight = grad_gates.t() @ torch.cat((x, h_in), dim=1)
        grad_x = (grad_gates @ weight[:, :inputs]).to(ctx.dtypes[0]) if ctx.needs_input_grad[0] else None
        return grad_x, None, grad_weight.to(ctx.dtypes[1]), grad_bias.to(ctx.dtypes[1]), None


def _by_step(rows: Tensor, sizes: list[int]) -> tuple[Tensor, ...]:
    """Views of the packed rows of each step, without the padding rows."""
    steps: tuple[Tensor, ...] = rows[: sum(sizes)].split(sizes)
    return steps


def _slopes(gates: Tensor, before: Tensor, tanh_cell: Tensor) -> tuple[Tensor, Tensor]:
    """Slopes of one step in each gate before its activation [n, 4H], and in the cell [n, H].

    In the output gate and in the cell it is the slope of h, in the other gates that of the cell.

    Args:
        gates: float32 [n, 4H], activated.
        before: float32 [n, H], the cell before the step. tanh_cell: float32 [n, H], of the cell after it.
    """
    i, _, o, g = gates.chunk(4, dim=1)
    slopes = torch.addcmul(gates, gates, gates, value=-1)  # of a sigmoid
    of_i, of_f, of_o, of_g = slopes.chunk(4, dim=1)
    of_i *= g
    of_f *= before
    of_o *= tanh_cell
    torch.addcmul(i, i * g, g, value=-1, out=of_g)  # i (1 - tanh^2)
    return slopes, torch.addcmul(o, o * tanh_cell, tanh_cell, value=-1)  # o (1 - tanh^2)
