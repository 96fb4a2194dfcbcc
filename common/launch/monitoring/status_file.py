"""status.json, second by second, for `simul status`."""

from __future__ import annotations

from collections.abc import Callable

from simul.common.config.run_directory import RunDir
from simul.common.launch.monitoring.snapshot import Snapshot
from simul.common.launch.supervisor.run_lock import write_atomically


class StatusFile:
    """The run's. Where it cannot be written the run goes on without it, and `say` tells of that once."""

    def __init__(self, run_dir: RunDir, say: Callable[[str], None]) -> None:
        self._run_dir = run_dir
        self._say = say
        self._written = True

    def write(self, snapshot: Snapshot) -> None:
        """Replace what it held."""
        try:
            write_atomically(self._run_dir, "status.json", snapshot)
            self._written = True
        except (OSError, ValueError, TypeError) as error:  # no room, or a figure that JSON has no word for
            if self._written:
                self._say(f"status.json cannot be written: {getattr(error, 'strerror', None) or error}")
            self._written = False
