"""CURVE: encryption, and which clients may connect to an endpoint that other machines reach.

DIR/server.key, DIR/server.key_secret     the server's pair; clients need the public one
DIR/client.key, DIR/client.key_secret     a client's pair
DIR/allowed/*.key                         public keys that the server accepts; read at every handshake
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec
import zmq
from zmq.auth import create_certificates, load_certificate
from zmq.auth.thread import ThreadAuthenticator

from simul.common.errors import ConfigError

ZAP_DOMAIN = b"simul"
ALLOWED = "allowed"
CLIENT = "client"  # the pair of those who connect


class ClientKeys(msgspec.Struct, frozen=True):
    """A client's own key pair and the server's public key, which authenticates the server. Z85 text."""

    server: bytes
    public: bytes
    secret: bytes

    def apply(self, socket: zmq.Socket[bytes]) -> None:
        """Set the keys on a socket, before `connect`."""
        socket.curve_serverkey = self.server
        socket.curve_publickey = self.public
        socket.curve_secretkey = self.secret


class ServerKeys(msgspec.Struct, frozen=True):
    """The server's pair (Z85 text) and the folder of the public keys that it accepts."""

    public: bytes
    secret: bytes
    allowed: Path


class CurveAuthenticator:
    """ZAP handler that accepts the listed public keys only. CURVE fails closed.

    libzmq asks over an endpoint of the socket's context, so every protected socket needs its own context.
    ZAP_ENFORCE_DOMAIN rejects peers while the handler does not answer; without it libzmq would accept all of them.
    """

    def __init__(self, keys: ServerKeys) -> None:
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._keys = keys
        self._authenticator = ThreadAuthenticator(self.context)
        self._authenticator.start()
        self._authenticator.configure_curve_callback(domain=ZAP_DOMAIN.decode(), credentials_provider=self)

    def protect(self, socket: zmq.Socket[bytes]) -> None:
        """Require CURVE and a listed key on a socket, before `bind`."""
        socket.curve_server = True
        socket.curve_publickey = self._keys.public
        socket.curve_secretkey = self._keys.secret
        socket.zap_domain = ZAP_DOMAIN
        socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)

    def callback(self, domain: str, key: bytes) -> bool:
        """True if this public key (Z85) is listed. pyzmq calls it at every handshake."""
        return any(_public(path) == key for path in self._keys.allowed.glob("*.key"))

    def stop_answering(self) -> None:
        """Stop the handler: every later handshake is rejected."""
        self._authenticator.stop()

    def close(self) -> None:
        """Stop the handler and its context, after the protected socket is closed."""
        self._authenticator.stop()
        self.context.term()


def server_keys(folder: Path, name: str = "server") -> ServerKeys:
    """The keys in `folder` of the process that binds, the inference server by default. Raises ConfigError."""
    public, secret = _pair(folder / f"{name}.key_secret")
    return ServerKeys(public, secret, folder / ALLOWED)


def client_keys(folder: Path, name: str = CLIENT, server: str = "server") -> ClientKeys:
    """The pair of client `name` and the public key of `server` in `folder`. Raises ConfigError."""
    file = folder / f"{server}.key"
    key = _public(file)
    if not key:
        raise ConfigError(f"{file} is not a server's public key: copy it from the folder that `simul keys new` made.")
    return ClientKeys(key, *_pair(folder / f"{name}.key_secret"))


def new_run_keys(folder: Path, names: Iterable[str]) -> None:
    """Make the pair of each name in a new `folder`, mode 0700, and allow the pair CLIENT. Raises OSError."""
    before = os.umask(0o077)
    try:
        (folder / ALLOWED).mkdir(parents=True)
        for name in names:
            create_certificates(folder, name)
        shutil.copyfile(folder / f"{CLIENT}.key", folder / ALLOWED / f"{CLIENT}.key")
    finally:
        os.umask(before)


def new_keys(folder: Path, name: str = "client") -> list[Path]:
    """Make the server's pair, unless it is there, and the pair of client `name`, and allow that client.

    Returns:
        The files written; secret ones can be read by their owner only.

    Raises:
        ConfigError: the client has keys already, or the folder cannot be written.
    """
    if not name.replace("-", "").replace("_", "").isalnum() or name == "server":
        raise ConfigError(f"A client cannot be called {name!r}: expected letters, digits, - and _, and not `server`.")
    if (folder / f"{name}.key_secret").exists():
        raise ConfigError(f"{folder} has keys of {name} already; choose another folder, or another --client NAME.")
    before = os.umask(0o077)
    try:
        (folder / ALLOWED).mkdir(parents=True, exist_ok=True)
        wanted = [who for who in ("server", name) if not (folder / f"{who}.key_secret").exists()]
        written = [Path(file) for who in wanted for file in create_certificates(folder, who)]
        written.append(Path(shutil.copyfile(folder / f"{name}.key", folder / ALLOWED / f"{name}.key")))
    except OSError as error:
        raise ConfigError(f"The keys cannot be written to {folder}: {error.strerror}.") from None
    finally:
        os.umask(before)
    return written


def _public(path: Path) -> bytes:
    """The public key in a file; empty where there is none, which matches no client."""
    try:
        return load_certificate(path)[0]
    except (OSError, ValueError):
        return b""


def _pair(path: Path) -> tuple[bytes, bytes]:
    public: bytes | None = None
    secret: bytes | None = None
    try:
        if sys.platform != "win32" and path.stat().st_mode & 0o077:
            raise ConfigError(f"Others can read the secret key {path}: run `chmod 600 {path}`.")
        public, secret = load_certificate(path)
    except (OSError, ValueError):
        secret = None
    if not public or not secret:
        raise ConfigError(f"There is no secret key in {path}: make keys with `simul keys new {path.parent}`.")
    return public, secret
