"""poke-env's server and account objects from command-line text. Pure."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from poke_env import AccountConfiguration, ServerConfiguration, ShowdownServerConfiguration

from simul.common.config.games.pokemon import PUBLIC, check_name, websocket_url


def server_at(text: str) -> ServerConfiguration:
    """The server of `showdown`, HOST:PORT, or a ws(s):// or http(s):// URL. Raises ConfigError."""
    if text == PUBLIC:
        return ShowdownServerConfiguration
    return ServerConfiguration(websocket_url(text), ShowdownServerConfiguration.authentication_url)


def is_local(server: ServerConfiguration) -> bool:
    """Whether the server is on this machine: usually one without rate limits."""
    host = urlsplit(server.websocket_url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def account(name: str, password: str | None) -> AccountConfiguration:
    """The account called `name`. Raises ConfigError where Showdown would change or refuse the name."""
    check_name(name)
    return AccountConfiguration(name, password)
