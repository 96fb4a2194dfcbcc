"""A backend that only passes on text, and a follower, as one backend with encoded seats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simul.env_worker.games.pokemon.host.backend import PLAIN_START, BackendKeeper, BattleBackend, BattleStart
from simul.env_worker.games.pokemon.host.follower import Follower
from simul.env_worker.games.pokemon.host.host_messages import BattleEnd, CommandError, HostTick

PLAYED_OUT = ("win", "tie", "turn_limit")


class FollowedBackend:
    """A BattleBackend. `told`: runs the battles, and reports of every seat in records."""

    def __init__(self, told: BattleBackend, follower: Follower) -> None:
        self._told = told
        self._follower = follower
        self._followed: dict[int, tuple[bool, bool]] = {}  # seats of the battles that run
        self._passed_on: dict[int, tuple[bool, bool]] = {}  # of those, seats whose records are passed on, too
        self._given_up: dict[int, BattleEnd] = {}  # by the follower; the next tick of `told` may bring their logs

    def start_battle(self, battle: int, battle_format: str, start: BattleStart = PLAIN_START) -> None:
        told = start._replace(encode=(False, False), tell=(False, False), play=(None, None), tally=None)
        self._told.start_battle(battle, battle_format, told)
        left, right = [encoded or bot is not None for encoded, bot in zip(start.encode, start.play)]
        self._followed[battle] = left, right
        self._passed_on[battle] = start.tell
        if left or right:
            self._follower.follow(battle, start.encode, start.tally, start.play, start.max_turns)

    def choose(self, battle: int, seat: int, request_number: int, choice: str) -> None:
        self._told.choose(battle, seat, request_number, choice)

    def act(self, battle: int, seat: int, request_number: int, action: int) -> None:
        self._follower.act(battle, seat, request_number, action)

    def stop_battle(self, battle: int) -> None:
        self._told.stop_battle(battle)
        self._drop(battle)

    def spectate_battle(self, battle: int, on: bool) -> None:
        self._told.spectate_battle(battle, on)

    def check_format(self, battle_format: str, teams: Sequence[str], timeout_sec: float = 60.0) -> dict[str, Any]:
        return self._told.check_format(battle_format, teams, timeout_sec)

    def flush(self) -> None:
        self._told.flush()
        self._follower.flush()

    def exchange(self, heard: HostTick) -> HostTick:
        """Pass on what the battles were `heard` to say; returns what the seats make of it. Raises EnvError."""
        self._tell(heard)
        heard.ended += self._given_up.values()
        self._given_up.clear()
        followed = self._follower.poll()
        for choice in followed.choices:
            self._told.choose(*choice)
        for end in followed.ended:
            self._drop(end.battle)
            if end.reason in PLAYED_OUT:
                heard.ended.append(end)
            else:
                self._told.stop_battle(end.battle)
                self._given_up[end.battle] = end
        heard.rows += followed.rows
        heard.errors += followed.errors
        heard.parse_errors = followed.parse_errors
        heard.played = followed.played
        self.flush()
        return heard

    def _tell(self, heard: HostTick) -> None:
        """Take out of `heard` what the follower is told instead."""
        records, heard.records = heard.records, []
        ended, heard.ended = heard.ended, []
        for error in heard.errors:  # before the request that follows what is unavailable
            self._refuse(error)
        for record in records:
            battle, seat, request_number, lines, request = record
            if not self._follows(battle, seat) or self._passed_on[battle][seat]:
                heard.records.append(record)
            if not self._follows(battle, seat):
                continue
            if request is None:
                self._follower.hear(battle, seat, lines)
            else:
                self._follower.see(battle, seat, request_number, lines, request)
        for end in ended:
            if end.reason in PLAYED_OUT and any(self._followed.get(end.battle, ())):
                self._follower.end(end)  # it comes back behind the rows of its seats
            elif end.battle not in self._given_up:
                heard.ended.append(end)
                self._drop(end.battle)

    def _refuse(self, error: CommandError) -> None:
        battle, seat, request_number, kind, _ = error
        if battle is not None and seat is not None and request_number is not None and self._follows(battle, seat):
            self._follower.refuse(battle, seat, request_number, kind)

    def _follows(self, battle: int, seat: int) -> bool:
        return battle in self._followed and self._followed[battle][seat]

    def _drop(self, battle: int) -> None:
        self._followed.pop(battle, None)
        self._passed_on.pop(battle, None)
        self._follower.forget(battle)


class FollowedKeeper:
    """A BackendKeeper: keeps what runs the battles (`told`) by its own keeper, and the following process."""

    def __init__(self, told: BackendKeeper, follower: Follower) -> None:
        self._told = told
        self._follower = follower
        self.backend: FollowedBackend | None = None

    @property
    def pids(self) -> list[int]:
        return [*self._told.pids, *self._follower.pids]

    @property
    def restarts(self) -> int:
        return self._told.restarts + self._follower.restarts

    def files(self) -> list[int]:
        return [*self._told.files(), *self._follower.files()]

    def start(self) -> FollowedBackend:
        told = self._told.start()
        try:
            self._follower.start()
        except BaseException:  # what runs the battles would outlive the worker
            self._told.close()
            raise
        self.backend = FollowedBackend(told, self._follower)
        return self.backend

    def poll(self) -> HostTick:
        heard = self._told.poll()
        return heard if self.backend is None else self.backend.exchange(heard)

    def revive(self) -> FollowedBackend | None:
        return self.backend

    def close(self) -> None:
        self._told.close()
        self._follower.close()
