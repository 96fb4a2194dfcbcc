"""Addresses of notices: apprise URLs out of the environment or a private file. They are secrets.

They never enter the configuration, which is copied into run directories, checkpoints and services. No message of this
module shows one. `delivery.py` sends, in a process of its own.
"""

from __future__ import annotations

import importlib.util
import os
import re
import stat
import subprocess
import sys
from collections.abc import MutableMapping
from pathlib import Path

import msgspec

from simul.common.errors import ConfigError
from simul.common.runtime.decode_errors import DECODE_ERRORS
from simul.common.runtime.extras import install_extra
from simul.launch.monitoring.notices.delivery import DeliveryRequest, open_service
from simul.launch.monitoring.notices.notifier import Address, Delivery
from simul.launch.processes.role_process import kill_session, role_environment

VARIABLE = "SIMUL_NOTIFY"
FILE_VARIABLE = "SIMUL_NOTIFY_FILE"
DEFAULT_FILE = Path("~/.config/simul/notify")
SERVICES = "https://appriseit.com/services/"
SENDER = (sys.executable, "-P", "-m", "simul.launch.monitoring.notices.delivery")
SEND_SEC = 20.0  # limit of one attempt, the start of its process included
_BETWEEN = re.compile(r"[\s,]+(?=\w+://)|\s+|,+$")
_SCHEME = re.compile(r"([a-z][a-z0-9]{0,19})://", re.IGNORECASE)


def open_addresses(environment: MutableMapping[str, str] | None = None) -> list[Address]:
    """The addresses of this user's notices, checked; [] where none are set.

    Args:
        environment: os.environ by default. VARIABLE is removed from it: no process that is started later inherits it.

    Raises:
        ConfigError: the file can be read by others or not at all, apprise is missing, or does not know an address.
    """
    environment = os.environ if environment is None else environment
    source, urls = _read(environment)
    if not urls:
        return []
    if importlib.util.find_spec("apprise") is None:
        raise ConfigError(
            f"{source} has addresses for notices, but the package apprise is not installed. "
            f"Remove them, or run: {install_extra('notify')}"
        )
    return [_AppriseAddress(url, number, len(urls), source) for number, url in enumerate(urls, 1)]


def _read(environment: MutableMapping[str, str]) -> tuple[str, list[str]]:
    """(where they come from, URLs). The variable, even an empty one, goes before the file."""
    text = environment.pop(VARIABLE, None)
    if text is not None:
        return VARIABLE, _split(text)
    named = environment.get(FILE_VARIABLE)
    file = (Path(named) if named else DEFAULT_FILE).expanduser()
    try:
        with file.open(encoding="utf-8") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            if sys.platform != "win32" and mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise ConfigError(
                    f"{file} holds secrets, and others may read it (mode {stat.S_IMODE(mode):04o}; expected 0600). "
                    f"Run: chmod 600 {file}"
                )
            lines = [line for line in opened if not line.lstrip().startswith("#")]
    except FileNotFoundError:
        if not named:
            return "", []
        raise ConfigError(
            f"{FILE_VARIABLE} names {file}, which does not exist. Write the addresses there, or unset {FILE_VARIABLE}."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"{file}, the addresses of notices, cannot be read: {why}.") from None
    return str(file), [url for line in lines for url in _split(line)]


def _split(text: str) -> list[str]:
    """URLs between spaces or commas; a comma within a URL does not end it unless another one follows."""
    return [url for url in _BETWEEN.split(text.strip()) if url]


class _AppriseAddress:
    """One URL. `number` of `count`: its place in `source`, for sentences. Raises ConfigError."""

    def __init__(self, url: str, number: int, count: int, source: str) -> None:
        scheme = _SCHEME.match(url)
        if open_service(url) is None:
            begin = f"begins with {scheme[0]}" if scheme else "does not begin with the name of one, such as discord://"
            raise ConfigError(
                f"{source}: apprise knows no service for address {number} of {count}, which {begin}, or lacks a "
                f"package for it. {SERVICES} lists the services and the form of their addresses."
            )
        self.name = f"{scheme[1] if scheme else 'apprise'} (address {number} of notices)"
        self._url = url

    def deliver(self, title: str, text: str, severity: str, picture: bytes) -> Delivery:
        """See `Address`. A process of its own sends, which is killed after SEND_SEC."""
        request = DeliveryRequest(self._url, title, text, severity, picture, os.getpid())
        with subprocess.Popen(
            SENDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=role_environment(1),
            start_new_session=sys.platform != "win32",
        ) as process:  # fmt: skip
            try:
                answer, _ = process.communicate(msgspec.msgpack.encode(request), timeout=SEND_SEC)
            except subprocess.TimeoutExpired:
                kill_session(process)
                return Delivery(f"no answer within {SEND_SEC:g} s")
        try:
            return msgspec.msgpack.decode(answer, type=Delivery)
        except DECODE_ERRORS:
            return Delivery(f"the process that sends it failed (exit code {process.returncode})")
