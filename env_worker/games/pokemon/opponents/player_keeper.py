"""Keeps the process of one player of a user's own (`player_process.py`), which may fail, hang or die.

keeper.ask(7, 1, record, seed)                   # battle 7, seat 1; an answer or a failure follows
for said in keeper.poll(): ...                   # never blocks
keeper.forget(7, 1)                              # the battle is over

What a seat was told is kept until its battle ends, and told again to a new process.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from simul.common.errors import ConfigError, FailingEnvError
from simul.env_worker.games.pokemon.host.host_messages import SeatRecord
from simul.env_worker.games.pokemon.host.pipes import PipedProcess

MODULE = "simul.env_worker.games.pokemon.opponents.player_process"
MOST_DEATHS = 5  # without a choice between them
BACKOFF_SEC = (0.0, 0.5, 1.0, 2.0)
START_SEC = 120.0  # its module may import much
LONGEST_TURN_SEC = 1.0  # a longer gap between two polls is the worker's or the machine's, not the player's
CLOSE_SEC = 1.0
POLL_SEC = 0.1

Key = tuple[int, int]  # number of the battle, seat


class Battles(NamedTuple):
    """What a player is made for: a format, its generation, and whether two Pokémon of a side are active."""

    format: str
    gen: int
    doubles: bool


class PlayerAnswer(NamedTuple):
    """`choice` in the simulator's words; `parse_errors`: of the battle so far, by event."""

    battle: int
    seat: int
    request_number: int
    choice: str
    turn: int
    parse_errors: dict[str, int]


class PlayerFailure(NamedTuple):
    """The player has not chosen, and will not: `what` it did, as a sentence without its end."""

    battle: int
    seat: int
    what: str


@dataclass
class _Seat:
    """What a seat was told. `open`: number of the request that waits; `begun`: when its choice began."""

    told: list[dict[str, Any]] = field(default_factory=list)
    open: int | None = None
    begun: float | None = None


class PlayerKeeper:
    """One process for all battles of the player `name` (module:Class). Not thread-safe.

    Args:
        limit_sec: a choice that takes longer fails, and the process is replaced.
        say: gets sentences for the view.
    """

    def __init__(
        self, name: str, battles: Battles, limit_sec: float, say: Callable[[str], object] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.name = name
        self._battles = battles
        self._limit_sec = limit_sec
        self._say = say
        self._clock = clock
        self._now, self._polled_at = 0.0, clock()  # `_now` goes on by LONGEST_TURN_SEC at most from poll to poll
        self._seats: dict[Key, _Seat] = {}
        self._process: PipedProcess | None = None
        self._ready = False
        self._unsent, self._heard = bytearray(), bytearray()
        self._deaths = 0  # in a row
        self._start_by = self._restart_at = 0.0

    @property
    def pids(self) -> list[int]:
        """The process, where it runs."""
        return [self._process.pid] if self._process is not None else []

    def files(self) -> list[int]:
        """What is readable when there is something to poll."""
        return [self._process.stdout] if self._process is not None else []

    def start(self) -> None:
        """Start the process, without waiting for it."""
        battles = [self._battles.format, str(self._battles.gen), *["--doubles"] * self._battles.doubles]
        command = [sys.executable, "-P", "-m", MODULE, self.name, *battles, f"--owner={os.getpid()}"]
        self._process = PipedProcess(command, keep_stderr=False)
        self._ready = False
        self._start_by = self._now + START_SEC

    def wait_until_ready(self) -> None:
        """Raises FailingEnvError where the player cannot be made."""
        while not self._ready:
            self.poll()
            select.select(self.files(), [], [], POLL_SEC)

    def ask(self, record: SeatRecord, seed: int) -> None:
        """A seat's lines since its last request, and a request; an answer or a failure follows. `seed`: of `random`."""
        seat = self._seats.setdefault((record.battle, record.seat), _Seat())
        seat.told.append(
            {"battle": record.battle, "seat": record.seat, "number": record.request_number, "seed": seed,
             "lines": record.lines, "request": record.request}
        )  # fmt: skip
        seat.open = record.request_number
        self._send(seat.told[-1])

    def forget(self, battle: int, seat: int) -> None:
        """The battle is over."""
        if self._seats.pop((battle, seat), None) is not None:
            self._send({"battle": battle, "seat": seat})

    def flush(self) -> None:
        """Send what is queued, as far as the pipe takes it."""
        if self._unsent and self._process is not None:
            self._process.write_from(self._unsent)

    def poll(self) -> list[PlayerAnswer | PlayerFailure]:
        """What has come. Raises FailingEnvError where the player cannot be made, or dies again and again."""
        now = self._clock()
        self._now += min(now - self._polled_at, LONGEST_TURN_SEC)
        self._polled_at = now
        if self._process is None:
            if self._now >= self._restart_at:
                self._start_again()
            return []
        self.flush()
        ended = self._process.read_into(self._heard)
        said = list(self._read())
        if ended:
            process = self._process
            self._stop(CLOSE_SEC)
            return said + self._bury(f"its process ended with code {process.exit_code()}")
        if not self._ready and self._now > self._start_by:
            return said + self._bury(f"its process did not start within {START_SEC:g} s")
        return said + self._stop_late()

    def close(self) -> None:
        """Stop the process."""
        self._stop(CLOSE_SEC)
        self._seats.clear()

    def _send(self, command: dict[str, Any]) -> None:
        if self._process is not None:
            self._unsent += orjson.dumps(command) + b"\n"

    def _read(self) -> Iterator[PlayerAnswer | PlayerFailure]:
        *lines, left = bytes(self._heard).split(b"\n")
        self._heard[:] = left
        for line in lines:
            message = orjson.loads(line)
            if "failed" in message:
                raise FailingEnvError(message["failed"])
            self._ready = True
            for kind, content in message.items():
                if kind == "begins" and (seat := self._waiting(*content)) is not None:
                    seat.begun = self._now
                elif kind == "answer" and self._answered(*content[:3]):
                    yield PlayerAnswer._make(content)
                elif kind == "error" and self._answered(*content[:3]):
                    yield PlayerFailure(content[0], content[1], content[3])

    def _waiting(self, battle: int, seat: int, number: int | None) -> _Seat | None:
        """The seat, where this request of it waits."""
        found = self._seats.get((battle, seat))
        return found if found is not None and found.open is not None and number in (found.open, None) else None

    def _answered(self, battle: int, seat: int, number: int | None) -> bool:
        """Count an answer; False: nothing waits for it."""
        found = self._waiting(battle, seat, number)
        if found is None:
            return False
        found.open = found.begun = None
        found.told[-1]["number"] = None  # told again, it is not answered again
        self._deaths = 0
        return True

    def _stop_late(self) -> list[PlayerAnswer | PlayerFailure]:
        """Replace the process where a choice takes too long."""
        late = [
            key
            for key, seat in self._seats.items()
            if seat.begun is not None and self._now - seat.begun > self._limit_sec
        ]
        if not late:
            return []
        self._stop(0.0)
        return self._fail(late, f"it took longer than opponents.limit_sec, {self._limit_sec:g} s, over a choice")

    def _bury(self, what: str) -> list[PlayerAnswer | PlayerFailure]:
        """The process has died. Those choices that it had begun fail."""
        self._stop(0.0)
        self._deaths += 1
        if self._deaths >= MOST_DEATHS:
            raise FailingEnvError(
                f"The opponent {self.name} died {self._deaths} times without a choice between: {what}. The log of the "
                "worker shows what it wrote."
            )
        self._restart_at = self._now + BACKOFF_SEC[min(self._deaths, len(BACKOFF_SEC)) - 1]
        begun = [key for key, seat in self._seats.items() if seat.begun is not None]
        if not begun:
            self._say(f"the opponent {self.name}: {what}; another one is started")
        return self._fail(begun, what)

    def _fail(self, keys: list[Key], what: str) -> list[PlayerAnswer | PlayerFailure]:
        """Their battles end; the others wait for the next process."""
        for key in keys:
            del self._seats[key]
        for seat in self._seats.values():
            seat.begun = None
        return [PlayerFailure(battle, seat, what) for battle, seat in keys]

    def _start_again(self) -> None:
        self.start()
        for seat in self._seats.values():
            for command in seat.told:
                self._send(command)
        self.flush()

    def _stop(self, grace_sec: float) -> None:
        if self._process is not None:
            self._process.close(grace_sec)
        self._process = None
        self._unsent.clear()
        self._heard.clear()


def check_own_players(names: Iterable[str], battles: Battles) -> None:
    """Start each of the players once. Raises ConfigError where it cannot be made."""
    for name in names:
        keeper = PlayerKeeper(name, battles, START_SEC)
        try:
            keeper.start()
            keeper.wait_until_ready()
        except FailingEnvError as error:
            raise ConfigError(str(error)) from None
        finally:
            keeper.close()
