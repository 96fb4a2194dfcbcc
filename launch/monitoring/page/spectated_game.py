"""A running game that a browser watches: what its worker reports of it, as a stream of events, and its pictures."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from simul.common.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.common.role.spectating import ANY_SEAT, SpectatorRecord, SpectatorSubscription
from simul.common.runtime.private_files import read_regular
from simul.launch.monitoring.page.runs.watchable_workers import NOT_ACTIVE, has_ended, why_not_watched
from simul.launch.monitoring.page.runs.watched_run import WatchedRun
from simul.launch.monitoring.page.web_server import NOT_ADMITTED, Login, picture
from simul.launch.processes.signals import Signals

POLL_SEC = 0.1
RENEW_SEC = 1.0
# A worker that reports nothing for so long is said to be silent: before its first record, and between two.
SILENT_SEC, LATER_SILENT_SEC = 6.0, 30.0
SIGN_OF_LIFE_SEC = 10.0
MOST_GAMES = 4  # watched at once by the browsers of a page
MOST_PICTURES = 40  # kept of a game, until the browser shows them
MOST_SLICES = 4000
MOST_NUMBER = 2**31 - 1  # of a worker, a game or a seat
SPEC_BYTES = 8 * 2**20
CONFIG_BYTES = 256 * 2**10
SEAT = re.compile("any|[0-9]{1,10}")
BEGIN = b"retry: 1000\n\n"
OTHER_SITE = "That comes from another page.\n"
FULL = f"{MOST_GAMES} games are watched already: close one, or start another page."
ENDED = "The worker shows another game: another page has asked for one, or the run has ended."
SILENT = (
    "No decision of this game has come for {:.0f} s: its worker starts or hangs, waits for the server or another "
    "player, or pauses after a position that was costly to show."
)
NO_GAME = "There is no game of these numbers."
_SPEC = msgspec.json.Decoder(GameSpec)


class SpectatedGames:
    """Routes. `runs`: those of the page, by their places."""

    def __init__(self, runs: Sequence[WatchedRun], login: Login, signals: Signals) -> None:
        self._runs = runs
        self._login = login
        self._signals = signals
        self._pictures: dict[str, dict[int, str]] = {}  # of each game that is watched, by its id

    def routes(self) -> list[Route]:
        """What a game is, its events, its pictures."""
        game = "/runs/{place:number}/game"
        return [
            Route(game, self._about),
            Route(game + "/{worker:number}/{env:number}/{seat:str}", self._events),
            Route("/games/{id:str}/{number:number}.svg", self._picture),
        ]

    async def _about(self, request: Request) -> Response:
        """Name of the run and of its game, seats, and the slices of an observation: [name, start, size, meaning].

        `workers`, `envs`: how many workers it has, and games each; 0 where that is not known. `left_out`: how many
        slices are not listed. `said`: a sentence where none of its games can be watched.
        """
        if not self._login.admitted(request):
            return PlainTextResponse(NOT_ADMITTED, 401)
        try:
            run = self._runs[request.path_params["place"]]
            about = await asyncio.to_thread(_about_game, run.root)
            said = await asyncio.to_thread(why_not_watched, run.root)
        except (IndexError, OSError, ValueError, RecursionError):
            return PlainTextResponse("There is no run whose games can be watched.\n", 404)
        return Response(msgspec.json.encode({"run": run.name, "said": said, **about}), media_type="application/json")

    async def _events(self, request: Request) -> Response:
        if not self._login.admitted(request):
            return PlainTextResponse(NOT_ADMITTED, 401)
        if request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return PlainTextResponse(OTHER_SITE, 403)
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        place, worker, env, seat = (request.path_params[name] for name in ("place", "worker", "env", "seat"))
        if place >= len(self._runs):
            return PlainTextResponse("There is no such run.\n", 404)
        if not SEAT.fullmatch(seat):
            return PlainTextResponse("Expected a number of a seat, or any.\n", 404)
        numbers = (worker, env, ANY_SEAT if seat == "any" else int(seat))
        return StreamingResponse(self._stream(self._runs[place].root, numbers), media_type="text/event-stream")

    async def _stream(self, root: Path, numbers: tuple[int, int, int]) -> AsyncIterator[bytes]:
        """Events until the browser leaves; `numbers`: of worker, env and seat. What it opens is closed with it."""
        yield BEGIN
        why = NO_GAME if max(numbers) > MOST_NUMBER else await asyncio.to_thread(why_not_watched, root, numbers[0])
        if not why and len(self._pictures) >= MOST_GAMES:
            why = FULL
        if why:
            yield _event({"ended": why})
            return
        try:
            subscription = SpectatorSubscription(RunDir(root), *numbers)
        except ConfigError as error:
            yield _event({"ended": str(error)})
            return
        self._pictures[subscription.request.id] = {}
        heard_at = renewed_at = spoken_at = time.monotonic()
        pictures, number, patience_sec = self._pictures[subscription.request.id], 0, SILENT_SEC
        try:
            while not self._signals.stop:
                now = time.monotonic()
                for record in subscription.records():
                    if record.kind == "none":
                        yield _event({"ended": record.said})
                        return
                    number, patience_sec, heard_at, spoken_at = number + 1, LATER_SILENT_SEC, now, now
                    if record.svg:
                        pictures[number] = record.svg
                        pictures.pop(number - MOST_PICTURES, None)
                    yield _event(_shown(record, subscription.request.id, number))
                if now - renewed_at >= RENEW_SEC:
                    renewed_at = now
                    if not subscription.renew() or has_ended(RunDir(root)):
                        yield _event({"ended": NOT_ACTIVE if has_ended(RunDir(root)) else ENDED})
                        return
                if now - heard_at > patience_sec:
                    yield _event({"said": SILENT.format(patience_sec)})
                    patience_sec, spoken_at = math.inf, now
                elif now - spoken_at > SIGN_OF_LIFE_SEC:
                    spoken_at = now
                    yield b": alive\n\n"
                await asyncio.sleep(POLL_SEC)
        finally:
            subscription.close()
            del self._pictures[subscription.request.id]

    async def _picture(self, request: Request) -> Response:
        if not self._login.admitted(request):
            return PlainTextResponse(NOT_ADMITTED, 401)
        svg = self._pictures.get(request.path_params["id"], {}).get(request.path_params["number"])
        return PlainTextResponse("There is no such picture.\n", 404) if svg is None else picture(svg)


def _about_game(root: Path) -> dict[str, Any]:
    """Raises OSError and ValueError where there is no spec of a run."""
    spec = _SPEC.decode(read_regular(root / "spec.json", SPEC_BYTES, links=False))
    slices = [(part.name[:100], part.start, part.size, part.meaning[:200]) for part in spec.layout[:MOST_SLICES]]
    slices = slices or [("observation", 0, spec.observation_size, "")]
    workers, envs = _numbers_of_games(root)
    return {
        "game": spec.name[:200], "workers": workers, "envs": envs, "seats": spec.seats,
        "actions": spec.num_actions, "slices": slices, "left_out": max(len(spec.layout) - MOST_SLICES, 0),
    }  # fmt: skip


def _numbers_of_games(root: Path) -> tuple[int, int]:
    """Workers, and games of each, by config.yaml; 0 where it does not say."""
    try:
        data = read_regular(root / "config.yaml", CONFIG_BYTES, links=False)
        found = yaml.load(data, yaml.BaseLoader)["workers"]  # of texts; it merges nothing, which could take for ever
        numbers = int(found["count"]), int(found["envs"])
    except (OSError, yaml.YAMLError, ValueError, TypeError, LookupError, RecursionError):
        return 0, 0
    return numbers if 0 < min(numbers) <= max(numbers) <= MOST_NUMBER else (0, 0)


def _shown(record: SpectatorRecord, game: str, number: int) -> dict[str, Any]:
    """The record as the browser gets it: a picture is asked for alone."""
    shown = msgspec.to_builtins(record)
    if shown.pop("svg", ""):
        shown["picture"] = f"/games/{game}/{number}.svg"
    return {"record": shown}


def _event(message: dict[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(message) + b"\n\n"
