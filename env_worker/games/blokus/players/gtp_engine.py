"""A program that speaks GTP, the Go Text Protocol, over its standard streams."""

from __future__ import annotations

import contextlib
import queue
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from simul.common.config.trust import Trust
from simul.common.errors import EnvError

LONGEST_LINE = 1 << 12  # bytes; a longer one is read in parts
LONGEST_RESPONSE = 1 << 13  # lines; Classic has positions with more than a thousand legal moves
END_SEC = 5.0  # from the end of its output to that of the process


class GtpError(EnvError):
    """An engine that ended, hangs, or broke the protocol or the rules. Caught by the host: the game is aborted."""


class GtpEngine:
    """One process. A thread reads its responses, so that none is waited for longer than `timeout_sec`.

    After a GtpError the process is gone. Its standard error is dropped: a full pipe would block the engine.
    """

    def __init__(self, command: Sequence[str], timeout_sec: float, *, trust: Trust) -> None:
        """Raises GtpError where the program cannot be started, ConfigError where it is not trusted."""
        trust.check_program(command)
        self.name = Path(command[0]).name
        self._timeout_sec = timeout_sec
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the worker, which ends its games first
            )  # fmt: skip
        except OSError as error:
            raise GtpError(f"the GTP engine {command[0]} cannot be started: {error.strerror}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input: IO[bytes] = self._process.stdin
        self._lines: queue.Queue[bytes] = queue.Queue(LONGEST_RESPONSE)
        self._closed = threading.Event()
        threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True).start()

    def _read(self, output: IO[bytes]) -> None:
        """On its thread: the engine's lines, then b"" at its end."""
        with output:
            while not self._closed.is_set():
                line = output.readline(LONGEST_LINE)
                self._put(line)
                if not line:
                    return

    def _put(self, line: bytes) -> None:
        """Waits where more than one response is waiting: `send` takes some, or the engine is stopped."""
        while not self._closed.is_set():
            with contextlib.suppress(queue.Full):
                self._lines.put(line, timeout=0.1)
                return

    def send(self, command: str) -> str:
        """The engine's response to a command. Raises GtpError."""
        deadline = time.monotonic() + self._timeout_sec
        try:
            self._input.write(f"{command}\n".encode())
            self._input.flush()
        except OSError:
            raise self._ended(command) from None
        lines: list[str] = []
        while (line := self._line(command, deadline)).strip() or not lines:  # an empty line ends a response
            lines += [line] if line.strip() else []
            if len(lines) > LONGEST_RESPONSE:
                raise self.broken(f"answered `{command}` with more than {LONGEST_RESPONSE} lines")
        response = "".join(lines).strip()
        if response[:1] == "?":
            raise self.broken(f"refused `{command}`: {response[1:].strip() or 'no reason given'}")
        if response[:1] != "=":
            raise self.broken(f"answered `{command}` with {response[:60]!r}; expected a response that begins with =")
        return response[1:].strip()

    def _line(self, command: str, deadline: float) -> str:
        try:
            line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise self.broken(
                f"did not answer `{command}` within {self._timeout_sec:g} s and was stopped; "
                "raise blokus.gtp_timeout_sec, or lower the engine's level"
            ) from None
        if not line:
            raise self._ended(command)
        return line.decode("utf-8", "replace")

    def _ended(self, command: str) -> GtpError:
        try:
            code = self._process.wait(END_SEC)
        except subprocess.TimeoutExpired:
            return self.broken(f"closed its output at `{command}`; run it by hand to see why")
        return self.broken(f"ended with exit code {code} at `{command}`; run it by hand to see why")

    def broken(self, what: str) -> GtpError:
        """The error to raise for an engine that did `what`; the process is stopped."""
        self.close()
        return GtpError(f"the GTP engine {self.name} {what}")

    def close(self) -> None:
        """Stop the process; again: nothing."""
        self._closed.set()
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(OSError):  # what was not flushed has no reader
            self._input.close()
