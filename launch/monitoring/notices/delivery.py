"""`python -m simul.launch.monitoring.notices.delivery`: sends one notice through apprise, and ends.

apprise reads whole answers. In a process of its own, whose memory is limited, an answer without an end costs one notice
and not the run. The request comes on standard input, as its address is a secret and arguments can be seen by other
users; the `Delivery` leaves on standard output.
"""

from __future__ import annotations

import http
import logging
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from simul.common.runtime.parent_watch import end_with
from simul.launch.monitoring.notices.notifier import Delivery

MEMORY_BYTES = 512 * 2**20  # address space; Python with apprise takes about 60 MiB, its largest services 200
PERMANENT = range(300, 500)  # status codes after which another attempt does not help,
TEMPORARY = (408, 425, 429)  # but for these
_RETRY_AFTER = re.compile(r"retry_after\W{1,4}(\d+(?:\.\d+)?)")  # in the body of Discord's answer 429
_STATUS = re.compile(r"\berror=(\d{3})\b")


class DeliveryRequest(msgspec.Struct):
    """One notice. `url`: of apprise; `picture`: a PNG, b"" for none; `parent`: PID that this process ends with."""

    url: str
    title: str
    text: str
    severity: str
    picture: bytes
    parent: int


def main() -> int:
    """Exit code 0: the delivery was written, whatever its outcome."""
    answer = os.dup(1)
    os.dup2(2, 1)  # what a service prints
    request = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=DeliveryRequest)
    end_with(request.parent)
    _limit_memory()
    data = msgspec.msgpack.encode(deliver(request))
    os.write(answer, data)
    return 0


def _limit_memory() -> None:
    """Not on Windows, which has no such limit; macOS takes it and does not enforce it."""
    if sys.platform != "win32":
        import resource

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        limit = MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(MEMORY_BYTES, hard)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def open_service(url: str) -> Any:
    """The service of an apprise URL, which follows no redirect unless the URL says so; None where none knows it."""
    import apprise

    asset = apprise.AppriseAsset(
        app_id="Simul", app_desc="Simul", app_url="", image_url_mask="", image_url_logo="", secure_logging=True,
        http_redirects=False,
    )  # fmt: skip
    return apprise.Apprise.instantiate(url, asset=asset)


def deliver(request: DeliveryRequest) -> Delivery:
    """Send, and wait for the answer. A text that arrived without its picture is not sent again."""
    from apprise import AppriseAttachment
    from apprise.attachment.memory import AttachMemory

    service, log = open_service(request.url), _Log()
    service.logger = logging.Logger("apprise", logging.DEBUG)  # of this instance: passes nothing on
    service.logger.addHandler(log)
    attach = None
    if request.picture and service.attachment_support:
        attach = AppriseAttachment()
        attach.add(AttachMemory(content=request.picture, name="curves.png", mimetype="image/png"))
    failed = ""
    try:
        if service.notify(
            body=request.text, title=request.title, notify_type=request.severity, attach=attach, body_format="text"
        ):
            return Delivery()
    except MemoryError:
        return Delivery(f"its answer is larger than {MEMORY_BYTES >> 20} MiB; the notice may have arrived", final=True)
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything, with its URL in the message
        failed = f" ({type(error).__name__})"
    lines = [record.getMessage() for record in log.records]
    problem, code = _why(lines)
    waits = [float(found[1]) for line in lines if (found := _RETRY_AFTER.search(line))]
    sent = any(record.levelno == logging.INFO for record in log.records)
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
    code = codes[-1]
    try:
        phrase = f" {http.HTTPStatus(code).phrase}"
    except ValueError:
        phrase = ""
    if code in range(300, 400):
        return f"it answered with a redirect, HTTP {code}{phrase}, which is not followed; correct its address", code
    return f"it was refused with HTTP {code}{phrase}", code


if __name__ == "__main__":
    sys.exit(main())
