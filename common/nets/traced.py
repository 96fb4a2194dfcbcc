"""The forward as it serves: traced once, and on a CPU with weights packed once.

A traced forward runs the same operations with no Python between them: a third off a small batch.

A product of a batch with a plain weight first rearranges that weight, which costs as much as a batch of 64 rows in
bfloat16. oneDNN takes bfloat16 weights rearranged in advance, MKL float32 ones; both through undocumented operations of
torch, so a forward with packed weights is checked against the plain one at every batch size.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from simul.common.nets.base import RecurrentNetwork
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.throttle import Rest, no_rest

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


Forward = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]
TRACED_BATCH = 4
CHECKED_BATCHES = (1, 7, 64)
TOLERANCE = {torch.bfloat16: 0.02, torch.float32: 1e-4}  # between packed weights and plain ones of that kind


@dataclass(frozen=True)
class Recording:
    """A network and its recorded forward, which share their parameters. `recorded` None: it runs as it is.

    `packed`: weights that the recorded forward reads instead of the network's own.
    """

    network: RecurrentNetwork
    recorded: torch.jit.ScriptModule | None
    packed: PackedWeights | None = None

    @property
    def runner(self) -> str:
        """How it runs, in words."""
        return "eager" if self.recorded is None else "recorded" if self.packed is None else "recorded, weights packed"

    @property
    def forward(self) -> Forward:
        """What serves, without what a module does around its forward."""
        if self.recorded is None:
            return self.network
        run = self.recorded.forward
        if self.packed is None:
            return run
        weights = self.packed.tensors
        return lambda observation, mask, state: run(observation, mask, state, *weights)

    def load(self, state: Mapping[str, Tensor], rest: Rest = no_rest) -> None:
        """Copy weights in place; what serves reads them from its next call on."""
        self.network.load_state_dict(state)
        rest()
        if self.packed is not None:
            self.packed.refresh(rest)

    def twin(self) -> Recording:
        """The same with parameters of its own, for a hundredth of what recording costs: what was compiled is shared.

        Raises:
            RuntimeError, TypeError: a user's network that cannot be copied.
        """
        network = copy.deepcopy(self.network)
        if self.recorded is None:
            return Recording(network, None)
        packed = PackedWeights(network, self.packed.names) if self.packed is not None else None
        recorded = copy.deepcopy(self.recorded)
        own = _tensors(network if packed is None else PackedForward(network, ()))
        for name, tensor in _tensors(recorded).items():
            tensor.data = own[name].data
        return Recording(network, recorded, packed)


def trace(network: RecurrentNetwork, spec: GameSpec) -> Forward:
    """The forward of `record(network, spec)`."""
    return record(network, spec).forward


@torch.inference_mode()
def record(network: RecurrentNetwork, spec: GameSpec) -> Recording:
    """`network.forward`, recorded once and checked against the original at other batch sizes.

    It shares the network's parameters: weights that are copied in place serve from the next call on. A network whose
    forward branches on its input, or that gives other numbers when recorded, runs as it is.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tracing tells of every shape it fixes; the check below decides
        try:
            recorded = torch.jit.trace(network, _example(network, spec, TRACED_BATCH), check_trace=False)
            same = all(_agree(network, recorded, _example(network, spec, batch)) for batch in CHECKED_BATCHES)
            same = same and _agree_on_any_sign(network, recorded, spec)
        except (RuntimeError, TypeError, ValueError, IndexError):
            return Recording(network, None)
    return Recording(network, recorded if same else None)


@torch.inference_mode()
def with_packed_weights(recording: Recording, spec: GameSpec, batches: Iterable[int]) -> Recording:
    """The same, faster (see `simul.common.nets.traced`), where that gives the same answers at all these batch sizes.

    It does not see weights that are copied into the network past `Recording.load`.
    """
    if recording.recorded is None:
        return recording
    try:
        packed = _packed(recording.network, spec)
        alike = packed is not None and all(
            _close(recording.forward, packed, _example(recording.network, spec, batch)) for batch in batches
        )
    except (RuntimeError, TypeError, AttributeError):  # not this processor's library, or not this release of torch
        return recording
    return packed if packed is not None and alike else recording


def _packed(network: RecurrentNetwork, spec: GameSpec) -> Recording | None:
    """None where there is nothing to pack."""
    example = _example(network, spec, TRACED_BATCH)
    if not (names := packable(network, example)):
        return None
    weights = PackedWeights(network, names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        recorded = torch.jit.trace(PackedForward(network, names), (*example, *weights.tensors), check_trace=False)
    return Recording(network, recorded, weights)


def _tensors(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name, those that share their memory under each of their names."""
    return dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers(remove_duplicate=False))


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


def _close(plain: Forward, packed: Recording, example: tuple[Tensor, Tensor, Tensor]) -> bool:
    pairs = zip(packed.forward(*example), plain(*example))
    tolerance = max(TOLERANCE.get(parameter.dtype, 0.0) for parameter in packed.network.parameters())
    return all(torch.allclose(a, b, rtol=tolerance, atol=tolerance) for a, b in pairs)
