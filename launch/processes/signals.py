"""The signals that end a command, and Ctrl-C under `make up`."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from types import FrameType, TracebackType

ECHO_SEC = 0.5  # one stop may arrive twice: sent to the process group, and forwarded by a member of it (make)


class Signals:
    """Ctrl-C and SIGTERM: the first sets `stop` (a clean stop), a second, later than ECHO_SEC, `now` (at once).

    SIGHUP (the terminal closes) sets only `stop`, and nothing under `nohup`. Handlers only set flags.
    """

    def __init__(self) -> None:
        self.stop = False
        self.now = False
        self._first_at = 0.0
        self._before: dict[int, object] = {}

    def install(self) -> None:
        """Install the handlers."""
        numbers = [signal.SIGINT, signal.SIGTERM]
        if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            numbers.append(signal.SIGHUP)
        self._before = {number: signal.signal(number, self._on_signal) for number in numbers}

    def restore(self) -> None:
        """Put the former handlers back; not after a stop, so that a second signal does not cut short the exit."""
        if self.stop:
            return
        for which, handler in self._before.items():
            signal.signal(which, handler)  # type: ignore[arg-type]

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        self._first_at = self._first_at or now
        if sys.platform == "win32" or number != signal.SIGHUP:
            self.now = self.now or (self.stop and now > self._first_at + ECHO_SEC)
        self.stop = True


class ForegroundGroup:
    """While inside, this process is a foreground group of its own. Does nothing without a terminal.

    A terminal sends Ctrl-C to its whole foreground process group. `make` is in it, too, and would end with an error
    although the run stopped cleanly.
    """

    def __init__(self) -> None:
        self._before: int | None = None

    def __enter__(self) -> ForegroundGroup:
        if sys.platform == "win32" or not sys.stdin.isatty():
            return self
        group = os.getpgrp()
        if group == os.getpid() or os.tcgetpgrp(sys.stdin.fileno()) != group:
            return self
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # else a background group may not hand over the terminal
        signal.signal(signal.SIGTSTP, signal.SIG_IGN)  # the shell watches make and would not see us stop
        os.setpgid(0, 0)
        os.tcsetpgrp(sys.stdin.fileno(), os.getpid())
        self._before = group
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None and sys.platform != "win32":
            with contextlib.suppress(OSError):  # the terminal may be gone
                os.tcsetpgrp(sys.stdin.fileno(), self._before)
