"""Where a pid means a process: one boot of one machine, and one pid namespace of it (a container has its own)."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path


@cache
def this_machine() -> str:
    """Name of the place where pids of this process mean something: host name, and on Linux boot and pid namespace."""
    parts = [platform.node()]
    try:
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8])
        parts.append(str(os.stat("/proc/self/ns/pid").st_ino))
    except OSError:  # not Linux, or /proc is closed
        pass
    return "/".join(parts)


def is_this_machine(machine: str) -> bool:
    """Whether a pid that was noted there may be looked up here. An empty name is that of an older version."""
    return machine in ("", this_machine())


def may_share_sockets(machine: str) -> bool:
    """Whether ipc sockets there may be those of here: its host name or its boot is the same (a container's boot is)."""
    return is_this_machine(machine) or any(a == b for a, b in zip(machine.split("/")[:2], this_machine().split("/")))


def host_of(machine: str) -> str:
    """The host name in it."""
    return machine.partition("/")[0] or "an unnamed host"
