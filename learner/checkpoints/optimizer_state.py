"""Adam's moments and the running statistics in a checkpoint: to bytes and back, with the weights they belong to."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from safetensors.torch import save
from torch import Tensor, nn

from simul.common.errors import CheckpointError, WeightsError
from simul.common.nets.io import bytes_to_state, check_state, first_nonfinite
from simul.common.runtime.terminal_text import printable
from simul.learner.checkpoints.checkpoint_store import Checkpoint
from simul.learner.training.normalization import RewardScale

STATISTICS = "statistics:"  # begins the names of what is no moment of Adam


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

    Raises CheckpointError where the weights do not fit, or something is not finite.
    """
    which = f"The checkpoint of version {checkpoint.meta.version}"
    try:
        weights, moments = bytes_to_state(checkpoint.weights), bytes_to_state(checkpoint.optimizer)
        if name := first_nonfinite(weights) or first_nonfinite(moments):
            raise CheckpointError(f"{which} cannot be learned from: {printable(name)} is not finite. Use an older one.")
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
    return load_moments(moments, network, optimizer)


def load_moments(
    moments: dict[str, Tensor], network: nn.Module, optimizer: torch.optim.Optimizer
) -> dict[str, Tensor]:  # fmt: skip
    """Load what `optimizer_to_bytes` saved, in place; returns the statistics in it."""
    statistics = {
        name.removeprefix(STATISTICS): moments.pop(name) for name in list(moments) if name.startswith(STATISTICS)
    }
    for name, parameter in network.named_parameters():
        state = {key.split(".", 1)[0]: value for key, value in moments.items() if key.split(".", 1)[1] == name}
        on_device = bool(optimizer.defaults["fused"])  # else Adam expects its step counts on the CPU
        if state:
            optimizer.state[parameter] = {
                key: value.to(parameter.device) if key != "step" or on_device else value for key, value in state.items()
            }
    return statistics
