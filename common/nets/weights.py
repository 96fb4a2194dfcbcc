"""Weights as immutable safetensors bytes, and back. No pickle."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

import torch
from safetensors import SafetensorError
from safetensors.torch import load, load_file, save
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

from simul.common.protocol.errors import WeightsError


def weights_to_bytes(module: nn.Module) -> bytes:
    """All parameters and buffers of `module` as one safetensors file."""
    state = {name: value.detach().cpu().contiguous() for name, value in module.state_dict().items()}
    data: bytes = save(state)
    return data


def bytes_to_state(data: bytes) -> dict[str, Tensor]:
    """Tensors by name. Raises WeightsError where `data` is no safetensors file."""
    return _read(load, data)


def file_to_state(path: str) -> dict[str, Tensor]:
    """Tensors by name, views of a file that nobody may change. Raises WeightsError where it is no safetensors file."""
    return _read(load_file, path)


def fingerprint(data: bytes) -> str:
    """SHA-256 over the bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


def check_state(state: dict[str, Tensor], module: nn.Module) -> None:
    """Compare names, shapes, kinds and finiteness with `module`. Raises WeightsError naming the first difference."""
    expected = module.state_dict()
    if unknown := sorted(state.keys() ^ expected.keys()):
        raise WeightsError(f"tensors that only one side has: {', '.join(unknown[:5])}")
    for name, value in state.items():
        if value.shape != expected[name].shape:
            raise WeightsError(f"{name}: expected {list(expected[name].shape)}, got {list(value.shape)}")
        if value.is_floating_point() != expected[name].is_floating_point() or value.is_complex():
            raise WeightsError(f"{name}: expected {expected[name].dtype} or the like, got {value.dtype}")
    if name := not_finite(state):
        raise WeightsError(f"{name}: not finite")


def not_finite(tensors: Mapping[str, Tensor]) -> str:
    """The name of the first that holds a number which is not finite; empty where there is none."""
    floating = {name: value for name, value in tensors.items() if value.is_floating_point()}
    if torch.isfinite(get_total_norm(floating.values())):
        return ""
    bad = (name for name, value in floating.items() if not torch.isfinite(value).all())
    return next(bad, "")  # where there is none, only the squares are too large


def _read(reader: Callable[..., dict[str, Tensor]], source: bytes | str) -> dict[str, Tensor]:
    try:
        return reader(source)
    except SafetensorError as error:
        raise WeightsError(f"these bytes are no safetensors file: {error}") from None
