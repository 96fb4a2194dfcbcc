"""Builds a network from a NetworkConfig and a GameSpec, and checks it before any role starts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from simul.common.config.named_class import load_class
from simul.common.config.schema import NetworkConfig
from simul.common.config.trust import NOTHING, Trust, check_trust, network_values
from simul.common.errors import ConfigError, did_you_mean
from simul.common.nets import base, normalization, separate
from simul.common.nets.base import ModuleAdapter, RecurrentNetwork, example_observation
from simul.common.nets.models.attention import Attention
from simul.common.nets.models.board_resnet import BoardResNet
from simul.common.nets.models.conv_lstm import ConvLstm
from simul.common.nets.models.mlp import Mlp
from simul.common.nets.models.mlp_gru import MlpGru
from simul.common.nets.models.mlp_lstm import MlpLstm
from simul.common.nets.models.ofc import OfcNetwork
from simul.common.nets.models.pokemon import pokemon_network
from simul.common.nets.normalization import NormalizedNetwork
from simul.common.nets.separate import SeparateNetworks
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.error_place import describe_error

NETWORKS: dict[str, Callable[..., nn.Module]] = {
    "mlp": Mlp, "mlp_lstm": MlpLstm, "mlp_gru": MlpGru, "attention": Attention, "conv_lstm": ConvLstm,
    "board_resnet": BoardResNet, "pokemon": pokemon_network, "ofc": OfcNetwork,
}  # fmt: skip
TRIAL_BATCH = 3
MOST_TENSORS = 10_000  # that a network makes before its shapes are known to fit
_OF_A_SIZE = (torch.empty, torch.zeros, torch.ones, torch.randn)
_CALLERS = frozenset({__file__, base.__file__, normalization.__file__, separate.__file__})


def build_network(
    network: NetworkConfig, spec: GameSpec, seed: int = 0, *, trust: Trust = NOTHING
) -> RecurrentNetwork:  # fmt: skip
    """The network named in the configuration, float32 on the CPU, with fresh weights that depend on `seed` only.

    A user's class is called as `Class(spec, **options)`, where `trust` covers both.

    Raises:
        ConfigError: a class that is not trusted, unknown name, wrong options, or a module that does not fit the spec.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        built = _construct(network, spec, trust)
    check_network(built, spec, network.name)
    return built


def network_outline(network: NetworkConfig, spec: GameSpec, *, trust: Trust = NOTHING) -> RecurrentNetwork:
    """The network without memory for its weights: names and shapes of them, on torch's `meta` device.

    A network that is made by a user's class is built as it is: its code is trusted, and may need numbers.

    Raises ConfigError as `build_network`.
    """
    if ":" in network.name:
        return build_network(network, spec, trust=trust)
    with _WithoutMemory():
        return _construct(network, spec, trust)


class _WithoutMemory(TorchFunctionMode):
    """Tensors that are made by their size alone are on `meta`, unless they name a device; tables of numbers are not.

    Draws and their scaling are left out: on `meta` they import torch's compiler, which takes seconds. More than
    MOST_TENSORS are a ValueError: options of a hostile checkpoint may ask for a million layers.
    """

    def __init__(self) -> None:
        super().__init__()
        self._made = 0

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, arguments: Sequence[Any] = (), named: Any = None
    ) -> Any:
        named = named or {}
        if function in _OF_A_SIZE:
            self._made += 1
            if self._made > MOST_TENSORS:
                raise ValueError(f"it has more than {MOST_TENSORS:,} tensors")
            return torch.empty(*arguments, **{**named, "device": named.get("device") or "meta"})
        first: Any = named["tensor"] if "tensor" in named else next(iter(arguments), None)
        return first if function.__name__ in ("normal_", "mul") and first.is_meta else function(*arguments, **named)


def _construct(network: NetworkConfig, spec: GameSpec, trust: Trust) -> RecurrentNetwork:
    check_trust(network_values(network), trust, "The network")
    kind = NETWORKS[network.name] if network.name in NETWORKS else _import(network.name, trust)
    _check_options(network.name, kind, network.options)
    try:
        module = kind(spec, **network.options)
        if not network.shared:
            module = SeparateNetworks(_recurrent(module), _recurrent(kind(spec, **network.options)))
    except Exception as error:  # noqa: BLE001  (an invalid option such as a width of -5, or an error in a user's class)
        text = _cause(error, network.name)
        end = "" if text.endswith((".", "?")) else "."
        raise ConfigError(f"The network {network.name} cannot be built with {network.options}: {text}{end}") from None
    built = _recurrent(module)
    if network.normalize_observations:
        if built.reads_exactly:
            raise ConfigError(
                f"network.normalize_observations: the network {network.name} counts with numbers of the observation "
                "as they are (cards, or which Pokémon is active). Leave it out."
            )
        built = NormalizedNetwork(built, spec)
    return built


def _recurrent(module: nn.Module) -> RecurrentNetwork:
    return module if isinstance(module, RecurrentNetwork) else ModuleAdapter(module)


def check_network(network: RecurrentNetwork, spec: GameSpec, name: str) -> None:
    """A trial forward against the spec. Raises ConfigError naming expected and got."""
    observation = example_observation(spec, torch.zeros(TRIAL_BATCH, spec.observation_size))
    mask = torch.ones(TRIAL_BATCH, spec.num_actions, dtype=torch.bool)
    try:
        outputs = _forward(network, observation, mask)
    except Exception as error:  # noqa: BLE001  (a user's network may raise anything)
        raise ConfigError(
            f"The network {name} does not take an observation {spec.observation_dtype} {list(observation.shape)}, "
            f"a mask bool {list(mask.shape)} and a state float32 [{TRIAL_BATCH}, {network.state_size}]: "
            f"{_cause(error, name)}"
        ) from None
    wanted = ((TRIAL_BATCH, spec.num_actions), (TRIAL_BATCH,), (TRIAL_BATCH, network.state_size))
    got = [_describe(output) for output in outputs]
    expected = [_describe(torch.empty(shape)) for shape in wanted]
    if got != expected:
        raise ConfigError(
            f"The network {name} returns ({', '.join(got)}); "
            f"expected logits, value, new state = ({', '.join(expected)})."
        )
    if not _finite(outputs):  # a network may divide by a sum that is 0 here
        draw = torch.Generator().manual_seed(1)
        ordinary = example_observation(spec, torch.rand(observation.shape, generator=draw))
        if not _finite(_forward(network, ordinary, mask)):
            raise ConfigError(
                f"The network {name} returns nan or inf for ordinary observations (zeros, and numbers from 0 to 1); "
                "expected finite logits, value and new state."
            )
    if network.predicts_opponent and spec.opponent_labels:
        _check_prediction(network, spec, name)
    if network.predicts_ending and any(spec.ending_sizes):
        _check_ending(network, spec, name)


def _check_prediction(network: RecurrentNetwork, spec: GameSpec, name: str) -> None:
    """A trial of `unroll_predicting` on one row of each session. Raises ConfigError naming expected and got."""
    observation = example_observation(spec, torch.zeros(TRIAL_BATCH, spec.observation_size))[None]
    mask = torch.ones(1, TRIAL_BATCH, spec.num_actions, dtype=torch.bool)
    state, lengths = network.initial_state(TRIAL_BATCH), torch.ones(TRIAL_BATCH, dtype=torch.int64)
    try:
        with torch.no_grad():
            *_, opponent = network.unroll_predicting(observation, mask, state, lengths, lengths[None] > 0)
    except Exception as error:  # noqa: BLE001  (a user's network may raise anything)
        raise ConfigError(f"The network {name} cannot predict the opponent: {_cause(error, name)}") from None
    expected = _describe(torch.empty(TRIAL_BATCH, spec.opponent_labels, spec.opponent_classes))
    if _describe(opponent) != expected:
        raise ConfigError(
            f"The network {name} predicts {_describe(opponent)} of the opponent; expected {expected}, a logit of each "
            "class for each label."
        )


def _check_ending(network: RecurrentNetwork, spec: GameSpec, name: str) -> None:
    """A trial of `forward_predicting`. Raises ConfigError naming expected and got."""
    observation = example_observation(spec, torch.zeros(TRIAL_BATCH, spec.observation_size))
    mask = torch.ones(TRIAL_BATCH, spec.num_actions, dtype=torch.bool)
    actions = torch.zeros(TRIAL_BATCH, 1, dtype=torch.int64)
    try:
        with torch.no_grad():
            found = network.forward_predicting(observation, mask, network.initial_state(TRIAL_BATCH), actions)
    except Exception as error:  # noqa: BLE001  (a user's network may raise anything)
        raise ConfigError(f"The network {name} cannot predict how a game ends: {_cause(error, name)}") from None
    got = [_describe(part) for part in found[2:]]
    expected = [_describe(torch.empty(TRIAL_BATCH, size)) for size in spec.ending_sizes if size]
    if got != expected:
        raise ConfigError(
            f"The network {name} predicts ({', '.join(got)}) of a game's end; expected ({', '.join(expected)}): "
            "log-odds of the spec's ending_planes, then of its ending_numbers."
        )


def _forward(network: RecurrentNetwork, observation: torch.Tensor, mask: torch.Tensor) -> Any:
    with torch.no_grad():
        return network(observation, mask, network.initial_state(TRIAL_BATCH))


def _finite(outputs: Any) -> bool:
    """True without nan and inf; logits may be -inf, which masks an action."""
    logits, value, state = outputs
    return bool(not logits.isnan().any() and value.isfinite().all() and state.isfinite().all())


def _cause(error: Exception, name: str) -> str:
    """The error's message; of a user's class its place and type, too, and of a KeyError, a mere key, its type."""
    if ":" in name:
        return describe_error(error, _CALLERS)
    return f"KeyError: {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__


def _check_options(name: str, kind: Callable[..., nn.Module], options: Mapping[str, Any]) -> None:
    """Raises ConfigError for an option that the network does not take, or a value that is no such thing.

    Values of a user's class are its own concern.
    """
    parameters = list(inspect.signature(kind).parameters.values())[1:]  # without the first, the spec
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return
    known = [parameter.name for parameter in parameters]
    for option in options:
        if option not in known:
            hint = did_you_mean(option, known) or "."
            raise ConfigError(
                f"network.options: the network {name} has no option {option!r}{hint} "
                f"Its options are {', '.join(known) or 'none'}."
            )
    if ":" in name:
        return
    evaluated = inspect.signature(kind, eval_str=True).parameters
    for option, value in options.items():
        try:
            msgspec.convert(value, evaluated[option].annotation)
        except msgspec.ValidationError as error:
            raise ConfigError(f"network.options: {option} of the network {name}: {error}; got {value!r}.") from None


def _describe(output: Any) -> str:
    if not isinstance(output, torch.Tensor):
        return type(output).__name__
    return f"{str(output.dtype).removeprefix('torch.')} {list(output.shape)}"


def _import(name: str, trust: Trust) -> type[nn.Module]:
    if ":" not in name:
        hint = did_you_mean(name, NETWORKS) or "."
        raise ConfigError(f"Unknown network {name!r}: expected {', '.join(NETWORKS)} or module:Class{hint}")
    kind = load_class(name, trust=trust)
    if not (isinstance(kind, type) and issubclass(kind, nn.Module)):
        raise ConfigError(f"The network {name} is not a class of torch.nn.Module.")
    return kind
