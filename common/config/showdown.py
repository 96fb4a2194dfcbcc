"""Address of a Showdown server and the user name there, as given on the command line. Pure."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from simul.common.protocol.errors import ConfigError

PATH = "/showdown/websocket"
PUBLIC = "showdown"  # stands for the public server
LOCAL = "local"  # stands for a local server that `simul play` starts
LONGEST_NAME = 18  # Showdown truncates longer names
SCHEMES = {"ws": "ws", "wss": "wss", "http": "ws", "https": "wss"}


def check_server(text: str) -> None:
    """Whether `text` names a server: `showdown`, `local`, HOST:PORT or a URL. Raises ConfigError."""
    if text not in (PUBLIC, LOCAL):
        websocket_url(text)


def websocket_url(text: str) -> str:
    """The URL of HOST:PORT, or of a ws(s):// or http(s):// URL. Raises ConfigError."""
    try:
        parts = urlsplit(text if "://" in text else f"ws://{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if not host or parts.scheme not in SCHEMES or re.search(r"\s", text):
        raise ConfigError(
            f"--server {text!r} is not the address of a Showdown server: expected HOST:PORT, a URL like "
            f"ws://127.0.0.1:8000{PATH}, `{PUBLIC}` for the public one, or `{LOCAL}` for one of our own."
        )
    name = f"[{host}]" if ":" in host else host
    place = name if port is None else f"{name}:{port}"
    path = parts.path if parts.path.strip("/") else PATH
    return f"{SCHEMES[parts.scheme]}://{place}{path}"


def check_name(name: str) -> None:
    """Raises ConfigError where Showdown would refuse or change the name."""
    if len(name) > LONGEST_NAME:
        raise ConfigError(f"--username {name!r} has {len(name)} characters; Showdown takes {LONGEST_NAME} at most.")
    if not re.search(r"[A-Za-z0-9]", name) or re.search(r"[|,\n]", name) or name != name.strip():
        raise ConfigError(f"--username {name!r} is not a Showdown name: expected letters and digits, without | and ,")
