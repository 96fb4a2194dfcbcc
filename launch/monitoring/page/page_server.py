"""The process behind the page: a few fixed files, one stream of events for each browser, plots, and a login."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from simul.common.errors import ConfigError
from simul.common.runtime.installation import ROOT
from simul.launch.monitoring.page.access import Access, is_same_origin
from simul.launch.monitoring.page.feed import Feed
from simul.launch.monitoring.page.replays import Frame, ReplayKey, battle_lines, replay_frames, replay_key
from simul.launch.monitoring.page.watched_run import WatchedRun
from simul.launch.processes.signals import Signals

POLL_SEC = 0.5
SIGN_OF_LIFE_SEC = 10.0  # a comment in the stream: either side notices that the other is gone
MOST_BROWSERS = 32
MOST_LOGIN_BYTES = 1000
WRONG_TOKEN_SEC = 0.5
STATIC = Path(__file__).with_name("static")
FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/replay": ("replay.html", "text/html; charset=utf-8"),
    "/static/replay.js": ("replay.js", "text/javascript"),
    "/static/battle.js": ("battle.js", "text/javascript"),
    "/static/icon.svg": ("icon.svg", "image/svg+xml"),
    "/static/page.css": ("page.css", "text/css"),
    "/static/page.js": ("page.js", "text/javascript"),
    "/static/charts.js": ("charts.js", "text/javascript"),
    "/static/uplot/uPlot.min.css": ("uplot/uPlot.min.css", "text/css"),
    "/static/uplot/uPlot.iife.min.js": ("uplot/uPlot.iife.min.js", "text/javascript"),
}
MOST_REPLAYS = 4  # kept
PICTURE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
# The player of the replays that the workers write: its template, and what the template names.
BATTLE = ROOT / "env_worker" / "games" / "pokemon" / "replays"
BATTLE_FILES = {
    "/static/battle/page.css": ("page.css", "text/css"),
    "/static/battle/player.mjs": ("player.mjs", "text/javascript"),
    "/static/battle/battle_log.mjs": ("battle_log.mjs", "text/javascript"),
}
BATTLE_FIELDS = {
    "{{TITLE}}": "Simul: battle",
    "{{HEAD}}": '<link rel="icon" href="/static/icon.svg"><link rel="stylesheet" href="/static/battle/page.css">',
    "{{SCRIPTS}}": '<script src="/static/battle.js"></script>',
}
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "object-src 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class _Watch:
    """The runs, polled at most every POLL_SEC, in a thread, and only while a browser asks."""

    def __init__(self, runs: Sequence[WatchedRun]) -> None:
        self.runs = runs
        self.browsers = 0
        self._lock = asyncio.Lock()
        self._polled_at = float("-inf")

    async def messages(self, feed: Feed) -> list[bytes]:
        """Poll if that is due. Returns what the feed has to send, as JSON."""
        async with self._lock:
            now = time.monotonic()
            if now - self._polled_at >= POLL_SEC / 2:
                await asyncio.to_thread(self._poll, now)
                self._polled_at = time.monotonic()
            return [msgspec.json.encode(message) for message in feed.take(now)]

    def _poll(self, now: float) -> None:
        for run in self.runs:
            run.poll(now)


class _Pages:
    """The handlers of the routes."""

    def __init__(self, runs: Sequence[WatchedRun], access: Access, signals: Signals) -> None:
        self._watch = _Watch(runs)
        self._access = access
        self._signals = signals
        self._replays: dict[ReplayKey, list[Frame]] = {}
        self._replaying = asyncio.Lock()  # one process at a time
        self._files = {
            path: (folder.joinpath(name).read_bytes(), kind)
            for folder, files in ((STATIC, FILES), (BATTLE, BATTLE_FILES))
            for path, (name, kind) in files.items()
        }
        self._files["/battle"] = (_battle_page(), "text/html; charset=utf-8")

    def routes(self) -> list[Route]:
        return [
            *(Route(path, self._file) for path in self._files),
            Route("/events", self._events),
            Route("/runs/{place:int}/{name:str}", self._picture),
            Route("/runs/{place:int}/replays/{name:str}", self._replay),
            Route("/runs/{place:int}/replays/{name:str}/{frame:int}.svg", self._frame),
            Route("/login", self._is_admitted),
            Route("/login", self._login, methods=["POST"]),
        ]

    async def _file(self, request: Request) -> Response:
        content, kind = self._files[request.url.path]
        return Response(content, media_type=kind)

    async def _events(self, request: Request) -> Response:
        if not self._admitted(request):
            return PlainTextResponse("The page asks for its token.\n", 401)
        if self._watch.browsers >= MOST_BROWSERS:
            return PlainTextResponse(f"{MOST_BROWSERS} browsers watch already.\n", 503)
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        return StreamingResponse(self._stream(), media_type="text/event-stream")

    async def _stream(self) -> AsyncIterator[bytes]:
        feed, spoken_at = Feed(self._watch.runs, time.monotonic()), 0.0
        self._watch.browsers += 1
        try:
            yield b"retry: 1000\n\n"
            while True:
                ends = self._signals.stop  # what a run that ends wrote last is sent, too
                for message in await self._watch.messages(feed):
                    spoken_at = time.monotonic()
                    yield b"data: " + message + b"\n\n"
                if ends:
                    return
                if time.monotonic() - spoken_at > SIGN_OF_LIFE_SEC:
                    spoken_at = time.monotonic()
                    yield b": alive\n\n"
                await self._pause()
        finally:
            self._watch.browsers -= 1

    async def _pause(self) -> None:
        deadline = time.monotonic() + POLL_SEC
        while time.monotonic() < deadline and not self._signals.stop:
            await asyncio.sleep(0.1)

    async def _picture(self, request: Request) -> Response:
        if not self._admitted(request):
            return PlainTextResponse("The page asks for its token.\n", 401)
        place, name = request.path_params["place"], request.path_params["name"]
        try:
            data = await asyncio.to_thread(self._watch.runs[place].picture, name)
        except (IndexError, OSError):
            return PlainTextResponse("There is no such plot.\n", 404)
        return Response(data, media_type="image/png")

    async def _replay(self, request: Request) -> Response:
        """Text and words of every frame; a picture is asked for alone."""
        if not self._admitted(request):
            return PlainTextResponse("The page asks for its token.\n", 401)
        try:
            if request.path_params["name"].endswith(".log"):
                return await self._battle(request)
            frames = await self._frames(request)
        except (IndexError, OSError):
            return PlainTextResponse("There is no such replay.\n", 404)
        except ConfigError as error:
            return PlainTextResponse(f"{error}\n", 422)
        shown = [{"text": frame.text, "picture": bool(frame.svg), "said": frame.said} for frame in frames]
        return Response(msgspec.json.encode(shown), media_type="application/json")

    async def _battle(self, request: Request) -> Response:
        """The log of a battle, which the player reads, as an array of lines. Raises IndexError, OSError."""
        root = self._watch.runs[request.path_params["place"]].root
        key = await asyncio.to_thread(replay_key, root, request.path_params["name"])
        lines = await asyncio.to_thread(battle_lines, key.path)
        return Response(msgspec.json.encode(lines), media_type="application/json")

    async def _frame(self, request: Request) -> Response:
        """A picture, which is no document of the page: it runs and loads nothing, also where it is opened alone."""
        if not self._admitted(request):
            return PlainTextResponse("The page asks for its token.\n", 401)
        try:
            svg = (await self._frames(request))[request.path_params["frame"]].svg
        except (IndexError, OSError, ConfigError):
            return PlainTextResponse("There is no such picture.\n", 404)
        return Response(svg, media_type="image/svg+xml", headers={"Content-Security-Policy": PICTURE_POLICY})

    async def _frames(self, request: Request) -> list[Frame]:
        """Raises IndexError, OSError: there is no such replay; ConfigError: it cannot be played again."""
        run = self._watch.runs[request.path_params["place"]]
        async with self._replaying:
            key = await asyncio.to_thread(replay_key, run.root, request.path_params["name"])
            if key not in self._replays:
                frames = await asyncio.to_thread(replay_frames, key.path)
                self._replays = {**dict(list(self._replays.items())[1 - MOST_REPLAYS :]), key: frames}
            return self._replays[key]

    async def _is_admitted(self, request: Request) -> Response:
        return Response(msgspec.json.encode(self._admitted(request)), media_type="application/json")

    async def _login(self, request: Request) -> Response:
        if not is_same_origin(request.headers.get("origin", ""), request.headers.get("host", "")):
            return PlainTextResponse("A login comes from the page itself.\n", 403)
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > MOST_LOGIN_BYTES:
                return PlainTextResponse("A token is shorter.\n", 413)
        if not self._access.accepts(body.decode(errors="replace")):
            await asyncio.sleep(WRONG_TOKEN_SEC)
            return PlainTextResponse("That is not the token.\n", 401)
        response = Response(status_code=204)
        response.set_cookie(self._access.cookie, self._access.session, httponly=True, samesite="strict")
        return response

    def _admitted(self, request: Request) -> bool:
        return self._access.admits(request.cookies.get(self._access.cookie, ""))


def _battle_page() -> bytes:
    page = BATTLE.joinpath("page.html").read_text(encoding="utf-8")
    for field, text in BATTLE_FIELDS.items():
        page = page.replace(field, text)
    return page.encode()


class _Guard:
    """Refuses requests by another host's name, and adds HEADERS to every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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


def make_app(runs: Sequence[WatchedRun], access: Access, signals: Signals) -> ASGIApp:
    """The ASGI application."""
    return _Guard(Starlette(routes=_Pages(runs, access, signals).routes()), access)


class _Server(uvicorn.Server):
    """Ends where `Signals` say so."""

    signals: Signals

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def on_tick(self, counter: int) -> bool:
        return self.signals.stop or await super().on_tick(counter)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises ConfigError: no such address, or the port is taken."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigError(f"--host {host}: no address of this machine ({error.strerror}).") from None
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(64)
    except OSError as error:
        listener.close()
        hint = "Choose another one with --port (0: a free one)." if port else "Choose another --host."
        raise ConfigError(f"Port {port} of {host} cannot be opened: {error.strerror}. {hint}") from None
    return listener


def serve(runs: Sequence[WatchedRun], access: Access, listener: socket.socket, signals: Signals) -> None:
    """Until a signal."""
    config = uvicorn.Config(
        make_app(runs, access, signals), log_level="critical", access_log=False, server_header=False, ws="none",
        lifespan="off", loop="asyncio", http="h11", timeout_graceful_shutdown=3, limit_concurrency=2 * MOST_BROWSERS,
        proxy_headers=False,
    )  # fmt: skip
    server = _Server(config)
    server.signals = signals
    server.run(sockets=[listener])
