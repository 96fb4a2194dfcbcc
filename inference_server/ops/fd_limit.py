"""File descriptors: every connection holds one.

A server that runs out of them refuses newcomers over TCP and serves on. Over ipc libzmq ends the process
(https://github.com/zeromq/libzmq/issues/1306), so there shall be enough, and the supervisor starts another.
"""

from __future__ import annotations

import contextlib
import sys

MOST = 65_536


def raise_limit() -> None:
    """Let this process open as many as the system allows it to, up to `MOST`. Nothing to do on Windows."""
    if sys.platform == "win32":
        return
    import resource  # not there on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft != resource.RLIM_INFINITY and soft < most:
        with contextlib.suppress(ValueError, OSError):  # macOS allows fewer than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
