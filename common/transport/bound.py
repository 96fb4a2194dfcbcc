"""An endpoint that this process owns: its lock, its files, and who may connect to an ipc socket. Knows no zmq."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Callable

from simul.common.protocol.errors import ConfigError
from simul.common.transport.endpoints import IpcAccess, check_endpoint, files_of, lock_ipc, make_folder_of

BACKLOG = 1024  # connections that wait to be accepted; the system allows fewer where net.core.somaxconn says so
_MODES: dict[IpcAccess, int] = {"owner": 0o600, "group": 0o660, "everyone": 0o666}


class BoundEndpoint:
    """`bind` makes the endpoint's socket; it is called again when its file has vanished. Raises ConfigError.

    `files`: of an ipc endpoint. Without them nobody new finds it.
    """

    def __init__(self, endpoint: str, bind: Callable[[str], None], *, curve: bool = False) -> None:
        check_endpoint(endpoint, curve=curve)
        self.endpoint = endpoint
        self._bind = bind
        self._lock = lock_ipc(endpoint)
        try:
            bind(endpoint)
        except OSError as error:
            self._unlock()
            raise ConfigError(
                f"The endpoint {endpoint} cannot be bound: {in_words(error)}. "
                "Another run may use it: stop that one (`simul down`; a `simul serve` by Ctrl-C) or choose another "
                "endpoint."
            ) from None
        self.files = files_of(endpoint)
        self._made = _identity(self.files)

    def bind_again(self) -> None:
        """After `files` vanished: newcomers find the socket again, open connections live on.

        Raises:
            ConfigError: they cannot be made, or another process owns the endpoint now.
        """
        self._unlock()
        make_folder_of(self.endpoint)
        self._lock = lock_ipc(self.endpoint)
        if os.path.exists(self.files[0]):  # the lock alone was gone
            return
        try:
            self._bind(self.endpoint)
        except OSError as error:
            raise ConfigError(f"The endpoint {self.endpoint} cannot be bound: {in_words(error)}.") from None
        self._made = _identity(self.files)

    def close(self) -> None:
        """Remove the socket's file, unless another process has made one there since, and give the lock back."""
        if self._made and self._lock >= 0 and _identity(self.files) == self._made:
            with contextlib.suppress(OSError):
                os.unlink(self.files[0])
        self._unlock()

    def _unlock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def listen_unix(endpoint: str, access: IpcAccess = "owner") -> socket.socket:
    """Listen at an ipc endpoint with the permissions of `access`, whatever the umask is. Raises OSError.

    They are set between bind and listen: until it listens, the system refuses every connection.
    """
    assert sys.platform != "win32"
    path = endpoint.removeprefix("ipc://")
    one = socket.socket(socket.AF_UNIX)
    try:
        if path.startswith("@"):  # an abstract name: no file, no permissions
            one.bind(f"\0{path[1:]}")
        else:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)  # of a process that was killed: whoever binds holds the lock
            one.bind(path)
            os.chmod(path, _MODES[access])
        one.setblocking(False)
        one.listen(BACKLOG)
    except OSError:
        one.close()
        raise
    return one


def listen_tcp(endpoint: str) -> socket.socket:
    """Listen at a tcp endpoint. Raises OSError."""
    host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    six = host.startswith("[")
    one = socket.socket(socket.AF_INET6 if six else socket.AF_INET)
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if six:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        one.bind(("" if host == "*" else host.strip("[]"), 0 if port == "*" else int(port)))
        one.setblocking(False)
        one.listen(BACKLOG)
    except OSError:
        one.close()
        raise
    return one


def in_words(error: OSError) -> str:
    """Without the address, which some libraries add; `AF_UNIX path too long` has no number."""
    return error.strerror or str(error)


def _identity(files: tuple[str, ...]) -> tuple[int, int] | None:
    with contextlib.suppress(OSError, IndexError):
        found = os.stat(files[0])
        return found.st_dev, found.st_ino
    return None
