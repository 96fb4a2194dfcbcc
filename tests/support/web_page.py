"""A page of Simul's over HTTP, without a browser."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable

from starlette.types import ASGIApp

from simul.launch.monitoring.page.access import Access
from simul.launch.monitoring.page.web_server import listen, serve
from simul.launch.processes.signals import Signals


class WebPage:
    """A page in a thread of this process, on a port of its own.

    Args:
        make_app: makes the application of what it may be asked for by, and of the signals that end it.
    """

    def __init__(self, make_app: Callable[[Access, Signals], ASGIApp], token: str) -> None:
        self._signals, listener = Signals(), listen("127.0.0.1", 0)
        self.port = listener.getsockname()[1]
        self.host = f"127.0.0.1:{self.port}"
        app = make_app(Access("127.0.0.1", token, self.port), self._signals)
        self._thread = threading.Thread(target=serve, args=(app, listener, self._signals))
        self._thread.start()

    def ask(self, path: str, method: str = "GET", body: str = "", **headers: str) -> tuple[int, dict[str, str], bytes]:
        """(code, headers, content), of a stream its begin."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.putrequest(method, path, skip_host=True)
        sent = {"host": self.host, **headers, **({"content-length": str(len(body))} if body else {})}
        for name, value in sent.items():
            connection.putheader(name, value)
        connection.endheaders(body.encode() or None)
        answer = connection.getresponse()
        data = b"" if answer.headers["content-type"] == "text/event-stream; charset=utf-8" else answer.read()
        while answer.headers["content-type"] == "text/event-stream; charset=utf-8" and b"\n\ndata" not in data:
            data += answer.read1(1000)
        connection.close()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, data

    def close(self) -> None:
        """End it, and its streams."""
        self._signals.stop = True
        self._thread.join(20)
        assert not self._thread.is_alive()
