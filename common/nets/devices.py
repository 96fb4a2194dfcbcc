"""Chooses device and precision for `auto`. Shared by server and learner."""

from __future__ import annotations

import torch

from simul.common.errors import ConfigError


def choose_device(name: str) -> torch.device:
    """The named device; `auto` is CUDA, else MPS, else the CPU. Raises ConfigError where it is not available."""
    present = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        return torch.device(next(kind for kind, there in present.items() if there))
    if not present.get(name, False):
        there = ", ".join(kind for kind, is_there in present.items() if is_there)
        raise ConfigError(f"The device {name} is not available here: this machine offers only {there}. Use auto.")
    return torch.device(name)


def choose_precision(name: str, device: torch.device) -> torch.dtype:
    """`auto` is bfloat16 where the device multiplies in it natively, else float32."""
    if name != "auto":
        return torch.bfloat16 if name == "bfloat16" else torch.float32
    if device.type == "cuda":
        native = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        flags = torch.cpu.get_capabilities()
        native = device.type == "cpu" and bool(flags.get("avx512_bf16") or flags.get("amx_bf16") or flags.get("bf16"))
    return torch.bfloat16 if native else torch.float32
