"""The page of one game that a person plays: its events as a stream, the person's lines, pictures of positions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from simul.launch.monitoring.page.access import Access
from simul.launch.monitoring.page.played_game import PlayedGame
from simul.launch.monitoring.page.web_server import (
    NOT_ADMITTED,
    STATIC,
    Login,
    file_routes,
    make_guarded_app,
    picture,
    posted_text,
)
from simul.launch.processes.signals import Signals

POLL_SEC = 0.05
SIGN_OF_LIFE_SEC = 10.0
LINGER_SEC = 3.0  # after the end, for browsers to be told of it
FILES = {
    "/": (STATIC / "play.html", "text/html"),
    "/static/play.js": (STATIC / "play.js", "text/javascript"),
    "/static/page.css": (STATIC / "page.css", "text/css"),
    "/static/icon.svg": (STATIC / "icon.svg", "image/svg+xml"),
}


class _GamePage:
    def __init__(self, game: PlayedGame, access: Access, signals: Signals) -> None:
        self._game = game
        self._login = Login(access)
        self._signals = signals

    def routes(self) -> list[Route]:
        return [
            *file_routes(FILES),
            *self._login.routes(),
            Route("/events", self._events),
            Route("/line", self._line, methods=["POST"]),
            Route("/pictures/{number:number}.svg", self._picture),
        ]

    async def _events(self, request: Request) -> Response:
        if not self._login.admitted(request):
            return PlainTextResponse(NOT_ADMITTED, 401)
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        return StreamingResponse(self._stream(), media_type="text/event-stream")

    async def _stream(self) -> AsyncIterator[bytes]:
        seen, spoken_at = 0, time.monotonic()
        yield b"retry: 1000\n\n"
        while not self._signals.stop:
            events, seen = self._game.events(seen)
            if events:
                spoken_at = time.monotonic()
                yield b"data: " + msgspec.json.encode(events) + b"\n\n"
            elif time.monotonic() - spoken_at > SIGN_OF_LIFE_SEC:
                spoken_at = time.monotonic()
                yield b": alive\n\n"
            await asyncio.sleep(POLL_SEC)

    async def _line(self, request: Request) -> Response:
        if not self._login.admitted(request):
            return PlainTextResponse(NOT_ADMITTED, 401)
        text = await posted_text(request)
        if isinstance(text, Response):
            return text
        if not await asyncio.to_thread(self._game.send, text):
            return PlainTextResponse("it is not your turn\n", 409)
        return Response(status_code=204)

    async def _picture(self, request: Request) -> Response:
        if not self._login.admitted(request):
            return PlainTextResponse(NOT_ADMITTED, 401)
        svg = self._game.pictures.get(request.path_params["number"])
        return PlainTextResponse("There is no such picture.\n", 404) if svg is None else picture(svg)


def make_app(game: PlayedGame, access: Access, signals: Signals) -> ASGIApp:
    """The ASGI application."""
    return make_guarded_app(_GamePage(game, access, signals).routes(), access)
