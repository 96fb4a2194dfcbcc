"""Standard output of a run that must not end with it: what cannot be written is dropped, and the run goes on."""

from __future__ import annotations

import errno
import io
import os
import select
import signal
import sys
import time
from typing import IO, cast

PATIENCE_SEC = 1.0  # a reader may be slow; one that stopped reading must not stop the run
PIECE_BYTES = 512  # what `select` calls writable takes at least PIPE_BUF bytes at once: 512 on every POSIX system


class Output(io.TextIOBase):
    """Writes to a file descriptor, unbuffered, so that nothing is left to fail when the interpreter ends.

    No method raises OSError. On a full disk each write is tried; a reader that went away (EPIPE) gets nothing more; a
    reader that stands still is skipped until there is room. Where the terminal is gone (EIO) the process is told so
    with SIGHUP, as by the terminal itself: a run ends with a save, and one started by `nohup` goes on.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._closed_by_reader = False
        self._skipping = False

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """What `rich` asks, to know which characters can be drawn."""
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
    """That of this process as `Output`; as it is where Python code has put something else in its place."""
    if sys.stdout is None:  # closed from the beginning; its descriptor may be another file's by now
        return cast(IO[str], Output(os.open(os.devnull, os.O_WRONLY)))
    try:
        return cast(IO[str], Output(sys.stdout.fileno()))
    except io.UnsupportedOperation:
        return sys.stdout


def complain(sentence: str) -> None:
    """Write to stderr. Where that fails nothing stays in its buffer: it would change the exit code at the very end."""
    try:
        sys.stderr.write(sentence)
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
