"""The signals that end a command, and Ctrl-C under `make up`."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from types import FrameType, TracebackType

ECHO_SEC = 0.5  # one stop may come twice: to a whole group of processes, and from one of them (make) that hands it on


class Signals:
    """Ctrl-C and SIGTERM: the first asks for a clean stop, a second that is no echo of it for one now.

    A terminal that closes (SIGHUP) asks for a clean stop, however often it says so; under `nohup` it asks for nothing.
    Handlers only set flags.
    """

    def __init__(self) -> None:
        self.stop = False
        self.now = False
        self._first_at = 0.0
        self._before: dict[int, object] = {}

    def install(self) -> None:
        """Take over the signals."""
        numbers = [signal.SIGINT, signal.SIGTERM]
        if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            numbers.append(signal.SIGHUP)
        self._before = {number: signal.signal(number, self._on_signal) for number in numbers}

    def restore(self) -> None:
        """Give them back, unless one came: the process is about to leave, and a second one shall not cut that short."""
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
    """While inside, Ctrl-C reaches this process alone. Does nothing where there is no terminal to take."""

    def __init__(self) -> None:
        self._before: int | None = None

    def __enter__(self) -> ForegroundGroup:
        if sys.platform == "win32" or not sys.stdin.isatty():
            return self
        group = os.getpgrp()
        if group == os.getpid() or os.tcgetpgrp(sys.stdin.fileno()) != group:
            return self
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # a background group may not hand the terminal over otherwise
        signal.signal(signal.SIGTSTP, signal.SIG_IGN)  # Ctrl-Z would stop us unseen by the shell, which watches make
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
