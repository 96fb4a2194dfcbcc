"""Seats of battles that run elsewhere, tracked and encoded by a Node process that may die at any time.

follower = Follower(following_keeper(node, tables), say)
follower.start()
follower.follow(7, (True, False))                         # of battle 7, seat 0
follower.see(7, 0, request_number, lines, request)        # a row follows
follower.act(7, 0, request_number, action)                # a choice follows, or another row
follower.flush()
tick = follower.poll()                                    # rows, choices, errors, ends
follower.end(BattleEnd(7, ...))                           # the end follows, behind all rows

What a battle was told is kept until its end and told again to a new process. The same commands are answered by the
same bits, so those answers that are known are dropped.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson

from simul.env_worker.games.pokemon.host.backend import Play
from simul.env_worker.games.pokemon.host.host_keeper import HostKeeper
from simul.env_worker.games.pokemon.host.host_messages import BattleEnd, HostTick
from simul.env_worker.games.pokemon.host.node_host import HostDied

MOST_KEPT = 32 << 20  # bytes of one battle; a request is about 6 KiB


def following_keeper(node: Path, tables: dict[str, Any], index: int = 0, silence_limit_sec: float = 20.0) -> HostKeeper:
    """The keeper of a process that follows; it answers every command at once."""
    return HostKeeper(
        node, accelerate=False, index=index, tables=tables, replies_per_write=1, silence_limit_sec=silence_limit_sec,
        follow=True,
    )  # fmt: skip


class _Journal:
    """The commands of one battle, and how many answers of each kind have come.

    Attributes:
        unanswered: numbers of the commands that are not answered, by the process that runs now.
        died_at: number of the command at which the last process died, None where it was none of this battle's.
    """

    def __init__(self) -> None:
        self.commands: list[tuple[bytes, bool]] = []  # (command, True = it is answered)
        self.size = 0
        self.unanswered: deque[int] = deque()
        self.died_at: int | None = None
        self._known: Counter[str] = Counter()
        self._again: Counter[str] = Counter()  # of those, how many a new process has still to repeat

    def keep(self, command: bytes, answered: bool) -> None:
        self.commands.append((command, answered))
        self.size += len(command)

    @property
    def at(self) -> int | None:
        """Number of the command that waits for its first answer; None where the next answer is one that is known."""
        return None if self._again.total() else self._known.total()

    def lose_process(self) -> None:
        """The process is gone: all commands are sent again."""
        self.unanswered.clear()
        self._again = Counter(self._known)

    def is_news(self, kind: str) -> bool:
        """Count an answer. False = the process before gave it already."""
        if self.unanswered:
            self.unanswered.popleft()
        if self._again[kind]:
            self._again[kind] -= 1
            return False
        self._known[kind] += 1
        return True


class Follower:
    """Not thread-safe. Ends a battle as `unreadable` or `too_long` if its text cannot be passed on, as `crashed` if it
    ends two processes.

    `say`: called with sentences for the view.
    """

    def __init__(self, keeper: HostKeeper, say: Callable[[str], object]) -> None:
        self._keeper = keeper
        self._say = say
        self._journals: dict[int, _Journal] = {}
        self._sent = 0
        self._ended_here: list[BattleEnd] = []

    @property
    def pids(self) -> list[int]:
        """The process, where it runs."""
        return self._keeper.pids

    @property
    def restarts(self) -> int:
        """How often the process was started again."""
        return self._keeper.restarts

    def start(self) -> None:
        """Start the process. Raises EnvError."""
        self._keeper.start()

    def files(self) -> list[int]:
        """What is readable when there is something to poll."""
        return self._keeper.files()

    def close(self) -> None:
        """Stop the process."""
        self._keeper.close()

    def follow(
        self,
        battle: int,
        seats: tuple[bool, bool],
        tally: int | None = None,
        play: tuple[Play | None, Play | None] = (None, None),
        max_turns: int | None = None,
    ) -> None:
        """A battle begins. `seats`: those that are followed and encoded. The others: as in `BattleStart`."""
        self._journals[battle] = _Journal()
        begins = {"c": "follow", "b": battle, "seats": seats, "tally": tally, "play": play, "max_turns": max_turns}
        self._queue(begins, answered=False)

    def see(self, battle: int, seat: int, request_number: int, lines: str, request: dict[str, Any]) -> None:
        """A seat's lines since its last request, and the request."""
        self._queue({"c": "see", "b": battle, "s": seat, "r": request_number, "lines": lines, "request": request})

    def hear(self, battle: int, seat: int, lines: str) -> None:
        """A seat's last lines."""
        self._queue({"c": "hear", "b": battle, "s": seat, "lines": lines}, answered=False)

    def act(self, battle: int, seat: int, request_number: int, action: int) -> None:
        """The answer to a row, as one of its legal actions."""
        self._queue({"c": "choose", "b": battle, "s": seat, "r": request_number, "a": action})

    def refuse(self, battle: int, seat: int, request_number: int, kind: str) -> None:
        """The server calls the seat's last choice `invalid`: a row without it follows, or the error `exhausted`.

        After one that is `unavailable` the server sends another request.
        """
        command = {"c": "refuse", "b": battle, "s": seat, "r": request_number, "kind": kind}
        self._queue(command, answered=kind == "invalid")

    def end(self, end: BattleEnd) -> None:
        """A battle is over. The end follows behind all rows, with what rewards need of it."""
        self._queue({"c": "end", "b": end.battle, "winner": end.winner_seat, "turns": end.turns, "reason": end.reason})

    def forget(self, battle: int) -> None:
        """Follow this battle no longer; what still comes of it is ignored."""
        if self._journals.pop(battle, None) is not None and self._keeper.backend is not None:
            self._keeper.backend.stop_battle(battle)

    def flush(self) -> None:
        """Send everything queued."""
        if self._keeper.backend is not None:
            self._keeper.backend.flush()

    def poll(self) -> HostTick:
        """The news of the battles that are followed. Raises EnvError after too many deaths."""
        tick = HostTick()
        if self._keeper.backend is None:
            if self._keeper.revive() is not None:
                self._send_all_again()
        else:
            try:
                self._take_news(self._keeper.poll(), tick)
            except HostDied as death:
                self._on_process_death(death)
        tick.ended += self._ended_here
        self._ended_here = []
        return tick

    def _queue(self, command: dict[str, Any], *, answered: bool = True) -> None:
        """Keep and queue a command; of a battle that is gone it is dropped."""
        battle = command["b"]
        journal = self._journals.get(battle)
        if journal is None:
            return
        try:
            data = orjson.dumps(command)
        except orjson.JSONEncodeError as error:  # a request may nest deeper than orjson writes
            self._say(f"battle {battle} is aborted: what its server has sent cannot be passed on: {error}")
            self._end_here(battle, "unreadable")
            return
        if journal.size + len(data) > MOST_KEPT:
            self._say(f"battle {battle} is aborted: its server has sent {(journal.size + len(data)) >> 20} MiB of text")
            self._end_here(battle, "too_long")
            return
        journal.keep(data, answered)
        self._send(journal, data, answered)

    def _send(self, journal: _Journal, command: bytes, answered: bool) -> None:
        if self._keeper.backend is None:
            return
        self._sent += 1
        if answered:
            journal.unanswered.append(self._sent)
        self._keeper.backend.queue(command)

    def _send_all_again(self) -> None:
        for journal in self._journals.values():
            for command, answered in journal.commands:
                self._send(journal, command, answered)
        self._say(f"the following host runs again, and follows {len(self._journals)} battles again")
        self.flush()

    def _take_news(self, received: HostTick, tick: HostTick) -> None:
        """Move what is new in `received` to `tick`."""
        tick.rows += self._news(received.rows, "row")
        tick.choices += self._news(received.choices, "choice")
        tick.errors += self._news(received.errors, "error")
        tick.ended += self._news(received.ended, "end")
        tick.parse_errors = received.parse_errors
        tick.played = received.played
        for end in tick.ended:
            self._journals.pop(end.battle, None)

    def _news(self, answers: list[Any], kind: str) -> Iterator[Any]:
        for answer in answers:
            journal = self._journals.get(answer.battle)
            if journal is not None and journal.is_news(kind):
                yield answer

    def _on_process_death(self, death: HostDied) -> None:
        """The next process receives every battle again, but for one at whose command two have died."""
        self._say(f"{death}; its battles go on with a new one")
        at_work = {journal.unanswered[0]: battle for battle, journal in self._journals.items() if journal.unanswered}
        if at_work:
            self._suspect(at_work[min(at_work)])
        for journal in self._journals.values():
            journal.lose_process()

    def _suspect(self, battle: int) -> None:
        """A process has died at a command of this battle. It may have been killed; a second one was not."""
        journal = self._journals[battle]
        if journal.at is not None and journal.at == journal.died_at:
            self._say(f"battle {battle} is aborted: two following hosts have died of what its server sent")
            self._end_here(battle, "crashed")
        journal.died_at = journal.at

    def _end_here(self, battle: int, reason: str) -> None:
        self.forget(battle)
        self._ended_here.append(BattleEnd(battle, None, 0, reason))
