"""Adam's moments and the running statistics in a checkpoint: to bytes and back, with the weights they belong to."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from safetensors.torch import save
from torch import Tensor, nn

from simul.common.checkpoints.meta import OPTIMIZER_FILE
from simul.common.errors import CheckpointError, WeightsError
from simul.common.nets.io import MOST_CHARACTERS, bytes_to_state, check_state, check_state_size, first_nonfinite
from simul.common.runtime.terminal_text import printable
from simul.learner.checkpoints.checkpoint_store import Checkpoint
from simul.learner.training.normalization import RewardScale

STATISTICS = "statistics:"  # begins the names of what is no moment of Adam
MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # of each parameter, or none: it was never updated
USE_ANOTHER = (
    "Use an older one: move this one out of the run's checkpoints, or name another with --from and a new --run-dir."
)


def optimizer_to_bytes(
    network: nn.Module, optimizer: torch.optim.Optimizer, statistics: Mapping[str, Tensor] | None = None
) -> bytes:
    """Adam's moments and step counts as one safetensors file: `exp_avg.<parameter>` and so on; `statistics` beside."""
    tensors = {f"{STATISTICS}{name}": value for name, value in (statistics or {}).items()}
    for name, parameter in network.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"{key}.{name}"] = value.detach().cpu().contiguous()
    data: bytes = save(tensors)
    return data


def check_reward_scale(checkpoint: Checkpoint, statistics: Mapping[str, Tensor], normalize_rewards: bool) -> None:
    """Raises CheckpointError where its values were learned on another scale of rewards than the configured one.

    A checkpoint without updates, which `simul up --from` copied, may change the scale.
    """
    normalized = any(name.startswith(f"{RewardScale.name}.") for name in statistics)
    if not checkpoint.meta.updates or normalized == normalize_rewards:
        return
    before, now = str(normalized).lower(), str(normalize_rewards).lower()
    raise CheckpointError(
        f"The checkpoint of version {checkpoint.meta.version} was trained with learner.normalize_rewards: {before}, "
        f"the configuration has {now}, and values learned on one scale of rewards do not fit the other: set {before}, "
        "or begin another run with it, by --run-dir and --from."
    )


def restore(checkpoint: Checkpoint, network: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Load weights and moments in place; returns the statistics that were saved with them.

    Raises CheckpointError where one of them does not fit, or something is not finite.
    """
    which = f"The checkpoint of version {checkpoint.meta.version}"
    try:
        weights = bytes_to_state(checkpoint.weights)
        if name := first_nonfinite(weights):
            raise CheckpointError(f"{which} cannot be learned from: {printable(name)} is not finite. {USE_ANOTHER}")
        check_state_size(checkpoint.meta, network)
        check_state(weights, network)
    except WeightsError as error:
        made = checkpoint.meta.network
        raise CheckpointError(
            f"{which} does not fit the configured network: {error}. "
            f"Its own is network.name: {made.name}, network.options: {made.options}, network.shared: "
            f"{str(made.shared).lower()}, network.normalize_observations: {str(made.normalize_observations).lower()}: "
            "set all as they were, or "
            "begin without it: another run directory with --run-dir, and no --from."
        ) from None
    network.load_state_dict(weights)
    try:
        return load_moments(bytes_to_state(checkpoint.optimizer), network, optimizer)
    except WeightsError as error:
        raise unusable_optimizer(checkpoint, error) from None


def unusable_optimizer(checkpoint: Checkpoint, error: WeightsError) -> CheckpointError:
    """What `load_moments` or `load_statistics` found in a checkpoint, with what to do."""
    return CheckpointError(
        f"The checkpoint of version {checkpoint.meta.version} cannot be learned from: {OPTIMIZER_FILE}: {error}. "
        f"{USE_ANOTHER}"
    )


def load_moments(
    moments: Mapping[str, Tensor], network: nn.Module, optimizer: torch.optim.Optimizer
) -> dict[str, Tensor]:  # fmt: skip
    """Load what `optimizer_to_bytes` saved, in place; returns the statistics in it.

    Raises WeightsError where something is not finite, or is no moment of `network`; then nothing is loaded.
    """
    if name := first_nonfinite(moments):
        raise WeightsError(f"{printable(name)} is not finite")
    left = dict(moments)
    statistics = {name.removeprefix(STATISTICS): left.pop(name) for name in moments if name.startswith(STATISTICS)}
    states = {}
    for name, parameter in network.named_parameters():
        if state := {key: left.pop(f"{key}.{name}") for key in MOMENTS if f"{key}.{name}" in left}:
            _check_moments(name, parameter, state)
            states[parameter] = state
    if left:
        first = printable(min(left)[:MOST_CHARACTERS])
        raise WeightsError(f"{first}: expected {', '.join(MOMENTS)} of the network's parameters and nothing else")
    on_device = bool(optimizer.defaults["fused"])  # else Adam expects its step counts on the CPU
    for parameter, state in states.items():
        optimizer.state[parameter] = {
            key: value.to(parameter.device) if key != "step" or on_device else value for key, value in state.items()
        }
    return statistics


def _check_moments(name: str, parameter: Tensor, state: Mapping[str, Tensor]) -> None:
    """Raises WeightsError."""
    for key in MOMENTS:
        if key not in state:
            raise WeightsError(f"{key}.{name}: expected beside {', '.join(f'{found}.{name}' for found in state)}")
        value = state[key]
        shape, dtype = ([], torch.float32) if key == "step" else (list(parameter.shape), parameter.dtype)
        if (list(value.shape), value.dtype) != (shape, dtype):
            raise WeightsError(f"{key}.{name}: expected {dtype} {shape}, got {value.dtype} {list(value.shape)}")
        if key != "exp_avg" and (value < 0).any():
            raise WeightsError(f"{key}.{name}: expected no number below 0, got {value.min():g}")
