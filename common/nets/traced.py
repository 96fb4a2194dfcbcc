"""A recorded forward for serving: the same operations, no Python between them (a third off a small batch)."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch import Tensor

from common.nets.base import RecurrentNetwork
from common.specs import GameSpec

Forward = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]
TRACED_BATCH = 4
CHECKED_BATCHES = (1, 7, 64)


@torch.inference_mode()
def trace(network: RecurrentNetwork, spec: GameSpec) -> Forward:
    """`network.forward`, recorded once and checked against the original at other batch sizes.

    It shares the network's parameters: weights that are copied in place serve from the next call on. A network whose
    forward branches on its input, or that gives other numbers when recorded, is returned as it is.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tracing tells of every shape it fixes; the check below decides
        try:
            recorded = torch.jit.trace(network, _example(network, spec, TRACED_BATCH), check_trace=False)
            same = all(_agree(network, recorded, _example(network, spec, batch)) for batch in CHECKED_BATCHES)
            same = same and _agree_on_any_sign(network, recorded, spec)
        except (RuntimeError, TypeError, ValueError, IndexError):
            return network
    return recorded.forward if same else network  # without what a module does around its forward


def _example(network: RecurrentNetwork, spec: GameSpec, batch: int) -> tuple[Tensor, Tensor, Tensor]:
    state = network.initial_state(batch)
    draw = torch.Generator().manual_seed(batch)
    observation = torch.rand(batch, spec.observation_size, generator=draw).to(getattr(torch, spec.observation_dtype))
    mask = torch.rand(batch, spec.num_actions, generator=draw) < 0.5
    return observation.to(state.device), mask.to(state.device), state


def _agree_on_any_sign(network: RecurrentNetwork, recorded: torch.jit.ScriptModule, spec: GameSpec) -> bool:
    """A branch on the input may go one way for all numbers from 0 to 1. Ids cannot be negative: that proves nothing."""
    observation, mask, state = _example(network, spec, TRACED_BATCH)
    example = (-100 * observation, mask, state)
    try:
        network(*example)
    except (RuntimeError, IndexError, ValueError):
        return True
    return _agree(network, recorded, example)


def _agree(network: RecurrentNetwork, recorded: torch.jit.ScriptModule, example: tuple[Tensor, Tensor, Tensor]) -> bool:
    """The same to the last bit, once the recorder has settled."""
    for _ in range(3):
        got = recorded.forward(*example)
    return all(torch.equal(a, b) for a, b in zip(got, network(*example)))
