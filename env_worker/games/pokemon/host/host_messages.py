"""Messages of the host as types; node/host.mjs describes the bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from simul.env_worker.games.pokemon.host.tally import RewardFacts, Standing, Tally
from simul.env_worker.games.pokemon.tables.layout import NUM_ACTIONS, OBSERVATION_SIZE


class RequestTeams:
    """The team of every seat as its last request described it.

    An unchanged entry is the same object as in the request before: do not modify entries.
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[int, int], list[dict[str, Any]]] = {}

    def complete(self, battle: int, seat: int, request: dict[str, Any] | None) -> None:
        """Put whole entries into the next request of a seat; None: it was the last."""
        key = (battle, seat)
        if request is None:
            self._entries.pop(key, None)
            return
        before, side = self._entries.get(key, []), request["side"]
        side["pokemon"] = self._entries[key] = [_entry(said, before) for said in side["pokemon"]]

    def forget(self, battle: int) -> None:
        """Drop both teams of a battle that is over."""
        for seat in (0, 1):
            self._entries.pop((battle, seat), None)


def _entry(said: Any, before: list[dict[str, Any]]) -> dict[str, Any]:
    if isinstance(said, int):
        return before[said]
    if isinstance(said, list):
        k, changed = said
        return {**before[k], **changed}
    entry: dict[str, Any] = said
    return entry


_HEAD_BYTES = 76


@cache
def _row(observation_size: int, num_actions: int) -> np.dtype[Any]:
    """One encoded decision as the host writes it."""
    used = _HEAD_BYTES + 2 * observation_size + num_actions
    return np.dtype(
        {
            "names": ["standing", "head", "observation", "mask"],
            "formats": ["(4,)<f8", "(11,)<i4", f"({observation_size},)<f2", f"({num_actions},)u1"],
            "offsets": [0, 32, _HEAD_BYTES, _HEAD_BYTES + 2 * observation_size],
            "itemsize": -(-used // 8) * 8,
        }
    )


class SeatRecord(NamedTuple):
    """One seat's news: protocol lines since its last record and, unless it is over, a request."""

    battle: int
    seat: int
    request_number: int
    lines: str
    request: dict[str, Any] | None


class SeatRow(NamedTuple):
    """An encoded seat's decision. observation: float16 [D]; mask: uint8 [A], 1 = legal; both read-only views.

    facts: what rewards are computed from.
    pick: this is the k-th pick of a team preview; 0 = it is none.
    label: what each slot of the opponent (left, right) did when this seat last decided, see
    node/simulate/choice_labels.mjs; -1: nothing that is known.
    """

    battle: int
    seat: int
    request_number: int
    turn: int
    facts: RewardFacts
    observation: NDArray[np.float16]
    mask: NDArray[np.uint8]
    pick: int = 0
    label: tuple[int, ...] = (-1, -1)


class SeatChoice(NamedTuple):
    """The answer of a followed seat to one request, in the simulator's words."""

    battle: int
    seat: int
    request_number: int
    choice: str


class CommandError(NamedTuple):
    """A refused command; kind: unavailable (a new request follows) | invalid (the request stays
    open; an encoded seat gets a new row) | exhausted | illegal | stale | crashed | malformed."""

    battle: int | None
    seat: int | None
    request_number: int | None
    kind: str
    message: str


class BattleEnd(NamedTuple):
    """reason: win | tie | turn_limit | truncated | stopped | crashed. final: where each encoded seat whose lines are
    counted ended, [standing, tally] or None. labels: `SeatRow.label` of each seat's last decision."""

    battle: int
    winner_seat: int | None
    turns: int
    reason: str
    final: Sequence[tuple[Sequence[float], Sequence[int]] | None] = (None, None)
    labels: Sequence[Sequence[int]] = ((-1, -1), (-1, -1))

    def facts(self, seat: int) -> RewardFacts | None:
        """Where `seat` ended, its last turn played."""
        final = self.final[seat]
        return None if final is None else RewardFacts(_standing(final[0]), self.turns + 1, Tally._make(final[1]))


class Played(NamedTuple):
    """What bots did in battles that are over. previews: decisions at a team preview; refused: answers that the
    simulator called invalid."""

    decisions: int = 0
    previews: int = 0
    refused: int = 0


@dataclass
class HostTick:
    """Everything the host has written since the last poll, in order within each list.

    `observation_size`, `num_actions`: those of the tables the host was sent. `teams`: the state that
    incremental requests build on.
    """

    observation_size: int = OBSERVATION_SIZE
    num_actions: int = NUM_ACTIONS
    teams: RequestTeams = field(default_factory=RequestTeams)
    records: list[SeatRecord] = field(default_factory=list)
    rows: list[SeatRow] = field(default_factory=list)
    choices: list[SeatChoice] = field(default_factory=list)
    errors: list[CommandError] = field(default_factory=list)
    ended: list[BattleEnd] = field(default_factory=list)
    logs: list[tuple[int, str]] = field(default_factory=list)  # (battle, protocol lines) where one was asked for
    spectated: list[tuple[int, str]] = field(default_factory=list)  # the same of battles that run and are watched
    parse_errors: dict[str, int] = field(default_factory=dict)
    played: list[Played] = field(default_factory=list)
    pong: Any = None
    hello: dict[str, Any] = field(default_factory=dict)
    format: dict[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.records or self.rows or self.choices or self.errors or self.ended)

    def read_messages(self, buffer: bytearray) -> None:
        """Move every whole message out of the front of `buffer`."""
        start, row_bytes = 0, _row(self.observation_size, self.num_actions).itemsize
        while (end := buffer.find(b"\n", start)) >= 0:
            message = orjson.loads(memoryview(buffer)[start:end])
            behind = end + 1 + message.get("encoded", 0) * row_bytes
            if behind > len(buffer):
                break
            self._read_message(message)
            if behind > end + 1:
                self._read_rows(bytes(memoryview(buffer)[end + 1 : behind]))
            start = behind
        del buffer[:start]

    def _read_message(self, message: dict[str, Any]) -> None:
        for row in message.get("records", ()):
            record = SeatRecord._make(row)
            self.teams.complete(record.battle, record.seat, record.request)
            self.records.append(record)
        self.choices += [SeatChoice._make(row) for row in message.get("choices", ())]
        self.errors += [CommandError._make(row) for row in message.get("errors", ())]
        for row in message.get("ended", ()):
            end = BattleEnd(*row)
            self.teams.forget(end.battle)
            self.ended.append(end)
        self.logs += [(battle, text) for battle, text in message.get("logs", ())]
        self.spectated += [(battle, text) for battle, text in message.get("spectated", ())]
        for event, count in message.get("parse_errors", {}).items():
            self.parse_errors[event] = self.parse_errors.get(event, 0) + count
        if "played" in message:
            self.played.append(Played._make(message["played"]))
        self.pong = message.get("pong", self.pong)
        self.hello = message.get("hello", self.hello)
        self.format = message.get("format", self.format)

    def _read_rows(self, data: bytes) -> None:
        rows = np.frombuffer(data, _row(self.observation_size, self.num_actions))
        observations, masks = list(rows["observation"]), list(rows["mask"])
        for head, standing, observation, mask in zip(
            rows["head"].tolist(), rows["standing"].tolist(), observations, masks
        ):
            battle, seat, request_number, turn, pick, *tally, left, right = head
            facts = RewardFacts(_standing(standing), turn, Tally._make(tally))
            self.rows.append(SeatRow(battle, seat, request_number, turn, facts, observation, mask, pick, (left, right)))


def _standing(numbers: Sequence[float]) -> Standing:
    own_alive, foe_alive, own_hp, foe_hp = numbers
    return own_alive, foe_alive, own_hp, foe_hp
