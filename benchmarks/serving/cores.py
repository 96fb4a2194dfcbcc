"""Which process of a measurement runs on which core."""

from __future__ import annotations

import os

import psutil


def pin(pid: int, *cores: int) -> None:
    """Bind a process to cores; its libraries take one thread each."""
    process = psutil.Process(pid)
    if hasattr(process, "cpu_affinity"):
        process.cpu_affinity(list(cores))


def two_cores() -> tuple[int, int]:
    """(the server's, everybody else's)."""
    allowed = all_cores()
    return allowed[0], allowed[-1]


def all_cores() -> list[int]:
    """Those that this process may use."""
    process = psutil.Process()
    return list(process.cpu_affinity() if hasattr(process, "cpu_affinity") else range(os.cpu_count() or 1))
