"""Standard output that a run survives: what cannot be written is dropped."""

from __future__ import annotations

import errno
import io
import os
import select
import signal
import sys
import time
from typing import IO, cast

from simul.common.runtime.terminal_text import LINES, printable

PATIENCE_SEC = 1.0  # a reader may be slow, but must not stop the run
PIECE_BYTES = 512  # a pipe that `select` calls writable takes PIPE_BUF bytes: at least 512 in POSIX


class Output(io.TextIOBase):
    """Writes to a file descriptor, unbuffered, so that no flush can fail when the interpreter ends.

    No method raises OSError. On a full disk each write is tried; after EPIPE nothing more is written; while a reader
    does not read, writes are skipped. EIO (the terminal is gone) raises SIGHUP, as the terminal itself would: a run
    saves and ends, one under `nohup` goes on.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._closed_by_reader = False
        self._skipping = False

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Asked by `rich`, to know which characters can be drawn."""
        return "utf-8"

    def fileno(self) -> int:
        """The descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Whether a terminal shows it."""
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, text: str) -> int:
        """Write all of it, or drop what cannot be written."""
        try:
            if not self._closed_by_reader:
                self._write(memoryview(text.encode(errors="replace")))
        except OSError as error:
            self._closed_by_reader = error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EAGAIN)
            if error.errno == errno.EIO and sys.platform != "win32":
                signal.raise_signal(signal.SIGHUP)
        return len(text)

    def _write(self, data: memoryview) -> None:
        deadline = time.monotonic() + (0.0 if self._skipping else PATIENCE_SEC)
        self._skipping = False
        while data:
            if not self._has_room(max(deadline - time.monotonic(), 0.0)):
                self._skipping = True
                return
            data = data[os.write(self._descriptor, data[:PIECE_BYTES]) :]

    def _has_room(self, timeout_sec: float) -> bool:
        if sys.platform == "win32":  # select knows sockets only
            return True
        return bool(select.select([], [self._descriptor], [], timeout_sec)[1])


def standard_output() -> IO[str]:
    """sys.stdout as an `Output`; unchanged where it has no file descriptor (replaced by Python code)."""
    if sys.stdout is None:  # closed at the start; its descriptor may belong to another file by now
        return cast(IO[str], Output(os.open(os.devnull, os.O_WRONLY)))
    try:
        return cast(IO[str], Output(sys.stdout.fileno()))
    except io.UnsupportedOperation:
        return sys.stdout


def complain(sentence: str) -> None:
    """Write to stderr, controls escaped. Where that fails its buffer is emptied: it would change the exit code."""
    try:
        sys.stderr.write(printable(sentence, LINES))
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
