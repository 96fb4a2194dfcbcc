"""Weights as immutable safetensors bytes, and `load_policy`. No pickle."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, load_file, save
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

from simul.common.checkpoints.folders import checkpoint_trust
from simul.common.checkpoints.meta import (
    META_FILE,
    WEIGHTS_FILE,
    CheckpointMeta,
    checkpoint_folders,
    read_meta,
    read_verified,
    tensor_shapes,
)
from simul.common.checkpoints.zoo import zoo_folder
from simul.common.config.trust import EVERYTHING, NOTHING, Trust
from simul.common.errors import CheckpointError, ConfigError, WeightsError
from simul.common.nets.build import build_network, network_outline
from simul.common.runtime.terminal_text import printable

MOST_CHARACTERS = 200  # of what a file says, in a sentence


def weights_to_bytes(module: nn.Module) -> bytes:
    """All parameters and buffers of `module` as one safetensors file; tied ones are in it under each name."""
    state: dict[str, Tensor] = {}
    written: set[int] = set()
    for name, value in module.state_dict().items():
        whole = value.detach().cpu().contiguous()
        memory = whole.untyped_storage().data_ptr()
        state[name] = whole.clone() if memory in written else whole
        written.add(memory)
    data: bytes = save(state)
    return data


def bytes_to_state(data: bytes) -> dict[str, Tensor]:
    """Tensors by name. Raises WeightsError where `data` is not a safetensors file."""
    return _read(load, data)


def file_to_state(path: str) -> dict[str, Tensor]:
    """Tensors by name, views of a file that must not change. Raises WeightsError if it is not a safetensors file."""
    return _read(load_file, path)


def fingerprint(data: bytes) -> str:
    """SHA-256 over the bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


def check_state(state: dict[str, Tensor], module: nn.Module) -> None:
    """Compare names, shapes, kinds and finiteness with `module`. Raises WeightsError naming the first difference."""
    check_shapes(_shapes(state), module)
    expected = module.state_dict()
    for name, value in state.items():
        if value.is_floating_point() != expected[name].is_floating_point() or value.is_complex():
            raise WeightsError(f"{name}: expected {expected[name].dtype} or the like, got {value.dtype}")
    if name := first_nonfinite(state):
        raise WeightsError(f"{name}: not finite")


def check_shapes(shapes: Mapping[str, list[int]], module: nn.Module) -> None:
    """Compare names and shapes of weights with `module`. Raises WeightsError naming the first difference."""
    expected = _shapes(module.state_dict())
    if unknown := sorted(shapes.keys() ^ expected.keys()):
        shown = ", ".join(_name_and_side(name, shapes, expected) for name in unknown[:5])
        raise WeightsError(f"tensors that only one side has: {shown}")
    for name, shape in expected.items():  # a file's order is not the same each time
        if shapes[name] != shape:
            raise WeightsError(f"{name}: expected {shape}, got {str(shapes[name])[:MOST_CHARACTERS]}")


def _shapes(state: Mapping[str, Tensor]) -> dict[str, list[int]]:
    return {name: list(value.shape) for name, value in state.items()}


def _name_and_side(name: str, shapes: Mapping[str, list[int]], expected: Mapping[str, list[int]]) -> str:
    if name in expected:
        return f"{name} {expected[name]} (expected, missing)"
    return f"{printable(name[:MOST_CHARACTERS])} {str(shapes[name])[:MOST_CHARACTERS]} (not expected)"


def read_weights(folder: Path, meta: CheckpointMeta, module: nn.Module) -> dict[str, Tensor]:
    """Weights of a checkpoint for `module`, such as a `network_outline`; what does not fit it is not read.

    Raises:
        CheckpointError: they are missing or damaged.
        WeightsError: they do not fit.
    """
    check_state_size(meta, module)
    check_header(folder, module)
    state = bytes_to_state(read_verified(folder, meta, WEIGHTS_FILE))
    check_state(state, module)
    return state


def check_state_size(meta: CheckpointMeta, module: nn.Module) -> None:
    """Compare a checkpoint's recurrent state, which its weights need not show, with `module`. Raises WeightsError."""
    expected = getattr(module, "state_size", None)
    if None not in (meta.state_size, expected) and meta.state_size != expected:
        raise WeightsError(f"a recurrent state of {expected} numbers is expected, the checkpoint has {meta.state_size}")


def check_header(folder: Path, module: nn.Module) -> None:
    """Compare names and shapes in the header of a checkpoint's weights with `module`; one without a header passes.

    Raises WeightsError.
    """
    with suppress(OSError, ValueError):  # missing or damaged, which `read_verified` reports
        check_shapes(tensor_shapes(folder / WEIGHTS_FILE), module)


def first_nonfinite(tensors: Mapping[str, Tensor]) -> str:
    """Name of the first tensor with a number that is not finite; empty where there is none."""
    floating = {
        name: value.float() if value.element_size() == 1 else value  # float8 has no norm
        for name, value in tensors.items()
        if value.is_floating_point()
    }
    if torch.isfinite(get_total_norm(floating.values())):
        return ""
    bad = (name for name, value in floating.items() if not torch.isfinite(value).all())
    return next(bad, "")  # none: only the sum of squares overflows


def _read(reader: Callable[..., dict[str, Tensor]], source: bytes | str) -> dict[str, Tensor]:
    try:
        return reader(source)
    except (SafetensorError, KeyError) as error:  # KeyError: an element type that torch does not read
        text = printable(str(error)[:MOST_CHARACTERS])
        raise WeightsError(f"these bytes are not a safetensors file: {text}") from None


class Policy(nn.Module):
    """A network and its spec: `policy.network` is the plain module, `policy.meta` the checkpoint's metadata."""

    def __init__(self, meta: CheckpointMeta, network: nn.Module) -> None:
        super().__init__()
        self.meta = meta
        self.spec = meta.spec
        self.network: Any = network

    def initial_state(self, batch: int) -> Tensor:
        """Zeros float32 [B, S]: the state before a session's first decision."""
        state: Tensor = self.network.initial_state(batch)
        return state

    def forward(self, observation: Tensor, mask: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits [B, A] with illegal actions at -inf, value [B], new state [B, S]; see `RecurrentNetwork.forward`."""
        logits, value, new_state = self.network(observation, mask, state)
        return logits.masked_fill(~mask, -torch.inf), value, new_state


def load_policy(path: Path | str, *, trust: bool = False) -> Policy:
    """The policy of a checkpoint as a plain module, in eval mode on the CPU.

    `path`: a checkpoint, or a run directory, whose newest valid checkpoint is loaded; damaged ones are skipped. Also
    zoo:NAME, a shipped policy.
    `trust`: run the class that it names as its network, also where it is of a run directory that you did not make here.

        policy = load_policy("runs/default")            # or "runs/default/checkpoints/000000420"
        state = policy.initial_state(1)
        while playing:                                  # observation [1, D], mask bool [1, A]
            logits, value, state = policy(observation, mask, state)
            action = int(logits.argmax())

    The logits, float32 [1, A], are masked: those of illegal actions are -inf, so argmax and a draw from their softmax
    are legal actions. Where the mask allows no action, all are -inf, and softmax is NaN.

    Raises:
        CheckpointError: the checkpoint is missing or damaged, or its network no longer fits or is not trusted.
    """
    path = zoo_folder(str(path)) or Path(path)
    folders = [path] if (path / META_FILE).exists() else checkpoint_folders(path / "checkpoints") or [path]
    first_error: CheckpointError | None = None
    for folder in folders:
        try:
            return _load(folder, checkpoint_trust(folder, EVERYTHING if trust else NOTHING))
        except CheckpointError as error:
            first_error = first_error or error
    assert first_error is not None
    raise first_error


def _load(folder: Path, trust: Trust) -> Policy:
    meta = read_meta(folder)
    try:
        state = read_weights(folder, meta, network_outline(meta.network, meta.spec, trust=trust))
        network = build_network(meta.network, meta.spec, trust=trust)
    except (ConfigError, WeightsError) as error:
        raise CheckpointError(f"The checkpoint {folder} cannot be used: {error}") from None
    network.load_state_dict(state)
    policy = Policy(meta, network)
    policy.requires_grad_(False).eval()
    return policy
