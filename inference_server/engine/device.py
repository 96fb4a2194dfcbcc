"""Which device and which precision. Every choice is said, none is silent."""

from __future__ import annotations

import torch

from common.errors import ConfigError


def choose_device(wanted: str) -> torch.device:
    """`auto` takes CUDA, then MPS, then the CPU. Raises ConfigError where a named device is missing."""
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if wanted == "auto":
        return torch.device(next(name for name, there in available.items() if there))
    if not available[wanted]:
        there = ", ".join(name for name, is_there in available.items() if is_there)
        raise ConfigError(f"server.device is {wanted}, but this machine offers only: {there}. Set device: auto.")
    return torch.device(wanted)


def choose_precision(wanted: str, device: torch.device, *, deterministic: bool = False) -> torch.dtype:
    """`auto` takes bfloat16 where the processor multiplies it natively, else float32."""
    if wanted == "auto":
        if deterministic or device.type == "mps":
            return torch.float32
        native = torch.cuda.is_bf16_supported() if device.type == "cuda" else _cpu_has_bfloat16()
        return torch.bfloat16 if native else torch.float32
    return torch.bfloat16 if wanted == "bfloat16" else torch.float32


def _cpu_has_bfloat16() -> bool:
    flags = torch.cpu.get_capabilities()
    return bool(flags.get("avx512_bf16") or flags.get("amx_bf16") or flags.get("bf16"))
