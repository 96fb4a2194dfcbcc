"""Processor time of a run: of each role process, of everything below its supervisor, and of the machine."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import psutil


class ProcessCpu(NamedTuple):
    """Processor seconds so far: of a process, and of the processes that it started."""

    own: float
    children: float


class CpuSample(NamedTuple):
    """Processor seconds at one moment: of role processes by pid, of the whole run, and of the whole machine."""

    at: float  # monotonic seconds
    roles: Mapping[int, ProcessCpu]
    run: float
    machine: float


class ProcessTree:
    """The processes of a run: `supervisor` and all below it."""

    def __init__(self, supervisor: int) -> None:
        self._supervisor = psutil.Process(supervisor)
        self._seen = self._identities()
        self._at_first = len(self._seen)

    @property
    def started(self) -> int:
        """Processes that `look` found and that were not there at first."""
        return len(self._seen) - self._at_first

    def look(self) -> int:
        """Look for new processes; returns how many run. One that starts and ends between two calls is not found."""
        found = self._identities()
        self._seen |= found
        return len(found)

    def sample(self, roles: Iterable[int]) -> CpuSample:
        """Processor time by now; `roles`: pids of role processes. A process that is gone counts 0."""
        by_role = {pid: cpu for pid in roles if (cpu := _family_cpu(pid)) is not None}
        run = _family_cpu(self._supervisor.pid)
        machine = psutil.cpu_times()
        busy = sum(machine) - machine.idle - getattr(machine, "iowait", 0.0) - getattr(machine, "steal", 0.0)
        busy -= getattr(machine, "guest", 0.0) + getattr(machine, "guest_nice", 0.0)  # counted as user already
        return CpuSample(time.monotonic(), by_role, sum(run) if run is not None else 0.0, busy)

    def _identities(self) -> set[tuple[int, float]]:
        found: set[tuple[int, float]] = set()
        with contextlib.suppress(psutil.Error):
            for process in [self._supervisor, *self._supervisor.children(recursive=True)]:
                with contextlib.suppress(psutil.Error):
                    found.add((process.pid, process.create_time()))
        return found


def _family_cpu(pid: int) -> ProcessCpu | None:
    """None for a process that is gone. What ended is counted once its parent has waited for it (not on macOS)."""
    try:
        process = psutil.Process(pid)
        times = process.cpu_times()
        own, children = times.user + times.system, times.children_user + times.children_system
        below = process.children(recursive=True)
    except psutil.Error:
        return None
    for child in below:
        with contextlib.suppress(psutil.Error):
            times = child.cpu_times()
            children += times.user + times.system + times.children_user + times.children_system
    return ProcessCpu(own, children)
