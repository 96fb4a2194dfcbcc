"""File descriptors: every connection holds one.

Without free ones the server refuses new TCP connections and serves on. Over ipc libzmq ends the process
(https://github.com/zeromq/libzmq/issues/1306): hence the raised limit. The supervisor restarts a server that ended.
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
