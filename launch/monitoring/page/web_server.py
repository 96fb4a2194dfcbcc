"""What every page of Simul's has in common: its socket and server, whom it answers, its login, and its fixed files."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import h11
import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from simul.common.errors import ConfigError
from simul.launch.monitoring.page.access import Access, is_same_origin
from simul.launch.processes.signals import Signals

MOST_CONNECTIONS = 64
MOST_BODY_BYTES = 1000
WRONG_TOKEN_SEC = 0.5
REQUEST_SEC = 5.0
STATIC = Path(__file__).with_name("static")
FileTypes = Mapping[str, tuple[Path, str]]  # by the path of a URL: a file and its media type
PICTURE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "object-src 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class _NumberConvertor(IntegerConvertor):
    """`{name:number}` in a route. Starlette's `int` takes any number of digits, of which Python reads 4,300."""

    regex = "[0-9]{1,10}"


register_url_convertor("number", _NumberConvertor())


def file_routes(files: FileTypes) -> list[Route]:
    """Routes of files that are read once."""
    contents = {path: (file.read_bytes(), kind) for path, (file, kind) in files.items()}

    async def answer(request: Request) -> Response:
        content, kind = contents[request.url.path]
        return Response(content, media_type=kind)

    return [Route(path, answer) for path in files]


def picture(svg: str) -> Response:
    """A picture, which is no document of the page: it runs and loads nothing, also where it is opened alone."""
    return Response(svg, media_type="image/svg+xml", headers={"Content-Security-Policy": PICTURE_POLICY})


async def posted_text(request: Request) -> str | Response:
    """The text that the page itself has sent, or the answer to one of others."""
    if not is_same_origin(request.headers.get("origin", ""), request.headers.get("host", "")):
        return PlainTextResponse("That comes from another page.\n", 403)
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_BODY_BYTES:
            return PlainTextResponse(f"At most {MOST_BODY_BYTES} bytes.\n", 413)
    return body.decode(errors="replace")


class Login:
    """`/login`: GET says whether the browser is admitted, POST takes the token and gives a cookie for it."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def routes(self) -> list[Route]:
        """Both methods."""
        return [Route("/login", self._state), Route("/login", self._log_in, methods=["POST"])]

    def admitted(self, request: Request) -> bool:
        """Whether the browser may read what is not public."""
        return self._access.admits(request.cookies.get(self._access.cookie, ""))

    async def _state(self, request: Request) -> Response:
        return Response(msgspec.json.encode(self.admitted(request)), media_type="application/json")

    async def _log_in(self, request: Request) -> Response:
        token = await posted_text(request)
        if isinstance(token, Response):
            return token
        if not self._access.accepts(token):
            await asyncio.sleep(WRONG_TOKEN_SEC)
            return PlainTextResponse("That is not the token.\n", 401)
        response = Response(status_code=204)
        response.set_cookie(self._access.cookie, self._access.session, httponly=True, samesite="strict")
        return response


NOT_ADMITTED = "The page asks for its token.\n"
NOT_FOUND = "The page has nothing at this address.\n"


class Guard:
    """Refuses requests by another host's name, and adds HEADERS to every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI asks for."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        app = self._app
        if scope["type"] == "http" and not self._access.knows_host(Headers(scope=scope).get("host", "")):
            app = PlainTextResponse("The page is not known by this name: ask for it by the address it printed.\n", 400)
        await app(scope, receive, send_with_headers)


def make_guarded_app(routes: Sequence[Route], access: Access) -> ASGIApp:
    """The ASGI application of a page."""
    return Guard(Starlette(routes=routes, exception_handlers={404: _not_found}), access)


async def _not_found(request: Request, error: Exception) -> Response:
    return PlainTextResponse(NOT_FOUND, 404)


class _Server(uvicorn.Server):
    """Ends where `Signals` say so."""

    signals: Signals

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def on_tick(self, counter: int) -> bool:
        return self.signals.stop or await super().on_tick(counter)


class _Connection(H11Protocol):
    """Closes a connection that keeps the server waiting for REQUEST_SEC: such connections would take every place.

    uvicorn limits the time between two requests alone.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._seen: tuple[object, object] = h11.IDLE, None
        self._timer = self.loop.call_later(REQUEST_SEC, self._close_where_silent)

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def _close_where_silent(self) -> None:
        seen = self.conn.their_state, getattr(self, "cycle", None)
        if seen[0] in (h11.IDLE, h11.SEND_BODY) and seen == self._seen:
            self.transport.close()
            return
        self._seen = seen
        self._timer = self.loop.call_later(REQUEST_SEC, self._close_where_silent)


def listen(host: str, port: int, option: str = "--port") -> socket.socket:
    """A listening socket; `option` names the port. Raises ConfigError: no such address, or the port is taken."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise ConfigError(_no_own_address(host, getattr(error, "strerror", None) or "no name of a machine")) from None
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(64)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise ConfigError(_no_own_address(host, error.strerror or "not one of its own")) from None
        hint = f"Choose another one with {option} (0: a free one)." if port else "Choose another --host."
        raise ConfigError(f"Port {port} of {host} cannot be opened: {error.strerror}. {hint}") from None
    return listener


def _no_own_address(host: str, why: str) -> str:
    return f"--host {host}: no address of this machine ({why}). Name one of its own, or 0.0.0.0 for all of them."


def serve(app: ASGIApp, listener: socket.socket, signals: Signals) -> None:
    """Until a signal."""
    config = uvicorn.Config(
        app, log_level="critical", access_log=False, server_header=False, ws="none", lifespan="off", loop="asyncio",
        http=_Connection, timeout_graceful_shutdown=3, limit_concurrency=MOST_CONNECTIONS, proxy_headers=False,
    )  # fmt: skip
    server = _Server(config)
    server.signals = signals
    server.run(sockets=[listener])
