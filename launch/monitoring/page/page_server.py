"""The page of runs: one stream of events for each browser, plots and replays."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from simul.common.errors import ConfigError
from simul.common.runtime.installation import ROOT
from simul.launch.monitoring.page.access import Access
from simul.launch.monitoring.page.feed import Feed
from simul.launch.monitoring.page.runs.episodes import episode_frames
from simul.launch.monitoring.page.runs.replays import EPISODE, Frame, ReplayKey, battle_lines, replay_frames, replay_key
from simul.launch.monitoring.page.runs.watched_run import WatchedRun
from simul.launch.monitoring.page.spectated_game import SpectatedGames
from simul.launch.monitoring.page.web_server import (
    NOT_ADMITTED,
    STATIC,
    Login,
    file_routes,
    make_guarded_app,
    picture,
)
from simul.launch.processes.signals import Signals

POLL_SEC = 0.5
SIGN_OF_LIFE_SEC = 10.0  # a comment in the stream: either side notices that the other is gone
MOST_BROWSERS = 32
# The player of the replays that the workers write: its template, and what the template names.
BATTLE = ROOT / "env_worker" / "games" / "pokemon" / "replays"
FILES = {
    "/": (STATIC / "index.html", "text/html"),
    "/replay": (STATIC / "replay.html", "text/html"),
    "/game": (STATIC / "game.html", "text/html"),
    "/static/game.js": (STATIC / "game.js", "text/javascript"),
    "/static/requests.js": (STATIC / "requests.js", "text/javascript"),
    "/static/replay.js": (STATIC / "replay.js", "text/javascript"),
    "/static/battle.js": (STATIC / "battle.js", "text/javascript"),
    "/static/icon.svg": (STATIC / "icon.svg", "image/svg+xml"),
    "/static/page.css": (STATIC / "page.css", "text/css"),
    "/static/page.js": (STATIC / "page.js", "text/javascript"),
    "/static/charts.js": (STATIC / "charts.js", "text/javascript"),
    "/static/uplot/uPlot.min.css": (STATIC / "uplot" / "uPlot.min.css", "text/css"),
    "/static/uplot/uPlot.iife.min.js": (STATIC / "uplot" / "uPlot.iife.min.js", "text/javascript"),
    "/static/battle/page.css": (BATTLE / "page.css", "text/css"),
    "/static/battle/player.mjs": (BATTLE / "player.mjs", "text/javascript"),
    "/static/battle/side_view.mjs": (BATTLE / "side_view.mjs", "text/javascript"),
    "/static/battle/battle_log.mjs": (BATTLE / "battle_log.mjs", "text/javascript"),
}
MOST_REPLAYS = 4  # kept
BATTLE_FIELDS = {
    "{{TITLE}}": "Simul: battle",
    "{{HEAD}}": '<link rel="icon" href="/static/icon.svg"><link rel="stylesheet" href="/static/battle/page.css">',
    "{{SCRIPTS}}": '<script src="/static/requests.js"></script>\n<script src="/static/battle.js"></script>',
}


class _Watch:
    """The runs, polled at most every POLL_SEC, in a thread, and only while a browser asks."""

    def __init__(self, runs: Sequence[WatchedRun]) -> None:
        self.runs = runs
        self.browsers = 0
        self._lock = asyncio.Lock()
        self._polled_at = float("-inf")

    async def messages(self, feed: Feed, *, last: bool = False) -> list[bytes]:
        """Poll if that is due, or for the last time. Returns what the feed has to send, as JSON."""
        async with self._lock:
            now = time.monotonic()
            if last or now - self._polled_at >= POLL_SEC / 2:
                await asyncio.to_thread(self._poll, now)
                self._polled_at = time.monotonic()
            return [msgspec.json.encode(message) for message in feed.take(now)]

    def _poll(self, now: float) -> None:
        for run in self.runs:
            try:
                run.poll(now)
            except Exception as error:  # noqa: BLE001 - what lies in one folder ends the page of no other run
                run.urgent = {"name": run.name, "fault": f"The run cannot be read: {type(error).__name__}."}


class _Pages:
    """The handlers of the routes."""

    def __init__(self, runs: Sequence[WatchedRun], access: Access, signals: Signals) -> None:
        self._watch = _Watch(runs)
        self._login = Login(access)
        self._games = SpectatedGames(runs, self._login, signals)
        self._signals = signals
        self._replays: dict[ReplayKey, list[Frame]] = {}
        self._replaying = asyncio.Lock()  # one process at a time
        self._battle_page = _battle_page()

    def routes(self) -> list[Route]:
        return [
            *file_routes(FILES),
            Route("/battle", self._player),
            Route("/events", self._events),
            *self._games.routes(),
            Route("/runs/{place:number}/{name:str}", self._picture),
            Route("/runs/{place:number}/replays/{name:str}", self._replay),
            Route("/runs/{place:number}/replays/{name:str}/{frame:number}.svg", self._frame),
            *self._login.routes(),
        ]

    async def _player(self, request: Request) -> Response:
        return Response(self._battle_page, media_type="text/html")

    async def _events(self, request: Request) -> Response:
        if not self._login.admitted(request):
            return PlainTextResponse(NOT_ADMITTED, 401)
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
                for message in await self._watch.messages(feed, last=ends):
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
        if not self._login.admitted(request):
            return PlainTextResponse(NOT_ADMITTED, 401)
        place, name = request.path_params["place"], request.path_params["name"]
        try:
            data = await asyncio.to_thread(self._watch.runs[place].picture, name)
        except (IndexError, OSError):
            return PlainTextResponse("There is no such plot.\n", 404)
        return Response(data, media_type="image/png")

    async def _replay(self, request: Request) -> Response:
        """Text and words of every frame; a picture is asked for alone."""
        if not self._login.admitted(request):
            return PlainTextResponse(NOT_ADMITTED, 401)
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
        """The log of a battle, which the player reads, as an array of lines. Raises as `_frames`."""
        root = self._watch.runs[request.path_params["place"]].root
        key = await asyncio.to_thread(replay_key, root, request.path_params["name"])
        lines = await asyncio.to_thread(battle_lines, key.path)
        return Response(msgspec.json.encode(lines), media_type="application/json")

    async def _frame(self, request: Request) -> Response:
        if not self._login.admitted(request):
            return PlainTextResponse(NOT_ADMITTED, 401)
        try:
            svg = (await self._frames(request))[request.path_params["frame"]].svg
        except (IndexError, OSError, ConfigError):
            return PlainTextResponse("There is no such picture.\n", 404)
        return picture(svg)

    async def _frames(self, request: Request) -> list[Frame]:
        """Raises IndexError, OSError: there is no such replay; ConfigError: it cannot be shown."""
        run = self._watch.runs[request.path_params["place"]]
        async with self._replaying:
            key = await asyncio.to_thread(replay_key, run.root, request.path_params["name"])
            if key not in self._replays:
                frames = await asyncio.to_thread(self._read_frames, key.path)
                self._replays = {**dict(list(self._replays.items())[1 - MOST_REPLAYS :]), key: frames}
            return self._replays[key]

    def _read_frames(self, path: Path) -> list[Frame]:
        if EPISODE.fullmatch(path.name):
            return episode_frames(path)
        return replay_frames(path, lambda: self._signals.stop)


def _battle_page() -> bytes:
    page = BATTLE.joinpath("page.html").read_text(encoding="utf-8")
    for field, text in BATTLE_FIELDS.items():
        page = page.replace(field, text)
    return page.encode()


def make_app(runs: Sequence[WatchedRun], access: Access, signals: Signals) -> ASGIApp:
    """The ASGI application."""
    return make_guarded_app(_Pages(runs, access, signals).routes(), access)
