"""Who may read the page: the names under which it is asked for, the token, and its cookie. Pure."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket

from simul.common.role.run_directory import is_run_token

LOCAL_NAMES = frozenset({"localhost", "ip6-localhost", "localhost.localdomain"})


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address or name."""
    address = _address(host)
    return host.lower() in LOCAL_NAMES if address is None else address.is_loopback


class Access:
    """What a request must show. Without a token everybody may read who reaches the port.

    Args:
        host: the address or name that is listened at; the page is asked for by it, by numbers, or by this machine's
            name. Any other name may be one that an attacker made to mean this machine (DNS rebinding).
        token: "" for none.
    """

    def __init__(self, host: str, token: str, port: int) -> None:
        self.token = token
        self.cookie = f"simul-page-{port}"  # cookies know no port
        self.session = secrets.token_urlsafe(32)
        self._loopback = is_loopback(host)
        self._names = LOCAL_NAMES if self._loopback else LOCAL_NAMES | {host, socket.gethostname(), socket.getfqdn()}

    def knows_host(self, header: str) -> bool:
        """Whether the page may be asked for by this Host header."""
        name = host_of(header)
        address = _address(name)
        if address is not None:
            return address.is_loopback or not self._loopback
        return name.lower() in {known.lower() for known in self._names}

    def admits(self, cookie: str) -> bool:
        """Whether a request with this cookie may read the runs."""
        return not self.token or hmac.compare_digest(cookie.encode(), self.session.encode())

    def accepts(self, token: str) -> bool:
        """Whether this is the token, compared in constant time."""
        return is_run_token(token, self.token)


def host_of(header: str) -> str:
    """Without the port; `[::1]:80` is `::1`."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.rpartition(":")[0] if header.rpartition(":")[2].isdecimal() and ":" in header else header


def is_same_origin(origin: str, host: str) -> bool:
    """Whether an Origin header names the page itself. Browsers send one with every POST."""
    return origin in (f"http://{host}", f"https://{host}")


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
