"""Addresses of notices: apprise URLs out of the environment or a private file. They are secrets.

They never enter the configuration, which is copied into run directories, checkpoints and services. No message of this
module shows one; neither does what apprise logs, of which only a status code is kept.
"""

from __future__ import annotations

import http
import importlib.util
import logging
import os
import re
import stat
import sys
from collections.abc import MutableMapping, Sequence
from pathlib import Path
from typing import Any

from simul.common.launch.monitoring.notices import Address, Delivery
from simul.common.protocol.errors import ConfigError

VARIABLE = "SIMUL_NOTIFY"
FILE_VARIABLE = "SIMUL_NOTIFY_FILE"
DEFAULT_FILE = Path("~/.config/simul/notify")
SERVICES = "https://appriseit.com/services/"
PERMANENT = range(400, 500)  # status codes after which another attempt does not help,
TEMPORARY = (408, 425, 429)  # but for these
_BETWEEN = re.compile(r"[\s,]+(?=\w+://)|\s+|,+$")
_SCHEME = re.compile(r"([a-z][a-z0-9]{0,19})://", re.IGNORECASE)
_RETRY_AFTER = re.compile(r"retry_after\W{1,4}(\d+(?:\.\d+)?)")  # in the body of Discord's answer 429
_STATUS = re.compile(r"\berror=(\d{3})\b")


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
            "Run: pip install 'simul[notify]', or remove them."
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
        import apprise

        asset = apprise.AppriseAsset(
            app_id="Simul", app_desc="Simul", app_url="", image_url_mask="", image_url_logo="", secure_logging=True
        )
        scheme = _SCHEME.match(url)
        service = apprise.Apprise.instantiate(url, asset=asset)
        if service is None:
            begin = f"begins with {scheme[0]}" if scheme else "does not begin with the name of one, such as discord://"
            raise ConfigError(
                f"{source}: apprise knows no service for address {number} of {count}, which {begin}, or lacks a "
                f"package for it. {SERVICES} lists the services and the form of their addresses."
            )
        self.name = f"{scheme[1] if scheme else 'apprise'} (address {number} of notices)"
        self._service: Any = service
        self._log = _Log()
        self._service.logger = logging.Logger("apprise", logging.DEBUG)  # of this instance: passes nothing on
        self._service.logger.addHandler(self._log)

    def deliver(self, title: str, text: str, severity: str, picture: bytes) -> Delivery:
        """See `Address`. A text that arrived without its picture is not sent again."""
        from apprise import AppriseAttachment
        from apprise.attachment.memory import AttachMemory

        attach = None
        if picture and self._service.attachment_support:
            attach = AppriseAttachment()
            attach.add(AttachMemory(content=picture, name="curves.png", mimetype="image/png"))
        self._log.records.clear()
        failed = ""
        try:
            if self._service.notify(body=text, title=title, notify_type=severity, attach=attach, body_format="text"):
                return Delivery()
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything, with its URL in the message
            failed = f" ({type(error).__name__})"
        lines = [record.getMessage() for record in self._log.records]
        problem, code = _why(lines)
        waits = [float(found[1]) for line in lines if (found := _RETRY_AFTER.search(line))]
        sent = any(record.levelno == logging.INFO for record in self._log.records)
        if attach is not None and sent:
            return Delivery(f"the text arrived, its picture did not: {problem}{failed}", final=True)
        final = code in PERMANENT and code not in TEMPORARY
        return Delivery(problem + failed, final, waits[-1] if waits else 0.0)


class _Log(logging.Handler):
    """Keeps what apprise logs while it sends; nothing of it is printed."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Called by logging."""
        self.records.append(record)


def _why(lines: Sequence[str]) -> tuple[str, int]:
    """(words, status code or 0) of what apprise logged. Only the code is taken from there: texts may name the URL."""
    codes = [int(found[1]) for line in lines if (found := _STATUS.search(line))]
    if not codes:
        return "no connection, or no answer in time", 0
    try:
        phrase = f" {http.HTTPStatus(codes[-1]).phrase}"
    except ValueError:
        phrase = ""
    return f"it was refused with HTTP {codes[-1]}{phrase}", codes[-1]
