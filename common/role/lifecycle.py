"""Lifecycle of a role process: arguments, stop flag, parent watch."""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from simul.common.role.run_directory import RunDir
from simul.common.runtime.parent_watch import wait_for_end_of

STUCK_SEC = 5.0  # after the parent's death: how long an uninterruptible call of the start-up may last
ORPHAN_SEC = 15.0  # after the parent's death: how long a role that saves nothing may take to end by itself
# The supervisor's request to stop. A signal of its own, because a second SIGTERM means exit at once, and a service
# manager may already have sent one SIGTERM to every process.
STOP_SIGNAL = getattr(signal, "SIGUSR1", signal.SIGTERM)

# Exit code of a role that printed why it ends and must not be restarted: EX_CONFIG of sysexits.h. Not 3, the code of
# abort() on Windows.
EXIT_ENDS_RUN = 78
# Exit code of a learner's rank that lost another one: EX_TEMPFAIL of sysexits.h. All ranks start again together.
EXIT_RANK_LOST = 75
NOTICE = "simul-notice: "  # begins a sentence for the view, on stderr of a worker that is asked for the game's spec
SAVE_PATIENCE_SEC = 600.0  # while rank 0 of a learner writes to disk, the other ranks and the supervisor wait so long


@dataclass(frozen=True)
class RoleArguments:
    """Command-line arguments of every role."""

    run_dir: RunDir
    index: int
    run_id: int
    parent: int


def add_role_arguments(parser: argparse.ArgumentParser) -> None:
    """Add `--run-dir D --index I --run-id R --parent PID`."""
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--index", type=int, default=0)
    parser.add_argument("--run-id", type=int, default=0, help="ordered number of this start; default: the time in ns")
    parser.add_argument("--parent", type=int, default=0, help="stop when this process is gone (0: do not watch)")


def role_arguments(options: argparse.Namespace) -> RoleArguments:
    """The role's arguments out of parsed options."""
    return RoleArguments(RunDir(options.run_dir), options.index, options.run_id or time.time_ns(), options.parent)


def parse_learner_arguments() -> tuple[RoleArguments, str]:
    """Those of every role, and `--meeting NAME`: where the ranks of a learner of several meet; else ""."""
    parser = argparse.ArgumentParser(prog="python -m simul.learner")
    add_role_arguments(parser)
    parser.add_argument("--meeting", default="", help="name of the file at which the learner's ranks meet")
    options = parser.parse_args()
    return role_arguments(options), options.meeting


class Stopped(BaseException):
    """A stop arrived during start-up. A BaseException, so that no `except Exception` of a game catches it."""


def ensure_temporary_folder() -> None:
    """Set a temporary folder where Python finds no writable one, as on a full disk.

    torch requests its name while it creates an optimizer. A write there still fails, and is handled.
    """
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        tempfile.tempdir = os.path.abspath(os.sep)


class StopFlag:
    """Set by SIGINT, SIGTERM, `STOP_SIGNAL` or the parent's death. A second SIGINT or SIGTERM exits at once.

    Attributes:
        signalled: SIGINT or SIGTERM arrived, which the supervisor never sends to a role.
    """

    def __init__(self, parent: int = 0, orphan_sec: float = ORPHAN_SEC) -> None:
        """`parent`: 0: it is not watched. `orphan_sec`: see `watch_parent`."""
        self._parent = parent
        self._orphan_sec = orphan_sec
        self._set = False
        self.signalled = False
        self._interrupts = False

    def install(self) -> StopFlag:
        """Install the signal handlers, which only set the flag, and watch the parent."""
        self.watch_parent()
        for number in (signal.SIGINT, signal.SIGTERM, STOP_SIGNAL):
            signal.signal(number, self._on_signal)
        return self

    def set(self) -> None:
        """Request a stop from inside the process."""
        self._set = True

    def watch_parent(self) -> None:
        """From now on the parent's death sets the flag.

        A thread exits the process `orphan_sec` later, as its main thread may wait in a call of the game for ever.
        """
        if self._parent:
            threading.Thread(target=self._follow_parent, name="simul-parent", daemon=True).start()

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """Within the block, a stop raises Stopped in the main thread, also while it waits. For a role's start-up.

        After the parent's death the process exits where the main thread does not return from its wait.
        """
        try:
            self._interrupts = True
            if self._set:
                raise Stopped
            yield
        finally:
            self._interrupts = False

    def _follow_parent(self) -> None:
        """The thread."""
        wait_for_end_of(self._parent)
        self._set = True
        if self._interrupts:
            if hasattr(signal, "pthread_kill"):
                signal.pthread_kill(threading.main_thread().ident or 0, STOP_SIGNAL)
            time.sleep(STUCK_SEC)
        if not self._interrupts:
            time.sleep(self._orphan_sec)
        os._exit(1)

    def __bool__(self) -> bool:
        return self._set

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._set = True
        if number in (signal.SIGINT, signal.SIGTERM):
            if self.signalled:
                os._exit(130)
            self.signalled = True
        if self._interrupts:
            self._interrupts = False
            raise Stopped
