"""Which endpoints may be bound, and who owns one. Knows no zmq."""

from __future__ import annotations

import os
import sys
from ipaddress import ip_address
from pathlib import Path
from typing import Literal

from simul.common.protocol.errors import ConfigError

if sys.platform != "win32":
    import fcntl

IpcAccess = Literal["owner", "group", "everyone"]  # who may connect to an ipc socket
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_EVERYWHERE = {"*": "127.0.0.1", "0.0.0.0": "127.0.0.1", "[::]": "[::1]"}


def check_endpoint(endpoint: str, *, curve: bool = False) -> None:
    """Refuse to bind where a stranger could reach us; `curve`: keys keep strangers out. Raises ConfigError."""
    if endpoint.startswith("ipc://"):
        return
    if not endpoint.startswith("tcp://"):
        raise ConfigError(f"The endpoint {endpoint} is of no known kind: expected ipc://PATH or tcp://ADDRESS:PORT.")
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
    """The endpoint to connect to, on this machine, where `endpoint` is bound."""
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


def files_of(endpoint: str) -> tuple[str, ...]:
    """The socket and its lock, where a bound endpoint has files; an abstract ipc name (`@`) has none."""
    path = endpoint.removeprefix("ipc://")
    return (path, f"{path}.lock") if endpoint.startswith("ipc://") and os.path.exists(path) else ()


def make_folder_of(endpoint: str) -> None:
    """The folder of an ipc path, for its owner only. Raises ConfigError."""
    try:
        Path(endpoint.removeprefix("ipc://")).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"The endpoint {endpoint} cannot be made: {error.strerror}.") from None


def lock_ipc(endpoint: str) -> int:
    """Binding an ipc path silently takes it from whoever has it; a lock beside it says who owns it."""
    if sys.platform == "win32" or not endpoint.startswith("ipc://"):
        return -1
    path = Path(endpoint.removeprefix("ipc://"))
    try:
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(
            f"The endpoint {endpoint} cannot be made: {error.strerror}. "
            "Choose another endpoint or run directory (--run-dir), or mend its permissions."
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
