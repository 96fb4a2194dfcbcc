"""Endpoints: which may be bound, their locks and files, and how vanished files are restored. Does not import zmq."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import sys
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Literal, Protocol

from simul.common.errors import ConfigError
from simul.common.runtime.private_files import open_to_change

if sys.platform != "win32":
    import fcntl

IpcAccess = Literal["owner", "group", "everyone"]  # who may connect to an ipc socket
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_EVERYWHERE = {"*": "127.0.0.1", "0.0.0.0": "127.0.0.1", "[::]": "[::1]"}


def check_endpoint(endpoint: str, *, curve: bool = False) -> None:
    """Raises ConfigError for a malformed endpoint, or one that other machines reach without `curve` keys."""
    if endpoint.startswith("ipc://"):
        return
    if not endpoint.startswith("tcp://"):
        raise ConfigError(f"The endpoint {endpoint} has an unknown kind: expected ipc://PATH or tcp://ADDRESS:PORT.")
    host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    if port != "*" and not (port.isdecimal() and int(port) < 65536):
        raise ConfigError(f"The endpoint {endpoint} has no usable port: expected a number from 1 to 65535, or *.")
    if host in LOOPBACK or (curve and _is_address(host)):
        return
    if curve:
        raise ConfigError(
            f"The endpoint {endpoint} cannot be bound: expected ipc://PATH, tcp://ADDRESS:PORT or tcp://*:PORT."
        )
    raise ConfigError(
        f"The endpoint {endpoint} is not local: expected ipc://PATH or tcp://127.0.0.1:PORT. "
        "Binding where other machines can connect needs CURVE keys: make them with `simul keys new DIR` "
        "and set server.curve_keys to DIR (`simul serve`: --curve-keys DIR)."
    )


def connectable(endpoint: str) -> str:
    """The endpoint to connect to on this machine where `endpoint` is bound: `*` becomes loopback."""
    host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    here = _EVERYWHERE.get(host) if endpoint.startswith("tcp://") else None
    return endpoint if here is None else f"tcp://{here}:{port}"


def _is_address(host: str) -> bool:
    if host == "*":
        return True
    try:
        ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def endpoint_files(endpoint: str) -> tuple[str, ...]:
    """Files of a bound endpoint: socket and lock. Empty for tcp and abstract ipc names (`@`)."""
    path = endpoint.removeprefix("ipc://")
    return (path, f"{path}.lock") if endpoint.startswith("ipc://") and os.path.exists(path) else ()


def make_endpoint_folder(endpoint: str) -> None:
    """Create the folder of an ipc path with mode 0700. Raises ConfigError, also where others may exchange its files."""
    folder = Path(endpoint.removeprefix("ipc://")).parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _refuse_writable(folder)
    except OSError as error:
        raise ConfigError(f"The endpoint {endpoint} cannot be made: {error.strerror}.") from None


def _refuse_writable(folder: Path) -> None:
    """Raises ConfigError for a folder of another user, or one where everybody may exchange the sockets."""
    if sys.platform == "win32":
        return
    found = folder.stat()
    writable = found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX
    if writable or found.st_uid not in (0, os.geteuid()):
        raise ConfigError(
            f"The folder {folder} is another user's, or everybody may write to it: others may take its sockets. "
            "Choose another endpoint, or make it yours with mode 0700."
        )


def lock_ipc(endpoint: str) -> int:
    """Lock an ipc path, since binding it silently takes it from its owner. Returns a descriptor, -1 for tcp.

    Raises ConfigError where another process holds the lock, it cannot be made, or the path is that of another file.
    """
    if sys.platform == "win32" or not endpoint.startswith("ipc://"):
        return -1
    path = Path(endpoint.removeprefix("ipc://"))
    _refuse_other_files(endpoint)
    try:
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise ConfigError(
            f"The endpoint {endpoint} cannot be made: {error.strerror}. "
            "Choose another endpoint or run directory (--run-dir), or fix its permissions."
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise ConfigError(
            f"The endpoint {endpoint} is in use by another process. Stop that run (`simul down`; a `simul serve` by "
            "Ctrl-C), or choose another run directory with --run-dir."
        ) from None
    return lock


def is_locked(lock: Path) -> bool:
    """Whether a process owns the endpoint with the lock file `lock`. Raises OSError."""
    if sys.platform == "win32":
        return False
    file = open_to_change(lock)
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


BACKLOG = 1024  # connections that wait to be accepted, at most net.core.somaxconn
_MODES: dict[IpcAccess, int] = {"owner": 0o600, "group": 0o660, "everyone": 0o666}


class BoundEndpoint:
    """An endpoint that this process owns, with its lock. `bind` makes the socket, and again after its file vanished.

    `files`: socket and lock of an ipc endpoint; new clients need them. The constructor raises ConfigError.
    """

    def __init__(self, endpoint: str, bind: Callable[[str], None], *, curve: bool = False) -> None:
        check_endpoint(endpoint, curve=curve)
        self.endpoint = endpoint
        self._bind = bind
        self._lock = lock_ipc(endpoint)
        try:
            bind(endpoint)
        except ConfigError:
            self._unlock()
            raise
        except OSError as error:
            self._unlock()
            raise ConfigError(
                f"The endpoint {endpoint} cannot be bound: {error_text(error)}. "
                "Another run may use it: stop that one (`simul down`; a `simul serve` by Ctrl-C) or choose another "
                "endpoint."
            ) from None
        self.files = endpoint_files(endpoint)
        self._made = _identity(self.files)

    def rebind(self) -> None:
        """Bind again after `files` vanished. Open connections are not affected.

        Raises:
            ConfigError: the files cannot be made, or another process owns the endpoint now.
        """
        self._unlock()
        make_endpoint_folder(self.endpoint)
        self._lock = lock_ipc(self.endpoint)
        if os.path.exists(self.files[0]):  # only the lock was gone
            return
        try:
            self._bind(self.endpoint)
        except OSError as error:
            raise ConfigError(f"The endpoint {self.endpoint} cannot be bound: {error_text(error)}.") from None
        self._made = _identity(self.files)

    def close(self) -> None:
        """Remove the socket's file, unless it is another process's by now, and release the lock."""
        if self._made and self._lock >= 0 and _identity(self.files) == self._made:
            with contextlib.suppress(OSError):
                os.unlink(self.files[0])
        self._unlock()

    def _unlock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _refuse_other_files(endpoint: str) -> None:
    """Raises ConfigError where something is at an ipc path that is no socket: binding would remove it."""
    with contextlib.suppress(OSError):  # nothing is there, or binding says why not
        if not stat.S_ISSOCK(os.lstat(endpoint.removeprefix("ipc://")).st_mode):
            raise ConfigError(
                f"The endpoint {endpoint} is the path of a file that is no socket. It is left as it is: choose another "
                "endpoint."
            )


def listen_unix(endpoint: str, access: IpcAccess = "owner") -> socket.socket:
    """Listen at an ipc endpoint with the permissions of `access`, independent of the umask.

    Raises OSError; ConfigError where a file is there that is no socket.

    Permissions are set between bind and listen: the system refuses connections before listen.
    """
    assert sys.platform != "win32"
    path = endpoint.removeprefix("ipc://")
    one = socket.socket(socket.AF_UNIX)
    try:
        if path.startswith("@"):  # an abstract name: no file, no permissions
            one.bind(f"\0{path[1:]}")
        else:
            _refuse_other_files(endpoint)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)  # left by a killed process: this process holds the lock
            one.bind(path)
            os.chmod(path, _MODES[access])
        one.setblocking(False)
        one.listen(BACKLOG)
    except (OSError, ConfigError):
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


def error_text(error: OSError) -> str:
    """The error without the address that some libraries add; `AF_UNIX path too long` has no errno."""
    return error.strerror or str(error)


def _identity(files: tuple[str, ...]) -> tuple[int, int] | None:
    with contextlib.suppress(OSError, IndexError):
        found = os.stat(files[0])
        return found.st_dev, found.st_ino
    return None


CHECK_EVERY_SEC = 1.0


class EndpointOwner(Protocol):
    """Owns endpoints: a ZeroMQ socket, or the server's proxy."""

    @property
    def bound(self) -> Sequence[BoundEndpoint]:
        """The owned endpoints."""


class EndpointMonitor:
    """Checks once a second for vanished socket files, which cleaners of temporary files remove, and restores them.

    Open connections survive without the files; new clients need them.
    """

    def __init__(self, *owners: EndpointOwner) -> None:
        self._bound = [bound for owner in owners for bound in owner.bound]
        self._next = 0.0
        self._said: dict[BoundEndpoint, str] = {}

    def restore_missing(self, now: float) -> list[str]:
        """Sentences about what vanished since the last check, or could not be restored. Never raises.

        `now`: seconds, from any monotonic clock.
        """
        if now < self._next:
            return []
        self._next = now + CHECK_EVERY_SEC
        return [sentence for bound in self._bound if (sentence := self._restore(bound))]

    def _restore(self, bound: BoundEndpoint) -> str:
        """A sentence where files vanished; the same failure is reported once."""
        former = self._said.pop(bound, "")
        gone = [file for file in bound.files if not os.path.exists(file)]
        if not gone:
            return ""
        try:
            bound.rebind()
        except ConfigError as error:
            self._said[bound] = str(error)
            return "" if former == str(error) else f"{gone[0]} has vanished. {error}"
        return f"{gone[0]} had vanished and was made again: something removes files of running programs there."
