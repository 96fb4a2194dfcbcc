"""Pins server and clients to processor cores where the system allows it; measures what other processes used."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import psutil

Times = tuple[float, float, float]
_BUSY = ("user", "nice", "system", "irq", "softirq", "interrupt", "dpc", "steal")


@dataclass(frozen=True)
class Cores:
    """Cores of the server and of the clients; both empty where there are too few, or no affinity."""

    server: tuple[int, ...]
    clients: tuple[int, ...]


def split_cores(server_threads: int) -> Cores:
    """The first `server_threads` cores that this process may use for the server, the others for the clients."""
    process = psutil.Process()
    allowed = list(process.cpu_affinity() or ()) if hasattr(process, "cpu_affinity") else []
    if len(allowed) <= server_threads:
        return Cores((), ())
    return Cores(tuple(allowed[:server_threads]), tuple(allowed[server_threads:]))


def pin(pid: int, cores: tuple[int, ...]) -> None:
    """Bind a process that has just been started; threads it starts later inherit it."""
    if cores:
        with contextlib.suppress(AttributeError, psutil.Error, OSError):
            psutil.Process(pid).cpu_affinity(list(cores))


class OtherProcesses:
    """Measures the share of the cores that other processes (and other virtual machines) use from now on.

    `read` returns three times in seconds: now, processor time of `cores`, and that of this process and its children.
    """

    def __init__(self, cores: Sequence[int], read: Callable[[Sequence[int]], Times]) -> None:
        self._cores = cores
        self._read = read
        self._begin = read(cores)

    def share(self) -> float:
        """0 to 1, since the start; call after all child processes were waited for."""
        seconds, busy, ours = (now - before for now, before in zip(self._read(self._cores), self._begin))
        return round(min(1.0, max(0.0, (busy - ours) / (seconds * len(self._cores)))), 3)


def allowed_cores() -> list[int]:
    """The cores that this process may use."""
    process = psutil.Process()
    allowed = process.cpu_affinity() if hasattr(process, "cpu_affinity") else None
    return list(allowed or range(os.cpu_count() or 1))


def busy_seconds(cores: Iterable[int]) -> float:
    """Processor time that `cores` have spent on anything, stolen time included, since the machine started."""
    times = psutil.cpu_times(percpu=True)
    return float(sum(getattr(times[core], kind, 0.0) for core in cores for kind in _BUSY))


def read_times(cores: Sequence[int]) -> Times:
    """What `OtherProcesses` reads: children count once they have been waited for."""
    own = os.times()
    return time.perf_counter(), busy_seconds(cores), own.user + own.system + own.children_user + own.children_system
