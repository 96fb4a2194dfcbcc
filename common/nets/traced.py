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

from simul.common.nets.base import RecurrentNetwork, example_observation
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.throttle import Throttle, no_throttle

MKL_BATCH = 128  # hint: the row count that MKL optimises its packing for


class WeightPacking(NamedTuple):
    """How weights of a dtype are packed and multiplied. Below `least` elements packing gains nothing."""

    pack: Callable[[Tensor], Tensor]
    linear: Callable[..., Tensor]
    least: int


def _linear_onednn(x: Tensor, weight: Tensor, bias: Tensor | None, packed: Tensor) -> Tensor:
    if x.size(0) == 1 and weight.numel() < 8192:  # a plain vector product costs a fifth
        return torch.nn.functional.linear(x, weight, bias)
    return torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")


def _linear_mkl(x: Tensor, weight: Tensor, bias: Tensor | None, packed: Tensor) -> Tensor:
    if x.size(0) < 4:  # a vector product rearranges nothing
        return torch.nn.functional.linear(x, weight, bias)
    return torch.ops.mkl._mkl_linear(x, packed, weight, bias, x.size(0))


def _pack_onednn(weight: Tensor) -> Tensor:
    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight, None)
    return packed


def _pack_mkl(weight: Tensor) -> Tensor:
    packed: Tensor = torch.ops.mkl._mkl_reorder_linear_weight(weight, MKL_BATCH)
    return packed


@cache
def _packings() -> dict[torch.dtype, WeightPacking]:
    """Packings that this build of torch supports, by dtype."""
    packings: dict[torch.dtype, WeightPacking] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # scripted: tracing supports neither lists nor branches
        if torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported():
            packings[torch.bfloat16] = WeightPacking(_pack_onednn, torch.jit.script(_linear_onednn), least=4096)
        if torch.backends.mkl.is_available():
            packings[torch.float32] = WeightPacking(_pack_mkl, torch.jit.script(_linear_mkl), least=32768)
    return packings


class PackedForward(nn.Module):
    """The forward of a network with packed weights as extra arguments, in the order of `names`."""

    def __init__(self, network: RecurrentNetwork, names: Iterable[str]) -> None:
        super().__init__()
        self.network = network
        self.names = tuple(names)

    def forward(self, observation: Tensor, mask: Tensor, state: Tensor, *packed: Tensor) -> Any:
        """See `RecurrentNetwork.forward`."""
        with _PackedLinear(self.network, dict(zip(self.names, packed))):
            return self.network(observation, mask, state)


class _PackedLinear(TorchFunctionMode):
    """While active, F.linear multiplies with packed weights; `seen` lists the weights that it met, by name."""

    def __init__(self, network: RecurrentNetwork, packed: dict[str, Tensor]) -> None:
        super().__init__()
        self._names = {id(parameter): name for name, parameter in network.named_parameters()}
        self._packed, self._packings = packed, _packings()
        self.seen: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is F.linear and not kwargs:
            x, weight, bias = (*args, None)[:3]
            name = self._names.get(id(weight), "")
            if name and x.dim() == 2:
                self.seen.append(name)
                if name in self._packed:
                    return self._packings[weight.dtype].linear(x, weight, bias, self._packed[name])
        return func(*args, **(kwargs or {}))


def packable(network: RecurrentNetwork, example: tuple[Tensor, Tensor, Tensor]) -> list[str]:
    """Names of the weights that can be packed and that a forward multiplies whole batches with, in call order."""
    with _PackedLinear(network, {}) as mode:
        network(*example)
    parameters, packings = dict(network.named_parameters()), _packings()
    seen = {name: parameters[name] for name in mode.seen}
    return [name for name, own in seen.items() if own.dtype in packings and own.numel() >= packings[own.dtype].least]


class PackedWeights:
    """Packed copies of a network's weights, as of the last `refresh`."""

    def __init__(self, network: RecurrentNetwork, names: Iterable[str]) -> None:
        self.names = tuple(names)
        self._network = network
        self.tensors: list[Tensor] = []
        self.refresh()

    @torch.inference_mode()
    def refresh(self, throttle: Throttle = no_throttle) -> None:
        """Pack the current weights again. `throttle` is called after each."""
        parameters, packings, fresh = dict(self._network.named_parameters()), _packings(), []
        for name in self.names:
            fresh.append(packings[parameters[name].dtype].pack(parameters[name].detach()))
            throttle()
        self.tensors[:] = fresh


Forward = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]
TRACED_BATCH = 4
CHECKED_BATCHES = (1, 7, 64)
TOLERANCE = {torch.bfloat16: 0.02, torch.float32: 1e-4}  # packed weights against plain ones


@dataclass(frozen=True)
class TracedNetwork:
    """A network and its traced forward, which share their parameters. `traced` None: the network runs eagerly.

    `packed`: weights that the traced forward reads instead of the network's own.
    """

    network: RecurrentNetwork
    traced: torch.jit.ScriptModule | None
    packed: PackedWeights | None = None

    @property
    def runner(self) -> str:
        """How the forward runs, for reports: `eager`, `recorded` or `recorded, weights packed`."""
        return "eager" if self.traced is None else "recorded" if self.packed is None else "recorded, weights packed"

    @property
    def forward(self) -> Forward:
        """The callable to serve with; it bypasses the hooks of `nn.Module.__call__`."""
        if self.traced is None:
            return self.network
        run = self.traced.forward
        if self.packed is None:
            return run
        weights = self.packed.tensors
        return lambda observation, mask, state: run(observation, mask, state, *weights)

    def load(self, state: Mapping[str, Tensor], throttle: Throttle = no_throttle) -> None:
        """Copy weights in place: the next call of `forward` uses them."""
        self.network.load_state_dict(state)
        throttle()
        if self.packed is not None:
            self.packed.refresh(throttle)

    def clone(self) -> TracedNetwork:
        """A copy with its own parameters, at a hundredth of the cost of tracing: the compiled code is shared.

        Raises:
            RuntimeError, TypeError: a user's network that cannot be copied.
        """
        network = copy.deepcopy(self.network)
        if self.traced is None:
            return TracedNetwork(network, None)
        packed = PackedWeights(network, self.packed.names) if self.packed is not None else None
        traced = copy.deepcopy(self.traced)
        own = _tensors(network if packed is None else PackedForward(network, ()))
        for name, tensor in _tensors(traced).items():
            tensor.data = own[name].data
        return TracedNetwork(network, traced, packed)


def traced_forward(network: RecurrentNetwork, spec: GameSpec) -> Forward:
    """The forward of `trace_network(network, spec)`."""
    return trace_network(network, spec).forward


@torch.inference_mode()
def trace_network(network: RecurrentNetwork, spec: GameSpec) -> TracedNetwork:
    """`network.forward`, traced once and checked against the original at other batch sizes.

    The result shares the network's parameters, so weights copied in place are used from the next call on. A network
    whose forward branches on its input, or whose traced forward gives other numbers, runs eagerly.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tracing warns of every shape it fixes; the check below decides
        try:
            traced = torch.jit.trace(network, _example(network, spec, TRACED_BATCH), check_trace=False)
            same = all(_agree(network, traced, _example(network, spec, batch)) for batch in CHECKED_BATCHES)
            same = same and _agree_on_any_sign(network, traced, spec)
        except (RuntimeError, TypeError, ValueError, IndexError):
            return TracedNetwork(network, None)
    return TracedNetwork(network, traced if same else None)


@torch.inference_mode()
def with_packed_weights(plain: TracedNetwork, spec: GameSpec, batches: Iterable[int]) -> TracedNetwork:
    """`plain` with packed weights if the answers agree within TOLERANCE at all `batches` sizes, else `plain`.

    Packed weights change only through `TracedNetwork.load`.
    """
    if plain.traced is None:
        return plain
    try:
        packed = _packed(plain.network, spec)
        alike = packed is not None and all(
            _close(plain.forward, packed, _example(plain.network, spec, batch)) for batch in batches
        )
    except (RuntimeError, TypeError, AttributeError):  # unsupported by the processor's library or this torch
        return plain
    return packed if packed is not None and alike else plain


def _packed(network: RecurrentNetwork, spec: GameSpec) -> TracedNetwork | None:
    """None where there is nothing to pack."""
    example = _example(network, spec, TRACED_BATCH)
    if not (names := packable(network, example)):
        return None
    weights = PackedWeights(network, names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(PackedForward(network, names), (*example, *weights.tensors), check_trace=False)
    return TracedNetwork(network, traced, weights)


def _tensors(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name; shared ones appear under each of their names."""
    return dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers(remove_duplicate=False))


def _example(network: RecurrentNetwork, spec: GameSpec, batch: int) -> tuple[Tensor, Tensor, Tensor]:
    state = network.initial_state(batch)
    draw = torch.Generator().manual_seed(batch)
    observation = example_observation(spec, torch.rand(batch, spec.observation_size, generator=draw))
    mask = torch.rand(batch, spec.num_actions, generator=draw) < 0.5
    return observation.to(state.device), mask.to(state.device), state


def _agree_on_any_sign(network: RecurrentNetwork, traced: torch.jit.ScriptModule, spec: GameSpec) -> bool:
    """Finds branches that go one way for all numbers in [0, 1]. A network that rejects negative ids passes."""
    observation, mask, state = _example(network, spec, TRACED_BATCH)
    negative = -100 * observation if observation.is_floating_point() else 255 - observation
    example = (negative, mask, state)
    try:
        network(*example)
    except (RuntimeError, IndexError, ValueError):
        return True
    return _agree(network, traced, example)


def _agree(network: RecurrentNetwork, traced: torch.jit.ScriptModule, example: tuple[Tensor, Tensor, Tensor]) -> bool:
    """Equal bit for bit, after the warm-up calls in which the JIT specialises."""
    for _ in range(3):
        got = traced.forward(*example)
    return all(torch.equal(a, b) for a, b in zip(got, network(*example)))


def _close(plain: Forward, packed: TracedNetwork, example: tuple[Tensor, Tensor, Tensor]) -> bool:
    pairs = zip(packed.forward(*example), plain(*example))
    tolerance = max(TOLERANCE.get(parameter.dtype, 0.0) for parameter in packed.network.parameters())
    return all(torch.allclose(a, b, rtol=tolerance, atol=tolerance) for a, b in pairs)
