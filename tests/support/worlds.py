"""One battle in two worlds that differ in what seat 0 cannot see: as long as it is told the same, it sees the same."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
from poke_env.battle.pokemon_type import PokemonType
from poke_env.data import to_id_str

from simul.env_worker.games.pokemon.formats.spec import is_doubles
from simul.env_worker.games.pokemon.host.backend import BattleStart
from simul.env_worker.games.pokemon.host.host_messages import HostTick, SeatRow
from simul.env_worker.games.pokemon.host.node_host import NodeHost
from simul.env_worker.games.pokemon.tables.layout import Extras
from tests.support.hosts import wait
from tests.support.pokemon.recorded import RecordedSeat
from tests.support.pokemon.views import SeatToSee, Seen, Told, Views

_FIRST_MOVES = {6, 7}
_FIRST_MOVES_OF_DOUBLES = {9, 10, 11, 14, 15, 16}  # not at an ally
NOBODY: dict[str, Any] = {"side": {"pokemon": []}}
FULL = Extras(sets=True)
BATTLE = 1  # the host plays one at a time

Choices = dict[tuple[int, int], str]  # seat, request number -> words
Asked = tuple[int, int, str, dict[str, Any] | None]  # seat, request number, lines, request (an encoded seat's: None)
Choose = Callable[[Asked], str | None]  # -> words, None: stop


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
            moves = [move for entry in (request or NOBODY)["side"]["pokemon"] for move in entry["moves"]]
            shown.update("hiddenpower" if move.startswith("hiddenpower") else move for move in moves)
        return shown | {f"hiddenpower{kind.name.lower()}" for kind in PokemonType if "hiddenpower" in shown}


def play(host: NodeHost, battle_format: str, start: BattleStart, choose: Choose) -> World:
    """A battle, and once more by the same choices, encoded for seat 0: in doubles the left slot's decisions."""
    choices: Choices = {}

    def noted(asked: Asked) -> str | None:
        words = choose(asked)
        if words is not None:
            choices[asked[:2]] = words
        return words

    told, _ = _run(host, battle_format, start, noted)
    encoded = start._replace(encode=(True, False))
    _, rows = _run(host, battle_format, encoded, lambda asked: choices.get(asked[:2]))
    return World(told, rows, choices)


def again(host: NodeHost, battle_format: str, start: BattleStart, world: World, but: Choices | None = None) -> World:
    """Another world, by the choices of this one, `but` for some."""
    choices = world.choices | (but or {})
    return play(host, battle_format, start, lambda asked: choices.get(asked[:2]))


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
        asked: list[Asked] = [(row.seat, row.request_number, "", None) for row in tick.rows]
        for record in tick.records:
            told[record.seat].records.append((record.lines, record.request))
            if record.request is not None:
                asked.append((record.seat, record.request_number, record.lines, record.request))
        words = [choose(one) for one in asked]
        if None in words or any(error.kind != "unavailable" for error in tick.errors):
            host.stop_battle(BATTLE)
            continue
        for (seat, number, *_), choice in zip(asked, words):
            host.choose(BATTLE, seat, number, choice or "")
    assert tick.ended[0].reason != "crashed"
    return told, rows


def agreed(views: Views, one: World, other: World) -> int:
    """Fails if seat 0 sees a difference before it is told of one; returns how many requests it saw no difference in."""
    mine, theirs = one.told[0], other.told[0]
    same = 0
    for (lines, request), (other_lines, other_request) in zip(mine.records, theirs.records):
        if lines != other_lines or (request is None) != (other_request is None):
            break
        assert request == other_request, f"request {same + 1} differs, and no line said why"
        same += request is not None
    sights, other_sights = views.seen(_first_requests(seat, same) for seat in (mine, theirs))
    for number, (seen, other_seen) in enumerate(zip(sights.decisions, other_sights.decisions, strict=True)):
        assert np.array_equal(seen.observation, other_seen.observation), f"decision {number} differs, nothing said why"
        assert np.array_equal(seen.mask, other_seen.mask)
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


def _first_requests(seat: RecordedSeat, requests: int) -> SeatToSee:
    """Every decision that so many requests ask for: all picks of a team preview, both slots of doubles."""
    told = [Told(lines, request) for lines, request in seat.records if request is not None]
    return SeatToSee(seat.format, seat.seat, told[:requests], FULL)


class Chooser:
    """Seat 0 does anything; the other what it may show where it can: its first two moves without a gimmick."""

    def __init__(
        self, views: Views, battle_format: str, seed: object, requests: int, switches: tuple[int, ...] = ()
    ) -> None:
        """Stops after so many `requests` of a seat. In singles the other side may switch to these of its team, too."""
        self._shown = _FIRST_MOVES_OF_DOUBLES if is_doubles(battle_format) else {*_FIRST_MOVES, *switches}
        self._rng = random.Random(f"{battle_format} {seed}")
        self._requests = requests
        self._views = [views.open(battle_format, seat) for seat in (0, 1)]

    def __call__(self, asked: Asked) -> str | None:
        seat, number, lines, request = asked
        assert request is not None
        if number > self._requests:
            return None
        answer: str | Seen = self._views[seat].see(lines, request)
        if "teamPreview" in request:
            return "default"
        while not isinstance(answer, str):
            answer = self._views[seat].act(self._pick(seat, answer.legal))
        return answer

    def _pick(self, seat: int, legal: list[int]) -> int:
        if seat == 1:
            return self._rng.choice([action for action in legal if action in self._shown] or legal[:1])
        return self._rng.choice(legal)
