"""Says which call of the game's code does not return: a game that hangs cannot report itself."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from simul.common.config import named_class
from simul.common.role.lifecycle import NOTICE, RoleArguments
from simul.common.role.reports import Reporter
from simul.common.runtime.error_place import innermost_place, is_library
from simul.env_worker.games.base import turn_game
from simul.env_worker.games.base.failures import CALLERS

LIMIT_SEC = 15.0  # of one call, then each time that its duration has doubled
LOOK_AFTER_SEC = 1.0  # the loop turns more often than that, unless the code of the game is slow
LOOK_EVERY_SEC = 1.0
_OURS = f"{Path(__file__).parents[1]}/"
_CALLERS = CALLERS | {named_class.__file__, turn_game.__file__}


class GameWatch:
    """Looks at the stack of one thread. `look` is called about once a second, by a thread that `start` makes.

    A call counts as the same one while its frame is the same object, so that a game whose calls are many and fast is
    never blamed. The frame is kept between two looks, which keeps its local variables alive: only while `beat` has not
    been called for long.

    Args:
        thread: identifies the thread that calls the game.
        say: gets each sentence, in the thread of the watch.
        close: called in that thread when it ends.
    """

    def __init__(self, thread: int, say: Callable[[str], None], close: Callable[[], None] = lambda: None) -> None:
        self._thread = thread
        self._say = say
        self._close = close
        self._beat_at = time.monotonic()
        self._call: FrameType | None = None
        self._since = 0.0
        self._next_sec = LIMIT_SEC
        self._name = ""
        self._stop = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="simul-game-watch", daemon=True)

    def beat(self) -> None:
        """The worker's loop turned: no call of the game runs for long."""
        self._beat_at = time.monotonic()

    def start(self) -> None:
        """Watch from now on."""
        self._watcher.start()

    def stop(self) -> None:
        """Watch no longer."""
        self._stop.set()
        if self._watcher.is_alive():
            self._watcher.join()

    def look(self, now: float) -> None:
        """Compare the call of the game that runs at `now`, in seconds of time.monotonic, with that of the last look."""
        call = None
        if now - self._beat_at >= LOOK_AFTER_SEC:
            frame = sys._current_frames().get(self._thread)
            call = None if frame is None else _call_of_game(frame)
        if call is None or call is not self._call:
            self._ended(now)
            self._call, self._since, self._next_sec = call, now, LIMIT_SEC
        elif now - self._since >= self._next_sec:
            self._name = call.f_code.co_qualname
            self._next_sec = 2 * (now - self._since)
            place = _place(sys._current_frames()[self._thread], call)
            self._say(f"the game has not returned from {self._name} for {now - self._since:.0f} s: {place}")

    def _ended(self, now: float) -> None:
        if self._name:
            self._say(f"the game goes on: {self._name} returned after {now - self._since:.0f} s")
            self._name = ""

    def _watch(self) -> None:
        while not self._stop.wait(LOOK_EVERY_SEC):
            self.look(time.monotonic())
        self._close()


def watch_worker(arguments: RoleArguments, reporter: Reporter) -> GameWatch:
    """A watch of this thread, not started; its sentences are events of the worker, whose `reporter` knows its state."""
    own: list[Reporter] = []  # sockets do not cross threads

    def say(sentence: str) -> None:
        if not own:
            own.append(Reporter(arguments, "env_worker"))
        own[0].send({}, state=reporter.state, event=f"worker {arguments.index}: {sentence}")

    def close() -> None:
        for each in own:
            each.close()

    return GameWatch(threading.get_ident(), say, close)


def watch_spec() -> GameWatch:
    """A watch of this thread, not started; its sentences go to the standard error stream, each begun by NOTICE."""

    def say(sentence: str) -> None:
        sys.stderr.write(f"{NOTICE}{sentence}\n")
        sys.stderr.flush()

    return GameWatch(threading.get_ident(), say)


def _call_of_game(frame: FrameType) -> FrameType | None:
    """The call that entered the game's code, of the stack that ends with `frame`; None where none of it runs.

    Code of Simul's that waits or compiles is not the game's. Where a caller is the innermost frame, the game's code is
    compiled, and the caller itself is returned.
    """
    inner: FrameType | None = None
    at: FrameType | None = frame
    while at is not None and not at.f_code.co_filename.startswith(_OURS):
        inner, at = at, at.f_back
    if at is None:
        return None
    if at.f_code.co_filename in _CALLERS:
        return inner or at
    return inner if inner is not None and not is_library(inner.f_code.co_filename) else None


def _place(frame: FrameType, call: FrameType) -> str:
    """`FILE:LINE` of the game's innermost line."""
    frames = []
    at: FrameType | None = frame
    while at is not None:
        frames.append((at, at.f_lineno))
        if at is call:
            break
        at = at.f_back
    return innermost_place(traceback.StackSummary.extract(iter(reversed(frames)), lookup_lines=False))
