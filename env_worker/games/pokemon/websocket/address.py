"""Where a Showdown server is and who we are there, from what a person typed. Pure."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from poke_env import AccountConfiguration, ServerConfiguration, ShowdownServerConfiguration

from common.errors import ConfigError

PATH = "/showdown/websocket"
PUBLIC = "showdown"  # stands for the public server
LONGEST_NAME = 18  # Showdown cuts longer ones, and would then know us by another name
SCHEMES = {"ws": "ws", "wss": "wss", "http": "ws", "https": "wss"}


def server_at(text: str) -> ServerConfiguration:
    """The server of `showdown`, HOST:PORT, or a ws(s):// or http(s):// URL. Raises ConfigError."""
    if text == PUBLIC:
        return ShowdownServerConfiguration
    try:
        parts = urlsplit(text if "://" in text else f"ws://{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if not host or parts.scheme not in SCHEMES or re.search(r"\s", text):
        raise ConfigError(
            f"--server {text!r} is no address of a Showdown server: expected HOST:PORT, a URL like "
            f"ws://127.0.0.1:8000{PATH}, `{PUBLIC}` for the public one, or `local` for one of our own."
        )
    name = f"[{host}]" if ":" in host else host
    place = name if port is None else f"{name}:{port}"
    path = parts.path if parts.path.strip("/") else PATH
    url = f"{SCHEMES[parts.scheme]}://{place}{path}"
    return ServerConfiguration(url, ShowdownServerConfiguration.authentication_url)


def is_local(server: ServerConfiguration) -> bool:
    """Whether the server is on this machine: one without limits on messages, as a rule."""
    host = urlsplit(server.websocket_url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def account(name: str, password: str | None) -> AccountConfiguration:
    """The account called `name`. Raises ConfigError where Showdown would not take the name as it is."""
    if len(name) > LONGEST_NAME:
        raise ConfigError(f"--username {name!r} has {len(name)} characters; Showdown takes {LONGEST_NAME} at most.")
    if not re.search(r"[A-Za-z0-9]", name) or re.search(r"[|,\n]", name) or name != name.strip():
        raise ConfigError(f"--username {name!r} is no name for Showdown: expected letters and digits, without | and ,")
    return AccountConfiguration(name, password)
