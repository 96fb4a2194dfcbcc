"""The cores that all layers share, and who uses them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

import psutil

MOST_CORES = 2
_BUSY = ("user", "nice", "system", "irq", "softirq", "interrupt", "dpc", "steal")


def claim_cores() -> list[int]:
    """The cores to measure on. Where there are more than two, this process and its children are bound to two."""
    process = psutil.Process()
    allowed = _allowed(process)
    if len(allowed) > MOST_CORES and hasattr(process, "cpu_affinity"):
        allowed = allowed[:MOST_CORES]
        process.cpu_affinity(allowed)
    return allowed


def our_cores() -> list[int]:
    """Those that `claim_cores` left to this process and its parents."""
    return _allowed(psutil.Process())


def busy_seconds(cores: Iterable[int]) -> float:
    """Processor time that `cores` have spent on anything, stolen time included, since the machine started."""
    times = psutil.cpu_times(percpu=True)
    return float(sum(getattr(times[core], kind, 0.0) for core in cores for kind in _BUSY))


def family_seconds(pids: Iterable[int]) -> float:
    """Processor time of processes and all their descendants, those that ended and were waited for included."""
    total = 0.0
    for process in family(pids):
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system
            total += getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
    return total


def family(pids: Iterable[int]) -> list[psutil.Process]:
    """The living ones of `pids` and their descendants, each once."""
    found: dict[int, psutil.Process] = {}
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            root = psutil.Process(pid)
            for process in (root, *root.children(recursive=True)):
                found[process.pid] = process
    return list(found.values())


def _allowed(process: psutil.Process) -> list[int]:
    if hasattr(process, "cpu_affinity"):
        return list(process.cpu_affinity() or ())
    return list(range(os.cpu_count() or 1))
