"""A game that a person plays in the page: the process of `simul play` with the page in place of its terminal."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

import msgspec

from simul.common.runtime.decode_errors import DECODE_ERRORS
from simul.launch.processes.role_process import kill_session, role_environment

MOST_EVENTS = 3000  # kept for a browser that comes later
STOP_SEC = 3.0


class PlayedGame:
    """The game's process, which leads a session of its own. `events` and `send` may be used from any thread.

    Attributes:
        last_words: the last line that was no event: the sentence of an error, where it ended with one.
        pictures: by their number; only the newest event's position has one that is still shown.
    """

    def __init__(self, module: str, arguments: Sequence[str]) -> None:
        self._events: list[dict[str, Any]] = []
        self._first = 0  # number of the oldest that is kept
        self._asks = False
        self._lock = threading.Lock()
        self.last_words = ""
        self.pictures: dict[int, str] = {}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env=role_environment(1), start_new_session=sys.platform != "win32",
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def exit_code(self) -> int | None:
        """None while it runs, and until everything that it said is in `events`."""
        return None if self._reader.is_alive() else self._process.wait()

    def events(self, seen: int) -> tuple[list[dict[str, Any]], int]:
        """Those after the first `seen`, and how many there have been."""
        with self._lock:
            return self._events[max(seen - self._first, 0) :], self._first + len(self._events)

    def send(self, line: str) -> bool:
        """A line of the person. False where the game does not ask for one: more would fill its pipe."""
        with self._lock:
            asked, self._asks = self._asks, False
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # the game has ended meanwhile
            if asked:
                self._process.stdin.write(line.replace("\n", " ").encode() + b"\n")
                self._process.stdin.flush()
        return asked

    def close(self) -> None:
        """The person leaves."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_SEC)
        kill_session(self._process)
        self._reader.join(STOP_SEC)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                try:
                    event = msgspec.json.decode(line, type=dict[str, Any])
                except DECODE_ERRORS:  # a sentence of an error, or what the game itself prints
                    self.last_words = line.decode(errors="replace").rstrip()
                    event = {"kind": "say", "text": self.last_words, "style": "red"}
                self._add(event)
        finally:
            self._add({"kind": "end"})

    def _add(self, event: dict[str, Any]) -> None:
        with self._lock:
            number = self._first + len(self._events)
            if svg := event.pop("svg", ""):
                self.pictures = {**dict(list(self.pictures.items())[-20:]), number: svg}
                event["picture"] = number
            self._asks = event.get("kind") == "ask" or (self._asks and event.get("kind") != "end")
            self._events.append(event)
            if len(self._events) > MOST_EVENTS:
                self._first += 1
                del self._events[0]
