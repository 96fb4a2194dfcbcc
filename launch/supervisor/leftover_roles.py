"""Roles of a supervisor that was killed: the next start in the run directory waits for their end."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence

import msgspec
import psutil

from simul.common.role.lifecycle import ORPHAN_SEC, SAVE_PATIENCE_SEC
from simul.common.role.run_directory import RunDir
from simul.common.runtime.decode_errors import DECODE_ERRORS
from simul.common.runtime.private_files import read_regular
from simul.launch.monitoring.snapshot import STATUS, ProcessFigures
from simul.launch.processes.role_process import LOG_NAMES
from simul.launch.supervisor.game_spec import StartStopped

POLL_SEC = 0.1
SAY_SEC = 3.0  # a start that waits longer says so


class _LastStatus(msgspec.Struct):
    """What is read of status.json."""

    processes: list[ProcessFigures] = []


def leftover_roles(run_dir: RunDir) -> list[ProcessFigures]:
    """The processes of the last start that still run; none where status.json is damaged.

    Those of another machine are none of its business: their pids may be other processes' here. Neither is a process
    that was not started for this run directory, whatever a status.json of others says.
    """
    try:
        listed = msgspec.json.decode(read_regular(run_dir.root / STATUS), type=_LastStatus).processes
    except (OSError, *DECODE_ERRORS):
        return []
    return [
        msgspec.structs.replace(role, state="ending")
        for role in listed
        if role.identity.alive() and str(run_dir.root) in role.identity.command_line()
    ]


def end_leftover_roles(
    left: Sequence[ProcessFigures], say: Callable[[str], object], stopped: Callable[[], bool]
) -> None:
    """Wait until they have ended, as each does without its supervisor; kill those that have not in their time.

    A learner may be saving, and has as long as it gives itself.

    Raises StartStopped: `stopped()` became true. They go on.
    """
    if not left:
        return
    began, told = time.monotonic(), False
    killed: list[str] = []
    while left := [role for role in left if role.name not in killed and role.identity.alive()]:
        if stopped():
            raise StartStopped("stopped before the processes of the last supervisor had ended")
        waited = time.monotonic() - began
        if waited >= SAY_SEC and not told:
            told, names = True, ", ".join(role.name for role in left)
            say(f"the last supervisor was killed; waiting for {names}, at most {max(map(_limit_sec, left)):.0f} s")
        for role in left:
            if waited >= _limit_sec(role):
                killed.append(role.name)
                with contextlib.suppress(psutil.Error):
                    psutil.Process(role.pid).kill()
        time.sleep(POLL_SEC)
    late = f" ({', '.join(killed)} too late: killed)" if killed else ""
    say(f"the last supervisor was killed; its processes have ended{late}")


def _limit_sec(role: ProcessFigures) -> float:
    return SAVE_PATIENCE_SEC if role.name.startswith(LOG_NAMES["learner"]) else ORPHAN_SEC
