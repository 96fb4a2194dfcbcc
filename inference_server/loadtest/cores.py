"""Who runs on which processor core, where the system lets us choose."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class Cores:
    """Cores of the server and of the clients; both empty where they cannot be told apart."""

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
