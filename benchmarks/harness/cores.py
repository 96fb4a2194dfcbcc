"""Which process of a measurement runs on which processor core, and the processor time that each takes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping

import psutil

from simul.launch.loadtest.cores import allowed_cores

MOST_CORES = 2
HOSTS = "simulator hosts"


def claim_cores() -> list[int]:
    """The cores to measure on. Where there are more than two, this process and its children are bound to two."""
    allowed = allowed_cores()
    process = psutil.Process()
    if len(allowed) > MOST_CORES and hasattr(process, "cpu_affinity"):
        allowed = allowed[:MOST_CORES]
        process.cpu_affinity(allowed)
    return allowed


def two_cores() -> tuple[int, int]:
    """(the server's core, the core of all other processes)."""
    allowed = allowed_cores()
    return allowed[0], allowed[-1]


def pin(pid: int, *cores: int) -> None:
    """Bind a process to cores."""
    process = psutil.Process(pid)
    if hasattr(process, "cpu_affinity"):
        process.cpu_affinity(list(cores))


def family_seconds(pids: Iterable[int]) -> float:
    """Processor time of processes and all their descendants, those that ended and were waited for included."""
    total = 0.0
    for process in family(pids):
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system
            total += getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
    return total


def seconds_by_role(roles: Mapping[str, int]) -> dict[str, float]:
    """Processor time of each named process itself, and of all that they started: `simulator hosts`."""
    own = {name: _own_seconds(pid) for name, pid in roles.items()}
    return {**own, HOSTS: family_seconds(roles.values()) - sum(own.values())}


def us_by_role(before: Mapping[str, float], after: Mapping[str, float], decisions: float) -> dict[str, float]:
    """Microseconds a decision between two readings of `seconds_by_role`."""
    return {name: round((after[name] - before.get(name, 0.0)) * 1e6 / max(decisions, 1), 1) for name in after}


def family(pids: Iterable[int]) -> list[psutil.Process]:
    """The living ones of `pids` and their descendants, each once."""
    found: dict[int, psutil.Process] = {}
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            root = psutil.Process(pid)
            for process in (root, *root.children(recursive=True)):
                found[process.pid] = process
    return list(found.values())


def _own_seconds(pid: int) -> float:
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)
