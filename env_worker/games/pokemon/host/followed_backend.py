"""A backend that only passes on text, and a follower, as one backend with encoded seats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simul.env_worker.games.pokemon.host.backend import PLAIN_START, BackendKeeper, BattleBackend, BattleStart
from simul.env_worker.games.pokemon.host.follower import Follower
from simul.env_worker.games.pokemon.host.host_messages import BattleEnd, CommandError, HostTick

PLAYED_OUT = ("win", "tie", "turn_limit")


class FollowedBackend:
    """A BattleBackend. `runner`: runs the battles, and reports every seat in records."""

    def __init__(self, runner: BattleBackend, follower: Follower) -> None:
        self._runner = runner
        self._follower = follower
        self._followed: dict[int, tuple[bool, bool]] = {}  # seats of the battles that run
        self._passed_on: dict[int, tuple[bool, bool]] = {}  # of those, seats whose records are passed on, too
        self._given_up: dict[int, BattleEnd] = {}  # by the follower; the next tick of the runner may bring their logs

    def start_battle(self, battle: int, battle_format: str, start: BattleStart = PLAIN_START) -> None:
        plain = start._replace(encode=(False, False), tell=(False, False), play=(None, None), tally=None)
        self._runner.start_battle(battle, battle_format, plain)
        left, right = [encoded or bot is not None for encoded, bot in zip(start.encode, start.play)]
        self._followed[battle] = left, right
        self._passed_on[battle] = start.tell
        if left or right:
            self._follower.follow(battle, start.encode, start.tally, start.play, start.max_turns)

    def choose(self, battle: int, seat: int, request_number: int, choice: str) -> None:
        self._runner.choose(battle, seat, request_number, choice)

    def act(self, battle: int, seat: int, request_number: int, action: int) -> None:
        self._follower.act(battle, seat, request_number, action)

    def stop_battle(self, battle: int) -> None:
        self._runner.stop_battle(battle)
        self._drop(battle)

    def spectate_battle(self, battle: int, on: bool) -> None:
        self._runner.spectate_battle(battle, on)

    def check_format(self, battle_format: str, teams: Sequence[str], timeout_sec: float = 60.0) -> dict[str, Any]:
        return self._runner.check_format(battle_format, teams, timeout_sec)

    def flush(self) -> None:
        self._runner.flush()
        self._follower.flush()

    def exchange(self, tick: HostTick) -> HostTick:
        """Pass what came from the runner to the follower; returns it with the follower's rows. Raises EnvError."""
        self._pass_to_follower(tick)
        tick.ended += self._given_up.values()
        self._given_up.clear()
        followed = self._follower.poll()
        for choice in followed.choices:
            self._runner.choose(*choice)
        for end in followed.ended:
            self._drop(end.battle)
            if end.reason in PLAYED_OUT:
                tick.ended.append(end)
            else:
                self._runner.stop_battle(end.battle)
                self._given_up[end.battle] = end
        tick.rows += followed.rows
        tick.errors += followed.errors
        tick.parse_errors = followed.parse_errors
        tick.played = followed.played
        self.flush()
        return tick

    def _pass_to_follower(self, tick: HostTick) -> None:
        """Move what the follower reads out of `tick`."""
        records, tick.records = tick.records, []
        ended, tick.ended = tick.ended, []
        for error in tick.errors:  # before the request that follows what is unavailable
            self._refuse(error)
        for record in records:
            battle, seat, request_number, lines, request = record
            if not self._follows(battle, seat) or self._passed_on[battle][seat]:
                tick.records.append(record)
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
                tick.ended.append(end)
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
    """A BackendKeeper: keeps what runs the battles (`runner`) by its own keeper, and the following process."""

    def __init__(self, runner: BackendKeeper, follower: Follower) -> None:
        self._runner = runner
        self._follower = follower
        self.backend: FollowedBackend | None = None

    @property
    def pids(self) -> list[int]:
        return [*self._runner.pids, *self._follower.pids]

    @property
    def restarts(self) -> int:
        return self._runner.restarts + self._follower.restarts

    def files(self) -> list[int]:
        return [*self._runner.files(), *self._follower.files()]

    def start(self) -> FollowedBackend:
        runner = self._runner.start()
        try:
            self._follower.start()
        except BaseException:  # what runs the battles would outlive the worker
            self._runner.close()
            raise
        self.backend = FollowedBackend(runner, self._follower)
        return self.backend

    def poll(self) -> HostTick:
        tick = self._runner.poll()
        return tick if self.backend is None else self.backend.exchange(tick)

    def revive(self) -> FollowedBackend | None:
        return self.backend

    def close(self) -> None:
        self._runner.close()
        self._follower.close()
