"""One battle room: the messages to our two accounts become a host's messages. Pure: time is an argument."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from simul.env_worker.games.pokemon.host.host_messages import BattleEnd, CommandError, HostTick, SeatRecord

# What a server adds to the simulator's protocol: chat, clocks, boxes. None of it belongs to the battle.
ROOM_ONLY = frozenset(
    ("B", "N", "C", "J", "L", "c", "j", "l", ":", "c:", "b", "battle", "users", "noinit", "unlink", "notify",
     "tempnotify", "tempnotifyoff", "uhtmlchange", "fieldhtml", "controlshtml", "selectorhtml", "pagehtml", "refresh",
     "expire", "usercount", "inputlog", "bigerror", "askreg", "warning")
)  # fmt: skip
# Answers to a choice that came too late or twice; the request it was about is not open any more.
NOTHING_OPEN = ("[Invalid choice] Can't do anything", "[Invalid choice] Sorry", "[Invalid choice] There's nothing")
SEATS = ("p1", "p2")
# What the server says, behind a player's name, of an end that was not played out, and what it is called.
EARLY_ENDS = {
    " lost due to inactivity.": "inactivity",
    " forfeited.": "forfeit",
    " forfeited by changing their name.": "forfeit",
    " lost by having an inappropriate name.": "forfeit",
}
UNREADABLE = (AttributeError, LookupError, TypeError, ValueError)  # what reading a message of another kind raises
MOST_TEXT = 32 << 20  # characters of a battle's messages to both accounts; one of a thousand turns has about 15 million
TURN_LIMIT = 1000  # the simulator declares a tie beyond it
MOST_REQUESTS = 1 << 31  # rows hold the number of their request as int32


def early_end(message: str, names: Iterable[str]) -> str:
    """What ended a battle before it was played out, "" for any other `-message`: one may hold nicknames.

    names: of the players.
    """
    return next((EARLY_ENDS[words] for name in names if (words := message.removeprefix(name)) in EARLY_ENDS), "")


def number_of(request: dict[str, Any]) -> int:
    """The number that an answer to a request names. Raises UNREADABLE where it is none."""
    number = request["rqid"]
    if type(number) is not int or not 0 <= number < MOST_REQUESTS:
        raise ValueError(f"a request has the number {number!r:.40}")
    return number


class Room:
    """One battle between our two accounts.

    Attributes:
        over: True once its end was reported.
        asked: seats whose open request we have not answered.
        heard_at: time of its last message, in either direction.
    """

    def __init__(self, battle: int, tag: str, names: tuple[str, str], now: float, *, log: bool = False) -> None:
        self.battle = battle
        self.tag = tag
        self.over = False
        self.asked: set[int] = set()
        self.heard_at = now
        self._names = names
        self._seats = [-1, -1]  # of each account
        self._lines: tuple[list[str], list[str]] = ([], [])  # of each account
        self._numbers = [0, 0]  # of each seat's latest request
        self._turn = 0
        self._text = 0
        self._ended_early = ""  # such an end is no result for training
        self._ended = [False, False]  # by account: its end has arrived
        self._logged = log
        self._log: list[str] = []  # what the first account has been shown, but for its lines since the last record

    @property
    def log(self) -> str:
        """The battle so far, as protocol lines that the first account was sent."""
        return "\n".join([*self._log, *self._lines[0]])

    def account_of(self, seat: int) -> int:
        """The account (0 or 1) at a seat."""
        return self._seats.index(seat)

    def read_message(self, account: int, message: str, tick: HostTick, now: float) -> None:
        """Read the server's message to an account; records, errors and the end go into `tick`.

        Raises UNREADABLE where it is none of a battle's, or one too many.
        """
        self.heard_at = now
        self._text += len(message)
        if self._text > MOST_TEXT:
            raise ValueError(f"more than {MOST_TEXT >> 20} MiB of text")
        lines = self._lines[account]
        for line in message.split("\n")[1:]:
            kind, _, rest = line[1:].partition("|")
            if self.over or not line.startswith("|") or kind in ROOM_ONLY:
                continue
            if kind == "request":
                self._take_request(account, rest, tick)
            elif kind == "error":
                self._take_error(account, rest, tick)
            elif kind in ("win", "tie"):
                lines.append(line)
                self._take_end(account, rest if kind == "win" else None, tick)
            else:
                if kind == "turn":
                    self._turn = max(self._turn, int(rest))
                elif kind == "-message":
                    self._ended_early = early_end(rest, self._names) or self._ended_early
                lines.append(line)

    def choice(self, seat: int, request_number: int, choice: str, now: float) -> str:
        """The message that answers a request."""
        self.asked.discard(seat)
        self.heard_at = now
        return f"/choose {choice}|{request_number}"

    def stalled(self, now: float, patience_sec: float) -> bool:
        """True where the server's next message is overdue by more than `patience_sec`."""
        return not self.asked and now - self.heard_at > patience_sec

    def end(self, tick: HostTick, reason: str, winner_seat: int | None = None) -> None:
        """End it, once."""
        if self.over:
            return
        self.over = True
        if self._logged:
            tick.logs.append((self.battle, self.log))
        tick.ended.append(BattleEnd(self.battle, winner_seat, self._turn, reason))

    def _take_request(self, account: int, text: str, tick: HostTick) -> None:
        request: dict[str, Any] | None = orjson.loads(text) if text and text != "null" else None
        if request is None or "side" not in request:
            return
        seat = SEATS.index(request["side"]["id"])
        self._seats[account], self._seats[1 - account] = seat, 1 - seat
        if request.get("wait"):
            return
        number = number_of(request)
        self._numbers[seat] = number
        self.asked.add(seat)
        tick.records.append(SeatRecord(self.battle, seat, number, self._take_lines(account), request))

    def _take_lines(self, account: int) -> str:
        lines = "\n".join(self._lines[account])
        if lines and account == 0:
            self._log.append(lines)
        self._lines[account].clear()
        return lines

    def _take_error(self, account: int, words: str, tick: HostTick) -> None:
        seat = self._seats[account]
        if seat < 0 or words.startswith(NOTHING_OPEN) or not words.startswith("["):
            return
        unavailable = words.startswith("[Unavailable choice]")
        if not unavailable:
            self.asked.add(seat)
        kind = "unavailable" if unavailable else "invalid"
        tick.errors.append(CommandError(self.battle, seat, self._numbers[seat], kind, words))

    def _take_end(self, account: int, winner: str | None, tick: HostTick) -> None:
        """Each account gets the end; its seat reads its last lines first."""
        self.asked.clear()
        self._ended[account] = True
        if self._seats[account] >= 0:
            lines = self._take_lines(account)
            tick.records.append(SeatRecord(self.battle, self._seats[account], 0, lines, None))
        if not all(self._ended):
            return
        if self._ended_early:
            self.end(tick, self._ended_early)
        elif winner is None or winner not in self._names:
            self.end(tick, "turn_limit" if self._turn >= TURN_LIMIT else "tie")
        else:
            self.end(tick, "win", self._seats[self._names.index(winner)])
