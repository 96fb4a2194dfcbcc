"""Processor cores and memory that this process may use: the machine's, less what affinity and containers take away."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

import psutil

CGROUP = Path("/sys/fs/cgroup")
MIB = 2**20


class MachineLimits(NamedTuple):
    """Cores, of which a quota may leave a part, and MiB of memory."""

    cores: float
    memory_mib: float


def usable_machine(cgroup: Path = CGROUP) -> MachineLimits:
    """What this process may use. `cgroup`: files of the control group, as a container sees them."""
    return MachineLimits(usable_cores(cgroup), min([psutil.virtual_memory().total / MIB, *_memory_limits(cgroup)]))


def usable_cores(cgroup: Path = CGROUP) -> float:
    """The cores of `usable_machine`."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min([float(allowed), *_quotas(cgroup)])


def _quotas(folder: Path) -> list[float]:
    """Cores by the quotas of control groups, versions 2 and 1; [] without one."""
    found = []
    for quota_file, period_file in (("cpu.max", None), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        with contextlib.suppress(OSError, ValueError, IndexError):
            words = (folder / quota_file).read_text().split()
            period = float(words[1] if period_file is None else (folder / period_file).read_text())
            if words[0] != "max" and float(words[0]) > 0 and period > 0:
                found.append(float(words[0]) / period)
    return found


def _memory_limits(folder: Path) -> list[float]:
    """MiB by the limits of control groups, versions 2 and 1; [] without one."""
    found = []
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # "max"
            found.append(int((folder / name).read_text()) / MIB)
    return [limit for limit in found if limit > 0]
