"""Figures for Prometheus at 127.0.0.1:PORT/metrics. docs/metrics.md explains each name.

A scrape runs in a thread of its own and reads what a `Collector` holds; it never touches a role's loop.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.registry import Collector

from simul.common.errors import ConfigError

LOOPBACK = "127.0.0.1"
MOST_REQUESTS = 16  # open at a time; the oldest makes room
REQUEST_SEC = 5.0  # for all of a request and its answer


def open_port(port: int, setting: str) -> socket.socket:
    """A listening socket. Raises ConfigError, which names the `setting`, where the port is taken."""
    try:
        return socket.create_server((LOOPBACK, port))
    except OSError as error:
        raise _taken(port, setting, error) from None


def _taken(port: int, setting: str, error: OSError) -> ConfigError:
    return ConfigError(
        f"Figures for Prometheus cannot be served at {LOOPBACK}:{port}: {error.strerror}. "
        f"Choose another {setting}, or 0."
    )


class PrometheusServer:
    """Serves what `collector` collects. Raises ConfigError, which names the `setting`, where the port is taken."""

    def __init__(self, port: int, collector: Collector, setting: str) -> None:
        registry = CollectorRegistry()
        registry.register(collector)
        try:
            self._server = _BoundedServer((LOOPBACK, port), _Handler)
        except OSError as error:
            raise _taken(port, setting, error) from None
        self._server.set_app(make_wsgi_app(registry))
        self._thread = threading.Thread(target=self._server.serve_forever, name="prometheus", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(WSGIRequestHandler):
    """Requests are not logged."""

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


class _BoundedServer(ThreadingMixIn, WSGIServer):
    """A thread for each request, for `MOST_REQUESTS` of them, each `REQUEST_SEC` long at most."""

    daemon_threads = True
    request_queue_size = 128  # with 5, the default, a scrape behind many new connections waits for TCP's retries

    def __init__(self, address: tuple[str, int], handler: type[WSGIRequestHandler]) -> None:
        self._open: dict[socket.socket, float] = {}  # since when, the oldest first
        self._lock = threading.Lock()
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Without WSGIServer's look-up of the machine's name, which may take seconds."""
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = LOOPBACK, self.server_address[1]
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Where there are too many, the oldest one's connection is cut, and its thread ends."""
        with self._lock:
            self._open[request] = time.monotonic()
        self._cut_down(MOST_REQUESTS)
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Twice a second."""
        with self._lock:
            in_time = sum(since >= time.monotonic() - REQUEST_SEC for since in self._open.values())
        self._cut_down(in_time)

    def shutdown_request(self, request: Any) -> None:
        """It is over."""
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A peer that hung up, or was cut off."""

    def _cut_down(self, most: int) -> None:
        with self._lock:
            for request in list(self._open)[: max(0, len(self._open) - most)]:
                del self._open[request]
                with contextlib.suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)
