"""From a NetworkConfig and a GameSpec to a network, checked before anything else starts."""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from common.config import NetworkConfig
from common.errors import ConfigError
from common.nets.base import RecurrentNetwork, Wrapped
from common.nets.mlp_lstm import MlpLstm
from common.nets.pokemon import PokemonNetwork
from common.specs import GameSpec

NETWORKS: dict[str, type[nn.Module]] = {"mlp_lstm": MlpLstm, "pokemon": PokemonNetwork}
TRIAL_BATCH = 3
FAULTS = (RuntimeError, TypeError, ValueError, IndexError)  # what torch raises for sizes and types that do not fit


def build_network(network: NetworkConfig, spec: GameSpec, seed: int = 0) -> RecurrentNetwork:
    """The network named in the configuration, float32 on the CPU, with fresh weights that depend on `seed` only.

    A user's class is called as `Class(spec, **options)`.

    Raises:
        ConfigError: unknown name, wrong options, or a module that does not fit the spec.
    """
    kind = NETWORKS[network.name] if network.name in NETWORKS else _import(network.name)
    _check_options(network.name, kind, network.options)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            module = kind(spec, **network.options)
        except (*FAULTS, ArithmeticError) as error:  # a value that the network cannot take, such as a width of -5
            words = str(error).rstrip(".")
            raise ConfigError(f"The network {network.name} cannot be built with {network.options}: {words}.") from None
    built = module if isinstance(module, RecurrentNetwork) else Wrapped(module)
    check_network(built, spec, network.name)
    return built


def check_network(network: RecurrentNetwork, spec: GameSpec, name: str) -> None:
    """One trial forward against the spec. Raises ConfigError naming expected and got."""
    observation = torch.zeros(TRIAL_BATCH, spec.observation_size, dtype=getattr(torch, spec.observation_dtype))
    mask = torch.ones(TRIAL_BATCH, spec.num_actions, dtype=torch.bool)
    try:
        with torch.no_grad():
            outputs = network(observation, mask, network.initial_state(TRIAL_BATCH))
    except FAULTS as error:
        raise ConfigError(
            f"The network {name} does not take an observation {spec.observation_dtype} {list(observation.shape)}, "
            f"a mask bool {list(mask.shape)} and a state float32 [{TRIAL_BATCH}, {network.state_size}]: {error}"
        ) from None
    wanted = ((TRIAL_BATCH, spec.num_actions), (TRIAL_BATCH,), (TRIAL_BATCH, network.state_size))
    got = [_describe(output) for output in outputs]
    expected = [_describe(torch.empty(shape)) for shape in wanted]
    if got != expected:
        raise ConfigError(
            f"The network {name} returns ({', '.join(got)}); "
            f"expected logits, value, new state = ({', '.join(expected)})."
        )


def _check_options(name: str, kind: type[nn.Module], options: Mapping[str, Any]) -> None:
    """Raises ConfigError for an option that the network does not take."""
    parameters = list(inspect.signature(kind).parameters.values())[1:]  # the first one is the spec
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return
    known = [parameter.name for parameter in parameters]
    for option in options:
        if option not in known:
            close = difflib.get_close_matches(option, known, 1)
            hint = f"; did you mean {close[0]}?" if close else "."
            raise ConfigError(
                f"network.options: the network {name} has no option {option!r}{hint} "
                f"Its options are {', '.join(known) or 'none'}."
            )


def _describe(output: Any) -> str:
    if not isinstance(output, torch.Tensor):
        return type(output).__name__
    return f"{str(output.dtype).removeprefix('torch.')} {list(output.shape)}"


def _import(name: str) -> type[nn.Module]:
    module_name, colon, class_name = name.partition(":")
    if not colon:
        raise ConfigError(f"Unknown network {name!r}: expected {', '.join(NETWORKS)} or module:Class.")
    try:
        kind = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"The network {name} cannot be imported: {error}.") from None
    if not (isinstance(kind, type) and issubclass(kind, nn.Module)):
        raise ConfigError(f"The network {name} is not a class of torch.nn.Module.")
    return kind
