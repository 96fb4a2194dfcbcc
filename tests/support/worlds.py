"""One battle in two worlds that differ in what seat 0 cannot see: as long as it is told the same, it sees the same."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
from poke_env.battle.pokemon_type import PokemonType
from poke_env.data import to_id_str

from simul.env_worker.games.pokemon.doubles.actions import FIRST_MOVE, PER_MOVE, meaning, slot_choices
from simul.env_worker.games.pokemon.encoding.actions import legal_choices
from simul.env_worker.games.pokemon.formats.spec import is_doubles
from simul.env_worker.games.pokemon.host.backend import BattleStart
from simul.env_worker.games.pokemon.host.host_messages import HostTick, SeatRow
from simul.env_worker.games.pokemon.host.node_host import NodeHost
from simul.env_worker.games.pokemon.tables.layout import PLAIN, Extras
from tests.support.hosts import wait
from tests.support.pokemon.recorded import RecordedSeat, encoded, preview_of
from tests.support.pokemon.recorded_doubles import decisions

# Of doubles: the first two moves, not at an ally.
_FOES_MOVES = {action for action in range(FIRST_MOVE, FIRST_MOVE + 2 * PER_MOVE) if meaning(action).target >= 0}
NOBODY: dict[str, Any] = {"side": {"pokemon": []}}
FULL = Extras(sets=True)
BATTLE = 1  # the host plays one at a time

Choices = dict[tuple[int, int], str]  # seat, request number -> words
Choose = Callable[[int, int, dict[str, Any] | None], str | None]  # seat, request number, request -> words, None: stop


class World(NamedTuple):
    """How a battle went: what both seats were told, what the host encoded for seat 0, what was chosen."""

    told: tuple[RecordedSeat, RecordedSeat]
    rows: list[SeatRow]
    choices: Choices

    @property
    def lines(self) -> str:
        """What seat 0 was told, in all."""
        return "\n".join(lines for lines, _ in self.told[0].records)

    @property
    def moves_shown(self) -> set[str]:
        """Moves that seat 0 saw the other side use, or saw in its own requests."""
        shown = {to_id_str(line.split("|")[3]) for line in self.lines.split("\n") if line.startswith("|move|p2")}
        for _, request in self.told[0].records:
            shown.update(move for entry in (request or NOBODY)["side"]["pokemon"] for move in entry["moves"])
        return shown | {f"hiddenpower{kind.name.lower()}" for kind in PokemonType if "hiddenpower" in shown}


def play(host: NodeHost, battle_format: str, start: BattleStart, choose: Choose) -> World:
    """A battle, and once more by the same choices, encoded for seat 0: in doubles the left slot's decisions."""
    choices: Choices = {}

    def noted(seat: int, number: int, request: dict[str, Any] | None) -> str | None:
        words = choose(seat, number, request)
        if words is not None:
            choices[seat, number] = words
        return words

    told, _ = _run(host, battle_format, start, noted)
    encoded = start._replace(encode=(True, False))
    _, rows = _run(host, battle_format, encoded, lambda seat, number, _: choices.get((seat, number)))
    return World(told, rows, choices)


def again(host: NodeHost, battle_format: str, start: BattleStart, world: World, but: Choices | None = None) -> World:
    """Another world, by the choices of this one, `but` for some."""
    choices = world.choices | (but or {})
    return play(host, battle_format, start, lambda seat, number, _: choices.get((seat, number)))


def _run(
    host: NodeHost, battle_format: str, start: BattleStart, choose: Choose
) -> tuple[tuple[RecordedSeat, RecordedSeat], list[SeatRow]]:
    told = (RecordedSeat(battle_format, 0, 0, []), RecordedSeat(battle_format, 0, 1, []))
    rows: list[SeatRow] = []
    host.start_battle(BATTLE, battle_format, start)
    tick = HostTick()
    while not tick.ended:
        host.flush()
        tick = wait(host)
        rows += tick.rows
        asked: list[tuple[int, int, dict[str, Any] | None]] = [(r.seat, r.request_number, None) for r in tick.rows]
        for record in tick.records:
            told[record.seat].records.append((record.lines, record.request))
            if record.request is not None:
                asked.append((record.seat, record.request_number, record.request))
        words = [choose(*one) for one in asked]
        if None in words or any(error.kind != "unavailable" for error in tick.errors):
            host.stop_battle(BATTLE)
            continue
        for (seat, number, _), choice in zip(asked, words):
            host.choose(BATTLE, seat, number, choice or "")
    assert tick.ended[0].reason != "crashed"
    return told, rows


def agreed(one: World, other: World) -> int:
    """Fails if seat 0 sees a difference before it is told of one; returns how many requests it saw no difference in."""
    mine, theirs = one.told[0], other.told[0]
    same = 0
    for (lines, request), (other_lines, other_request) in zip(mine.records, theirs.records):
        if lines != other_lines or (request is None) != (other_request is None):
            break
        assert request == other_request, f"request {same + 1} differs, and no line said why"
        same += request is not None
    for number, (seen, other_seen) in enumerate(zip(sights(mine, same, FULL), sights(theirs, same, FULL), strict=True)):
        assert seen == other_seen, f"decision {number} differs, and nothing told said why"
    rows, other_rows = ([row for row in world.rows if row.request_number <= same] for world in (one, other))
    assert {row.request_number for row in rows} == set(range(1, 1 + same))
    for row, other_row in zip(rows, other_rows, strict=True):
        assert np.array_equal(row.observation, other_row.observation), f"request {row.request_number}: the host's"
        assert np.array_equal(row.mask, other_row.mask)
        assert (row.turn, row.facts, row.pick) == (other_row.turn, other_row.facts, other_row.pick)
    return same


def told_apart(one: World, other: World) -> list[tuple[str, str]]:
    """The lines that first told seat 0 in which of two worlds it is."""
    for (lines, _), (other_lines, _) in zip(one.told[0].records, other.told[0].records):
        if lines != other_lines:
            return [pair for pair in zip_longest(lines.split("\n"), other_lines.split("\n")) if pair[0] != pair[1]]
    return []


def sights(seat: RecordedSeat, requests: int, extras: Extras = PLAIN) -> Iterator[tuple[bytes, bytes]]:
    """Observation and mask of every decision that the first `requests` requests ask for."""
    heard = seat._replace(records=[record for record in seat.records if record[1] is not None][:requests])
    if is_doubles(seat.format):
        for asked in decisions(heard):
            assert asked.decision.mask is not None
            yield asked.decision.observation.tobytes(), asked.decision.mask.tobytes()
        return
    if heard.records and "teamPreview" in heard.records[0][1]:  # type: ignore[operator]
        preview = preview_of(heard)
        while not preview.complete:
            yield preview.encode()[0].tobytes(), bytes(preview.choices.mask)
            preview.pick(preview.choices.mask.index(1))
    for one in encoded(heard, extras):
        yield one.row.tobytes(), bytes(one.choices.mask)


class Chooser:
    """Seat 0 does anything; the other what `shown` allows where it can: its first two moves without a gimmick."""

    def __init__(self, battle_format: str, seed: object, requests: int, switches: tuple[int, ...] = ()) -> None:
        """Stops after so many `requests` of a seat. In singles the other side may switch to these of its team, too."""
        self._doubles = is_doubles(battle_format)
        self._shown = _FOES_MOVES if self._doubles else {6, 7, *switches}
        self._rng = random.Random(f"{battle_format} {seed}")
        self._requests = requests
        self._positions: tuple[dict[str, int], dict[str, int]] = ({}, {})

    def __call__(self, seat: int, number: int, request: dict[str, Any] | None) -> str | None:
        assert request is not None
        if number > self._requests:
            return None
        if "teamPreview" in request:
            return "default"
        positions = self._positions[seat]
        for entry in request["side"]["pokemon"]:
            positions.setdefault(entry["ident"], len(positions))
        if not self._doubles:
            choices = legal_choices(request, positions.__getitem__)
            return choices.command(self._pick(seat, choices.mask))
        words, first = [], None
        for slot in (0, 1):
            choices = slot_choices(request, slot, positions.__getitem__, first)
            first = self._pick(seat, choices.mask)
            words.append(choices.command(first))
        return ", ".join(words)

    def _pick(self, seat: int, mask: bytearray) -> int:
        legal = [action for action, allowed in enumerate(mask) if allowed]
        if seat == 1:
            return self._rng.choice([action for action in legal if action in self._shown] or legal[:1])
        return self._rng.choice(legal)
