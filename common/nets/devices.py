"""Which device and precision `auto` means here."""

from __future__ import annotations

import torch

from common.errors import ConfigError


def choose_device(name: str) -> torch.device:
    """`auto` is CUDA, else Apple's MPS, else the CPU. Raises ConfigError where the named one is missing."""
    present = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return torch.device(next(kind for kind in ("cuda", "mps", "cpu") if present[kind]))
    if not present.get(name, False):
        raise ConfigError(f"The device {name} is not available here; use auto or cpu.")
    return torch.device(name)


def choose_precision(name: str, device: torch.device) -> torch.dtype:
    """`auto` is bfloat16 where the device computes in it, else float32."""
    if name != "auto":
        return torch.bfloat16 if name == "bfloat16" else torch.float32
    if device.type == "cuda":
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        fast = device.type == "cpu" and torch.cpu._is_avx512_bf16_supported()
    return torch.bfloat16 if fast else torch.float32
