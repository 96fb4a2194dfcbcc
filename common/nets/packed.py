"""Weights laid out once as the processor's library reads them, instead of at every forward (CPU, serving only).

A product of a batch with a plain weight begins by rearranging that weight: as much work as a batch of 64 rows is in
bfloat16. oneDNN takes bfloat16 weights rearranged beforehand, MKL float32 ones; both through operations of torch that
are not documented, which is why a forward with packed weights is checked against the plain one at every batch size.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from simul.common.nets.base import RecurrentNetwork
from simul.common.runtime.rests import Rest, no_rest

MKL_BATCH = 128  # a hint: rows for which MKL packs best


class Way(NamedTuple):
    """How weights of a dtype are packed and multiplied with. Those of fewer numbers than `least` gain nothing by it."""

    pack: Callable[[Tensor], Tensor]
    linear: Callable[..., Tensor]
    least: int


def _linear_onednn(x: Tensor, weight: Tensor, bias: Tensor | None, packed: Tensor) -> Tensor:
    if x.size(0) == 1 and weight.numel() < 8192:  # plainly a product of vectors, at a fifth of the cost
        return torch.nn.functional.linear(x, weight, bias)
    return torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")


def _linear_mkl(x: Tensor, weight: Tensor, bias: Tensor | None, packed: Tensor) -> Tensor:
    if x.size(0) < 4:  # a product of vectors: nothing to rearrange
        return torch.nn.functional.linear(x, weight, bias)
    return torch.ops.mkl._mkl_linear(x, packed, weight, bias, x.size(0))


def _pack_onednn(weight: Tensor) -> Tensor:
    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight, None)
    return packed


def _pack_mkl(weight: Tensor) -> Tensor:
    packed: Tensor = torch.ops.mkl._mkl_reorder_linear_weight(weight, MKL_BATCH)
    return packed


@cache
def _ways() -> dict[torch.dtype, Way]:
    """By what this build of torch has."""
    ways: dict[torch.dtype, Way] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # scripts, because a trace takes neither lists nor branches
        if torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported():
            ways[torch.bfloat16] = Way(_pack_onednn, torch.jit.script(_linear_onednn), least=4096)
        if torch.backends.mkl.is_available():
            ways[torch.float32] = Way(_pack_mkl, torch.jit.script(_linear_mkl), least=32768)
    return ways


class PackedForward(nn.Module):
    """The forward of a network that takes its packed weights as further arguments, in the order of `names`."""

    def __init__(self, network: RecurrentNetwork, names: Iterable[str]) -> None:
        super().__init__()
        self.network = network
        self.names = tuple(names)

    def forward(self, observation: Tensor, mask: Tensor, state: Tensor, *packed: Tensor) -> Any:
        """See `RecurrentNetwork.forward`."""
        with _Swapped(self.network, dict(zip(self.names, packed))):
            return self.network(observation, mask, state)


class _Swapped(TorchFunctionMode):
    """Inside it F.linear multiplies with packed weights, and takes down which of a network's weights it saw."""

    def __init__(self, network: RecurrentNetwork, packed: dict[str, Tensor]) -> None:
        super().__init__()
        self._names = {id(parameter): name for name, parameter in network.named_parameters()}
        self._packed, self._ways = packed, _ways()
        self.seen: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is F.linear and not kwargs:
            x, weight, bias = (*args, None)[:3]
            name = self._names.get(id(weight), "")
            if name and x.dim() == 2:
                self.seen.append(name)
                if name in self._packed:
                    return self._ways[weight.dtype].linear(x, weight, bias, self._packed[name])
        return func(*args, **(kwargs or {}))


def packable(network: RecurrentNetwork, example: tuple[Tensor, Tensor, Tensor]) -> list[str]:
    """Names of the weights that a forward multiplies whole batches with and that can be packed, in its order."""
    with _Swapped(network, {}) as mode:
        network(*example)
    parameters, ways = dict(network.named_parameters()), _ways()
    seen = {name: parameters[name] for name in mode.seen}
    return [name for name, own in seen.items() if own.dtype in ways and own.numel() >= ways[own.dtype].least]


class PackedWeights:
    """Weights of a network, packed as they were when `refresh` was called last."""

    def __init__(self, network: RecurrentNetwork, names: Iterable[str]) -> None:
        self.names = tuple(names)
        self._network = network
        self.tensors: list[Tensor] = []
        self.refresh()

    @torch.inference_mode()
    def refresh(self, rest: Rest = no_rest) -> None:
        """Pack the network's weights as they are now."""
        parameters, ways, fresh = dict(self._network.named_parameters()), _ways(), []
        for name in self.names:
            fresh.append(ways[parameters[name].dtype].pack(parameters[name].detach()))
            rest()
        self.tensors[:] = fresh
