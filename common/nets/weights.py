"""Weights as immutable safetensors bytes, and back. No pickle."""

from __future__ import annotations

import hashlib

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from common.errors import WeightsError


def weights_to_bytes(module: nn.Module) -> bytes:
    """All parameters and buffers of `module` as one safetensors file."""
    state = {name: value.detach().cpu().contiguous() for name, value in module.state_dict().items()}
    data: bytes = save(state)
    return data


def bytes_to_state(data: bytes) -> dict[str, Tensor]:
    """Tensors by name. Raises WeightsError where `data` is no safetensors file."""
    try:
        state: dict[str, Tensor] = load(data)
    except SafetensorError as error:
        raise WeightsError(f"these bytes are no safetensors file: {error}") from None
    return state


def fingerprint(data: bytes) -> str:
    """SHA-256 over the bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


def check_state(state: dict[str, Tensor], module: nn.Module) -> None:
    """Compare names, shapes and finiteness with `module`. Raises WeightsError naming the first difference."""
    expected = module.state_dict()
    if unknown := sorted(state.keys() ^ expected.keys()):
        raise WeightsError(f"tensors that only one side has: {', '.join(unknown[:5])}")
    for name, value in state.items():
        if value.shape != expected[name].shape:
            raise WeightsError(f"{name}: expected {list(expected[name].shape)}, got {list(value.shape)}")
        if value.is_floating_point() and not _finite(value.reshape(-1)):
            raise WeightsError(f"{name}: not finite")


def _finite(values: Tensor) -> bool:
    """The sum of squares tells, at a tenth of the cost, but for numbers whose squares are too large."""
    return bool(torch.isfinite(torch.dot(values, values))) or bool(torch.isfinite(values).all())
