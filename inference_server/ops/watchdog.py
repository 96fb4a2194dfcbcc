"""Notices a main loop that does not turn: a forward that never returns cannot report itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from simul.common.role.lifecycle import RoleArguments
from simul.common.role.reports import Reporter

STUCK_AFTER_SEC = 0.75  # a server that hangs is shown within a second; so is a long forward of a large batch
EVENT_AFTER_SEC = 5.0  # a forward of a busy CPU may take 2 s
LOOK_EVERY_SEC = 0.1


class Watchdog:
    """A thread with a socket of its own. While the loop does not turn it reports the state `stuck` for it.

    After EVENT_AFTER_SEC an event says so. That the loop turns again after an event is for its own report to say, which
    has the state of then.

    `tell`: called in that thread with the figures of every such report.
    """

    def __init__(self, arguments: RoleArguments, tell: Callable[[dict[str, Any]], None] | None = None) -> None:
        self.metrics: dict[str, Any] = {}  # of the loop's last report
        self._arguments = arguments
        self._tell = tell
        self._beat_at = time.monotonic()
        self._recovery = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        """Watch from now on."""
        self.beat()
        self._thread.start()

    def beat(self) -> None:
        """The loop turned."""
        self._beat_at = time.monotonic()

    def take_recovery(self) -> str:
        """A sentence for the loop's next report where the loop turns again after an event, else ""; each once."""
        sentence, self._recovery = self._recovery, ""
        return sentence

    def stop(self) -> None:
        """Watch no longer."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        reporter = Reporter(self._arguments, "inference_server")  # sockets do not cross threads
        said, lasted_sec = False, 0.0
        while not self._stop.wait(LOOK_EVERY_SEC):
            now = time.monotonic()
            stuck_sec = now - self._beat_at
            if stuck_sec < STUCK_AFTER_SEC:
                if said:
                    self._recovery = f"the inference server goes on: its loop did not turn for {lasted_sec:.1f} s"
                said = False
                continue
            lasted_sec = stuck_sec
            if reporter.due(now):
                event = ""
                if stuck_sec >= EVENT_AFTER_SEC and not said:
                    event, said = f"the inference server is stuck: its loop has not turned for {stuck_sec:.1f} s", True
                metrics = {**self.metrics, "ready": False, "health": f"stuck for {stuck_sec:.1f} s"}
                reporter.send(metrics, state="stuck", event=event)
                if self._tell is not None:
                    self._tell(metrics)
        reporter.close()
