"""A web service on this machine that takes notices, and refuses them as it is told."""

from __future__ import annotations

import contextlib
import json
import queue
import threading
import time
from collections import deque
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self


class Answer(NamedTuple):
    """What the service answers. `hang`: nothing, until it is closed. `stream_bytes`: a body of zeros instead."""

    status: int = 204
    headers: Mapping[str, str] = {}
    body: bytes = b""
    hang: bool = False
    stream_bytes: int = 0


class Request(NamedTuple):
    """What the service got; `at`: from time.monotonic(), before the answer."""

    path: str
    content_type: str
    body: bytes
    at: float

    def json(self) -> dict[str, Any]:
        """The body of a request without a file."""
        return dict(json.loads(self.body))


class Webhook:
    """`with Webhook(Answer(500)) as hook`: each request gets the next answer, those after the last one get 204."""

    def __init__(self, *answers: Answer, then: Answer = Answer()) -> None:  # noqa: B008
        self._answers = deque(answers)
        self._then = then
        self._requests: queue.Queue[Request] = queue.Queue()
        self._closing = threading.Event()
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                hook._take(self)

            def log_message(self, format: str, *values: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def address(self) -> str:
        """HOST:PORT."""
        return f"127.0.0.1:{self._server.server_port}"

    def next(self) -> Request:
        """The next request; waits for it."""
        return self._requests.get(timeout=120)

    @property
    def quiet(self) -> bool:
        """Whether every request was returned by `next`."""
        return self._requests.empty()

    def _take(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        answer = self._answers.popleft() if self._answers else self._then
        self._requests.put(Request(handler.path, handler.headers["Content-Type"], body, time.monotonic()))
        if answer.hang:
            self._closing.wait()
            return
        handler.send_response(answer.status)
        size = answer.stream_bytes or len(answer.body)
        for name, value in {"Content-Length": str(size), **answer.headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(answer.body)
        with contextlib.suppress(ConnectionError):  # the sender has enough of it
            for _ in range(answer.stream_bytes >> 20):
                handler.wfile.write(bytes(1 << 20))
