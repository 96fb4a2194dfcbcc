"""Whether games of a run's workers can be watched by this page, by what status.json says of its processes."""

from __future__ import annotations

from pathlib import Path

import msgspec

from simul.common.role.machine import host_of, may_share_sockets
from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import read_owner
from simul.common.runtime.decode_errors import DECODE_ERRORS
from simul.common.runtime.private_files import read_regular
from simul.launch.monitoring.page.runs.watched_run import STATUS_BYTES
from simul.launch.monitoring.snapshot import Snapshot
from simul.launch.processes.role_process import LOG_NAMES

PREFIX = f"{LOG_NAMES['env_worker']}-"
MOST_NAMED = 4
MOST_LETTERS = 60  # of the name of a machine
NOT_ACTIVE = "The run is not active: its supervisor has ended."


def why_not_watched(root: Path, worker: int | None = None) -> str:
    """A sentence where no game of the run, or of a worker of it, can be watched. Empty: nothing is known against it."""
    try:
        snapshot = msgspec.json.decode(read_regular(root / "status.json", STATUS_BYTES, links=False), type=Snapshot)
    except (OSError, *DECODE_ERRORS):
        return ""  # it starts
    if snapshot.phase in ("stopped", "failed"):
        return ""  # it may start again
    workers = [process for process in snapshot.processes if process.name.startswith(PREFIX)]
    if nodes := sorted({process.node[:MOST_LETTERS] for process in workers if process.node}):
        named = ", ".join(nodes[:MOST_NAMED]) + (", ..." if len(nodes) > MOST_NAMED else "")
        return (
            f"Games of this run cannot be watched: it runs on several machines (workers on {named}), and the page "
            "reaches only the workers of a run that is wholly on its own machine."
        )
    if elsewhere := [process.machine for process in workers if process.pid and not may_share_sockets(process.machine)]:
        host = host_of(elsewhere[0])[:MOST_LETTERS]
        return f"Games of this run cannot be watched here: it runs on {host}. Use `simul page` there."
    there = worker is None or f"{PREFIX}{worker}" in {process.name for process in workers}
    if there or snapshot.phase != "training" or not workers:
        return ""
    return f"The run has no worker {worker}: it has {len(workers)}, numbered from 0."


def has_ended(run_dir: RunDir) -> bool:
    """Whether the supervisor that the run directory names has ended on this machine."""
    owner = read_owner(run_dir)
    return owner is not None and owner.here and not owner.alive()
