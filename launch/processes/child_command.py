"""`simul ...` as a child process that ends with its parent."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from simul.common.errors import ConfigError, SimulError
from simul.common.runtime.installation import import_path
from simul.common.runtime.terminal_text import print_text

STOPPED_EARLY = (130, -signal.SIGINT)  # exit codes of a command that was stopped before it had its handlers
KEPT_LINES = 30  # of what a command printed, for the text of an error


class ChildCommand:
    """`simul ...` in a process of its own session: Ctrl-C reaches this process, which passes it on.

    The command stops when its standard input ends: because it is asked to, or because this process has ended, a kill -9
    included. A signal could be lost before the command has its handlers.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        progress: bool,
        *,
        result: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`progress`: print its lines; `result`: keep what it writes to stdout; `environment`: on top of this one."""
        self.result = ""
        self._progress = progress
        self._asked = False
        self._lines: list[str] = []
        self._arrived = threading.Condition()
        self._over = False
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "simul.launch.cli", "--stop-at-eof", *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if result else subprocess.STDOUT, start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": import_path(), **(environment or {})},
        )  # fmt: skip
        lines = self._process.stderr if result else self._process.stdout
        self._readers = [threading.Thread(target=self._read_lines, args=[lines], daemon=True)]
        if result:
            self._readers.append(threading.Thread(target=self._read_result, daemon=True))
        for reader in self._readers:
            reader.start()
        atexit.register(self.stop)

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def wait(self) -> None:
        """Until it has ended. Ctrl-C asks it to stop; a second one stops it at once."""
        while True:
            try:
                self._process.wait()
                break
            except KeyboardInterrupt:
                self.ask_to_stop()
        self._finish()

    def ask_to_stop(self) -> None:
        """Ask it to stop, without waiting; the second time: at once."""
        assert self._process.stdin is not None
        with contextlib.suppress(ProcessLookupError, BrokenPipeError):
            if self._asked:
                self._process.send_signal(signal.SIGINT)
            self._asked = True
            self._process.stdin.close()

    def stop(self) -> None:
        """Ask it to stop, and wait."""
        if self.running:
            self.ask_to_stop()
        self.wait()

    def wait_for_line(self, part: str) -> str | None:
        """The first line that holds `part`; None where it ended without one."""
        with self._arrived:
            while True:
                for line in self._lines:
                    if part in line:
                        return line
                if self._over:
                    return None
                self._arrived.wait(1.0)

    @property
    def stopped_early(self) -> bool:
        """Whether it has ended before its time, because it was asked to."""
        return self._asked and self._process.returncode in STOPPED_EARLY

    def check(self) -> None:
        """Raises ConfigError or SimulError where it failed."""
        code = self._process.returncode
        if code and not self.stopped_early:
            raise (ConfigError if code == 2 else SimulError)(self.last_lines() or f"simul ended with exit code {code}.")

    def last_lines(self) -> str:
        """What it printed last."""
        return "\n".join(self._lines[-KEPT_LINES:])

    def _finish(self) -> None:
        for reader in self._readers:
            reader.join()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        atexit.unregister(self.stop)

    def _read_lines(self, pipe: Any) -> None:
        """To the end, also where nothing can be printed any more: the command would block at a full pipe."""
        printing = self._progress
        try:
            for raw in pipe:
                line = raw.decode(errors="replace").rstrip("\n")
                with self._arrived:
                    self._lines.append(line)
                    del self._lines[: -10 * KEPT_LINES]
                    self._arrived.notify_all()
                if printing:
                    try:
                        print_text(line)  # as a cell of a notebook shows it
                    except (OSError, ValueError):  # its reader is gone, it is closed, or its encoding lacks a character
                        printing = False
        finally:
            with self._arrived:
                self._over = True
                self._arrived.notify_all()

    def _read_result(self) -> None:
        assert self._process.stdout is not None
        self.result = self._process.stdout.read().decode()
