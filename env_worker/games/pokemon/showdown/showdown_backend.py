"""Many battles over several Showdown servers, behind the interface of a host (`BattleBackend`)."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from simul.env_worker.games.pokemon.host.backend import PLAIN_START, BattleStart
from simul.env_worker.games.pokemon.host.host_messages import BattleEnd, HostTick
from simul.env_worker.games.pokemon.host.node_host import NodeHost
from simul.env_worker.games.pokemon.showdown.room import UNREADABLE, Room
from simul.env_worker.games.pokemon.showdown.server_session import BATTLE, TROUBLE, AccountPair, ServerMessage
from simul.env_worker.games.pokemon.showdown.wakeup_queue import WakeupQueue

CHALLENGE_SEC = 20.0
LOOK_EVERY_SEC = 1.0
REMEMBERED = 1024


class PendingBattle(NamedTuple):
    """A battle that has no room yet."""

    battle: int
    battle_format: str
    teams: tuple[str | None, str | None]
    log: bool


class ShowdownBackend:
    """Battles wait until a pair is free, and go to the pair with the fewest.

    Args:
        node: runs the simulator that checks formats and teams.
        stall_sec: a room whose next message is overdue by this is given up.
    """

    def __init__(
        self,
        node: Path,
        mail: WakeupQueue[ServerMessage],
        say: Callable[[str], None],
        *,
        stall_sec: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._node = node
        self._mail = mail
        self._say = say
        self._stall_sec = stall_sec
        self._clock = clock
        self._look_at = 0.0
        self._wanted: deque[PendingBattle] = deque()
        self._underway: dict[AccountPair, PendingBattle | None] = {}  # None: stopped; its room is still to come
        self._rooms: dict[int, tuple[Room, AccountPair]] = {}
        self._by_tag: dict[tuple[AccountPair, str], Room] = {}
        self._left: deque[tuple[AccountPair, str]] = deque(maxlen=REMEMBERED)
        self._spectated: int | None = None
        self._next_tick = HostTick()
        self.pairs: list[AccountPair] = []

    def start_battle(self, battle: int, battle_format: str, start: BattleStart = PLAIN_START) -> None:
        """A battle, as soon as a pair is free. The server draws the seeds; the accounts keep their names.

        Seats encode and count for themselves. `log`: as the first account saw the battle.
        """
        self._wanted.append(PendingBattle(battle, battle_format, start.teams, start.log))

    def choose(self, battle: int, seat: int, request_number: int, choice: str) -> None:
        """The answer to one request; of a battle that is gone it is dropped."""
        if battle in self._rooms:
            room, pair = self._rooms[battle]
            pair.send(room.account_of(seat), room.choice(seat, request_number, choice, self._clock()), room.tag)

    def act(self, battle: int, seat: int, request_number: int, action: int) -> None:
        raise NotImplementedError("a Showdown server encodes nothing: its seats answer by `choose`, or are followed")

    def stop_battle(self, battle: int) -> None:
        """Forfeit a battle, or drop it where it has not begun; the next tick has its end."""
        if battle in self._rooms:
            room, pair = self._rooms[battle]
            room.end(self._next_tick, "stopped")
            pair.send(0, "/forfeit", room.tag)
            self._leave(room, pair)
            return
        waiting = [*self._wanted, *filter(None, self._underway.values())]
        if any(wanted.battle == battle for wanted in waiting):
            self._next_tick.ended.append(BattleEnd(battle, None, 0, "stopped"))
        self._wanted = deque(wanted for wanted in self._wanted if wanted.battle != battle)
        for pair, underway in self._underway.items():
            if underway is not None and underway.battle == battle:
                self._underway[pair] = None

    def spectate_battle(self, battle: int, on: bool) -> None:
        """As the first account sees it, one battle at a time."""
        if on or self._spectated == battle:
            self._spectated = battle if on else None

    def check_format(self, battle_format: str, teams: Sequence[str], timeout_sec: float = 60.0) -> dict[str, Any]:
        """As the installed package's simulator decides."""
        host = NodeHost(self._node)
        host.start()
        try:
            return host.check_format(battle_format, teams, timeout_sec)
        finally:
            host.close()

    def flush(self) -> None:
        self._begin_battles()
        for pair in self.pairs:
            pair.flush()

    def take_tick(self) -> HostTick:
        """A tick with the ends of battles that were stopped since the last one."""
        tick, self._next_tick = self._next_tick, HostTick()
        return tick

    def handle_message(self, message: ServerMessage, tick: HostTick) -> None:
        """A message of a battle room, or a popup."""
        if message.kind == BATTLE:
            self._take_message(message.pair, message.account, message.text, tick)
        elif message.pair in self._underway:  # the reason why a challenge became no battle
            message.pair.refusal = message.text

    def give_up_stalled(self, tick: HostTick) -> None:
        """Give up challenges and rooms that make no progress; checks once in LOOK_EVERY_SEC."""
        now = self._clock()
        if now < self._look_at:
            return
        self._look_at = now + LOOK_EVERY_SEC
        for pair in [pair for pair in self._underway if now - pair.since > CHALLENGE_SEC]:
            wanted = self._underway.pop(pair)
            if wanted is not None:
                self._wanted.append(wanted)
            self._give_up_challenge(pair)
        for room, pair in list(self._rooms.values()):
            if room.stalled(now, self._stall_sec):
                room.end(tick, "stalled")
                pair.send(0, "/forfeit", room.tag)
                self._leave(room, pair)

    def lose(self, pairs: Sequence[AccountPair], tick: HostTick) -> int:
        """End the battles of lost pairs. Returns how many."""
        lost = [(room, pair) for room, pair in self._rooms.values() if pair in pairs]
        for room, pair in lost:
            room.end(tick, "connection_lost")
            self._forget(room, pair)
        self._wanted.extend(wanted for pair in pairs if (wanted := self._underway.pop(pair, None)) is not None)
        return len(lost)

    def _take_message(self, pair: AccountPair, account: int, message: str, tick: HostTick) -> None:
        tag = message[1:].partition("\n")[0]
        room = self._by_tag.get((pair, tag))
        if room is None:
            if "\n|init|battle" not in message or (pair, tag) in self._left:
                return
            wanted = self._underway.pop(pair, None)
            if wanted is None:  # stopped before it began, or a challenge that was given up
                pair.send(0, "/forfeit", tag)
                self._leave_room(pair, tag)
                return
            room = Room(wanted.battle, tag, pair.names, self._clock(), log=wanted.log)
            pair.live += 1
            self._by_tag[pair, tag] = room
            self._rooms[room.battle] = room, pair
        try:
            room.read_message(account, message, tick, self._clock())
        except UNREADABLE as error:
            self._say(f"battle {room.battle} is aborted: {pair.url} sent what is no battle's message: {error!r}")
            room.end(tick, "unreadable")
            pair.send(0, "/forfeit", room.tag)
        if room.battle == self._spectated:
            tick.spectated.append((room.battle, room.log))
        if room.over:
            self._leave(room, pair)

    def _begin_battles(self) -> None:
        while self._wanted:
            free = [pair for pair in self.pairs if pair not in self._underway]
            if not free:
                return
            pair = min(free, key=lambda pair: pair.live)
            wanted = self._underway[pair] = self._wanted.popleft()
            pair.challenge(wanted.battle_format, wanted.teams, self._clock())

    def _give_up_challenge(self, pair: AccountPair) -> None:
        """Retry later where the server gave a reason; treat a silent server as hung."""
        if pair.refusal:
            self._say(f"{pair.url} begins no battle: {pair.refusal}")
            pair.withdraw()
        else:
            words = f"{pair.url} did not answer a challenge within {CHALLENGE_SEC:.0f} s."
            self._mail.put(ServerMessage(pair, 0, TROUBLE, words))

    def _leave(self, room: Room, pair: AccountPair) -> None:
        self._leave_room(pair, room.tag)
        self._forget(room, pair)

    def _leave_room(self, pair: AccountPair, tag: str) -> None:
        for account in (0, 1):
            pair.send(account, f"/leave {tag}")
        self._left.append((pair, tag))

    def _forget(self, room: Room, pair: AccountPair) -> None:
        room.over = True
        pair.live -= 1
        del self._rooms[room.battle], self._by_tag[pair, room.tag]
