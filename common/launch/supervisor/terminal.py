"""Ctrl-C under `make up`.

A terminal sends Ctrl-C to its whole foreground process group: make would get it too, and end with an error although
the run stopped cleanly. So a run that make started moves into a group of its own, which holds the foreground until the
run ends.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import TracebackType


class OwnForeground:
    """While inside, Ctrl-C reaches this process alone. Does nothing where there is no terminal to take."""

    def __init__(self) -> None:
        self._before: int | None = None

    def __enter__(self) -> OwnForeground:
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
