"""Notices of a run to people, such as "stopped" or "milestone". Sending never holds up the run.

Each address has a thread of its own, so that one that hangs delays no other. At most one notice of each kind waits for
it: a newer one replaces it and counts (`3 times`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from simul.common.runtime.terminal_text import LINES, printable

BURST = 5  # notices that an address gets at once; then one in REFILL_SEC
REFILL_SEC = 60.0
RETRY_AFTER_SEC = (10.0, 60.0)  # what could not be sent is sent again, so much later, or when the service says
LONGEST_PAUSE_SEC = 900.0
FINISH_SEC = 10.0  # at the end of a run, for what still waits
MOST_CHARACTERS = 1500  # of a text: some services refuse more than 2,000


class NoticeKind(Enum):
    """(title, its type for apprise, urgent). An urgent one waits for no token and is sent before others."""

    START = ("started", "info", True)
    STOP = ("stopped", "success", True)
    CRASH = ("failed", "failure", True)
    MILESTONE = ("milestone", "info", False)
    STORE_LOST = ("store lost", "warning", False)
    STORE_BACK = ("store back", "success", False)

    def __init__(self, title: str, severity: str, urgent: bool) -> None:
        self.title = title
        self.severity = severity
        self.urgent = urgent


class Picture(NamedTuple):
    """A PNG; where there is none, why."""

    png: bytes
    problem: str = ""


@dataclass
class Notice:
    """`draw` makes the picture when the notice is sent. `times`: how many of its kind it stands for."""

    kind: NoticeKind
    text: str
    draw: Callable[[], Picture] | None = None
    times: int = 1


class Delivery(NamedTuple):
    """Outcome of one attempt. `problem`: "" where it arrived. `final`: another attempt would not help.

    `retry_after_sec`: what the service asks for.
    """

    problem: str = ""
    final: bool = False
    retry_after_sec: float = 0.0


class Address(Protocol):
    """Where notices go. `name` shows nothing secret."""

    name: str

    def deliver(self, title: str, text: str, severity: str, picture: bytes) -> Delivery:
        """Send, and wait for the answer. `picture`: a PNG, b"" for none. Never raises."""


class TokenBucket:
    """Limits a rate. Pure: time is an argument, from time.monotonic()."""

    def __init__(self, now: float, burst: int = BURST, refill_sec: float = REFILL_SEC) -> None:
        self._tokens = float(burst)
        self._burst = burst
        self._refill_sec = refill_sec
        self._at = now

    def take(self, now: float) -> float:
        """Take a token: 0.0; or, where there is none, the seconds until there is one."""
        self._tokens = min(self._tokens + (now - self._at) / self._refill_sec, self._burst)
        self._at = now
        if self._tokens < 1.0:
            return (1.0 - self._tokens) * self._refill_sec
        self._tokens -= 1.0
        return 0.0


class WaitingNotices:
    """At most one of each kind, in the order of the newest of each; urgent ones first."""

    def __init__(self) -> None:
        self._waiting: dict[NoticeKind, Notice] = {}

    def add(self, notice: Notice) -> None:
        """Add it, in place of one of its kind that waits."""
        before = self._waiting.pop(notice.kind, None)
        times = notice.times + (before.times if before else 0)
        self._waiting[notice.kind] = Notice(notice.kind, notice.text, notice.draw, times)

    def first(self) -> Notice | None:
        """The next one to send; it stays."""
        return min(self._waiting.values(), key=lambda notice: not notice.kind.urgent, default=None)

    def remove(self, notice: Notice) -> None:
        """It is being sent."""
        del self._waiting[notice.kind]

    def titles(self) -> list[str]:
        """What waits."""
        return [kind.title for kind in self._waiting]


class NoticeSender:
    """Sends notices to one address, in a thread.

    Args:
        headline: comes before the title, such as the run's name.
        retry_after_sec: pauses before further attempts.
    """

    def __init__(
        self, address: Address, headline: str, bucket: TokenBucket, retry_after_sec: Sequence[float] = RETRY_AFTER_SEC
    ) -> None:
        self._address = address
        self._headline = headline
        self._bucket = bucket
        self._retry_after_sec = retry_after_sec
        self._waiting = WaitingNotices()
        self._sending = ""  # title of the notice that is being sent
        self._problems: list[str] = []
        self._closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="simul-notices", daemon=True)
        self._thread.start()

    @property
    def finished(self) -> bool:
        """After `close`: everything was sent or refused."""
        return not self._thread.is_alive()

    def post(self, notice: Notice) -> None:
        """Send it soon. Returns at once."""
        with self._changed:
            self._waiting.add(notice)
            self._changed.notify_all()

    def close(self) -> None:
        """Send what waits, without regard to the rate, then end. Returns at once."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()

    def take_problems(self) -> list[str]:
        """A sentence for each notice since the last call that could not be sent."""
        with self._changed:
            problems, self._problems = self._problems, []
        return problems

    def unfinished(self) -> str:
        """A sentence about what was not sent in time, after `close`; "" where everything was."""
        with self._changed:
            left = [*filter(None, [self._sending]), *self._waiting.titles()]
        if self.finished or not left:
            return ""
        return f"{self._address.name} did not answer in time; these notices may be lost: {', '.join(left)}"

    def _work(self) -> None:
        while (notice := self._next()) is not None:
            self._send(notice)
            with self._changed:
                self._sending = ""

    def _next(self) -> Notice | None:
        """Wait for the next notice that may be sent; None at the end."""
        with self._changed:
            while True:
                notice = self._waiting.first()
                if notice is None and self._closing:
                    return None
                wait_sec: float | None = None
                if notice is not None:
                    free = notice.kind.urgent or self._closing
                    wait_sec = 0.0 if free else self._bucket.take(time.monotonic())
                    if not wait_sec:
                        self._waiting.remove(notice)
                        self._sending = notice.kind.title
                        return notice
                self._changed.wait(wait_sec)

    def _send(self, notice: Notice) -> None:
        for pause_sec in (*self._retry_after_sec, None):
            delivery = self._deliver(notice)
            if not delivery.problem or delivery.final or pause_sec is None:
                break
            if not self._pause(notice, min(max(pause_sec, delivery.retry_after_sec), LONGEST_PAUSE_SEC)):
                break
        if delivery.problem:
            with self._changed:
                self._problems.append(
                    f"the notice {notice.kind.title!r} did not reach {self._address.name}: {delivery.problem}"
                )

    def _pause(self, notice: Notice, seconds: float) -> bool:
        """Wait before the next attempt; False: there is none.

        Where the run ends meanwhile, an urgent notice is tried once more, at once, and others are not.
        """
        with self._changed:
            if self._closing:
                return False
            self._changed.wait_for(lambda: self._closing, seconds)
            return notice.kind.urgent or not self._closing

    def _deliver(self, notice: Notice) -> Delivery:
        """Never raises: a defect costs a notice, not the thread."""
        try:
            return self._attempt(notice)
        except Exception as error:  # noqa: BLE001 - its message may name the address
            return Delivery(f"a defect: {type(error).__name__}", final=True)

    def _attempt(self, notice: Notice) -> Delivery:
        text, png = notice.text, b""
        if notice.draw is not None:
            png, problem = notice.draw()
            text += f"\n(no picture: {problem})" if problem else ""
        times = f" ({notice.times} times; this is the last)" if notice.times > 1 else ""
        title = printable(f"{self._headline}: {notice.kind.title}{times}")
        return self._address.deliver(title, printable(text, LINES), notice.kind.severity, png)


class Notifier:
    """Notices to all addresses; without any it does nothing. No method blocks but `close`."""

    def __init__(self, senders: Sequence[NoticeSender] = ()) -> None:
        self._senders = senders

    def post(self, notice: Notice) -> None:
        """Send a notice to every address."""
        for sender in self._senders:
            sender.post(notice)

    def take_problems(self) -> list[str]:
        """Sentences since the last call: which notices could not be sent, and why."""
        return [problem for sender in self._senders for problem in sender.take_problems()]

    def close(self, hurry: Callable[[], bool]) -> list[str]:
        """Send what waits, at most for FINISH_SEC, and no longer once `hurry()` is true. Returns sentences."""
        for sender in self._senders:
            sender.close()
        deadline = time.monotonic() + FINISH_SEC
        while not all(sender.finished for sender in self._senders) and time.monotonic() < deadline and not hurry():
            time.sleep(0.05)
        return [*self.take_problems(), *filter(None, (sender.unfinished() for sender in self._senders))]
