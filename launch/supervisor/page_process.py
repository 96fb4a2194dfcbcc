"""`simul page` of a run as a child process of its supervisor: it starts with the run and ends with it."""

from __future__ import annotations

import contextlib
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence

from simul.common.role.run_directory import RunDir
from simul.launch.processes.role_process import kill_session, role_environment

STOP_SEC = 5.0  # for the last figures of the run to reach the browsers


def page_command(run_dir: RunDir, port: int) -> list[str]:
    """It stops when its standard input ends, so also when the supervisor is killed."""
    line = [sys.executable, "-P", "-m", "simul.launch.cli", "--stop-at-eof", "page", "--port", str(port)]
    return [*line, "--", str(run_dir.root)]


class PageProcess:
    """No part of the run: where it fails, the run goes on without it. It has the run's priority, to be in time."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: queue.Queue[str] = queue.Queue()
        self._last_line = ""

    def start(self) -> list[str]:
        """Start it; returns a sentence where that fails."""
        try:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                env=role_environment(1), start_new_session=sys.platform != "win32",
            )  # fmt: skip
        except OSError as error:
            return [f"the page could not be started: {error.strerror}. Training goes on."]
        threading.Thread(target=self._read_lines, daemon=True).start()
        return []

    def poll(self) -> list[str]:
        """Sentences for the view: its address, once it listens, and how it ended where it did by itself."""
        sentences = []
        while not self._lines.empty():
            self._last_line = self._lines.get()
            if self._last_line.startswith("http"):
                sentences.append(f"the page of this run: {self._last_line}")
        if self._process is not None and self._process.poll() is not None:
            code = self._process.returncode
            self._close()
            why = self._last_line.removeprefix("simul: ").replace("--port", "--page-port")[:500]
            sentences.append(f"the page has ended (exit code {code}): {why} Training goes on.")
        return sentences

    def close(self) -> None:
        """Stop it, once it has shown what the run wrote last."""
        if self._process is None:
            return
        process = self._process
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SEC)
        self._close()

    def _close(self) -> None:
        assert self._process is not None
        kill_session(self._process)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._process = None

    def _read_lines(self) -> None:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        with contextlib.suppress(ValueError):  # closed meanwhile
            for line in process.stdout:
                self._lines.put(line.decode(errors="replace").strip())
