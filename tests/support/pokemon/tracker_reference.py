"""SeatBattle's state in the words of the tracker, and the tracker's own from Node."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from poke_env.battle.pokemon import Pokemon

from simul.env_worker.games.pokemon.battle_view.seat_battle import SeatBattle, SeatDoubleBattle, SeatView
from simul.env_worker.games.pokemon.encoding.host_tables import tracker_tables
from simul.env_worker.games.pokemon.install.node import find_node

SCRIPT = Path(__file__).with_name("tracker_states.mjs")


class Seat(NamedTuple):
    """What one seat was told: records are (lines, request or None)."""

    role: str
    gen: int
    records: list[tuple[str, dict[str, Any] | None]]
    doubles: bool = False


def write_tables(folder: Path) -> Path:
    """Tables of all generations, for the script."""
    path = folder / "tables.json"
    path.write_bytes(orjson.dumps({str(gen): tracker_tables(gen) for gen in range(1, 10)}))
    return path


def tracker_states(tables: Path, seats: Iterable[Seat]) -> list[dict[str, Any]]:
    """The tracker's state at every request, seat after seat."""
    lines = b"\n".join(orjson.dumps(s._asdict()) for s in seats)
    done = subprocess.run([find_node().path, SCRIPT, tables], input=lines, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return [orjson.loads(line) for line in done.stdout.splitlines() if line]


def reference_states(seat: Seat) -> Iterator[dict[str, Any]]:
    """The same from SeatBattle."""
    battle = (SeatDoubleBattle if seat.doubles else SeatBattle)(seat.role, seat.gen)
    for lines, request in seat.records:
        if request is None:
            continue
        battle.feed(lines)
        battle.sync(request)
        yield state_of(battle)


def state_of(battle: SeatView) -> dict[str, Any]:
    b = battle
    return {
        "turn": b._turn,
        "team": [[ident, mon_state(b, mon)] for ident, mon in b._team.items()],
        "opponentTeam": [[ident, mon_state(b, mon)] for ident, mon in b._opponent_team.items()],
        "previewed": [mon_state(b, mon) for mon in b._teampreview_opponent_team],
        "weather": _named(b._weather),
        "fields": _named(b._fields),
        "sideConditions": _named(b._side_conditions),
        "opponentSideConditions": _named(b._opponent_side_conditions),
        "used": [b._used_tera, b._used_mega_evolve, b._used_z_move, b._used_dynamax],
        "opponentUsed": [
            b._opponent_used_tera,
            b._opponent_used_mega_evolve,
            b._opponent_used_z_move,
            b._opponent_used_dynamax,
        ],
        "entries": b.entries,
        "fighters": [mon._species for mon in b.all_active_pokemons if mon is not None],
        "parseErrors": b.parse_errors,
    }


def _named(conditions: dict[Any, int]) -> list[list[Any]]:
    return [[condition.name, number] for condition, number in conditions.items()]


def mon_state(battle: SeatView, mon: Pokemon) -> dict[str, Any]:
    counters, facts = battle.counters, battle.corrections.facts(mon)
    ailment = counters.ailment_of(mon)
    return {
        "species": mon._species,
        "level": mon._level,
        "hp": mon._current_hp,
        "maxHp": mon._max_hp,
        "status": mon._status.name if mon._status else None,
        "statusCounter": mon._status_counter,
        "active": mon._active,
        "revealed": mon._revealed,
        "item": mon._item,
        "ability": mon.ability,
        "type1": mon._type_1.value,
        "type2": mon._type_2.value if mon._type_2 else 0,
        "temporaryTypes": [kind.value for kind in mon._temporary_types],
        "terastallized": mon._terastallized,
        "terastallizedType": mon._terastallized_type.value if mon._terastallized_type else 0,
        "baseStats": mon.base_stats,
        "boosts": mon._boosts,
        "effects": [effect.name for effect in mon._effects],
        "moves": [[key, move.id, move.current_pp, counters.pp_left([move])[0]] for key, move in mon.moves.items()],
        "ailment": [ailment.asleep, ailment.resting, ailment.hurt],
        "mustRecharge": mon._must_recharge,
        "lastMove": facts.last_move,
        "copied": facts.copied and [facts.copied.base_stats, facts.copied.level, facts.copied.stats],
        "returnsTo": facts.returns_to,
        "trapper": facts.trapper and facts.trapper._species,
        "preparing": mon._preparing_move is not None or bool(mon._preparing_target),
        "protectCounter": mon._protect_counter,
        "activeTurns": mon._active_turns,
        "transformed": mon._moves._transform_moves is not None,
        "mimicMove": mon.mimic_move.id if mon.mimic_move else None,
    }


def first_difference(expected: Any, found: Any, path: str = "") -> str | None:
    """Where two states part, as a path with both values; None if nowhere."""
    if isinstance(expected, dict) and isinstance(found, dict) and expected.keys() == found.keys():
        pairs = [(f"{path}.{key}", expected[key], found[key]) for key in expected]
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = [(f"{path}[{i}]", one, other) for i, (one, other) in enumerate(zip(expected, found))]
    else:
        return None if expected == found else f"{path}: {expected!r} in poke-env, {found!r} in the tracker"
    return next((told for key, one, other in pairs if (told := first_difference(one, other, key))), None)


def compare(tables: Path, seats: list[Seat]) -> int:
    """Fails at the first request after which the two disagree; returns how many requests there were."""
    return sum(compare_generations(tables, seats).values())


def compare_generations(tables: Path, seats: list[Seat]) -> Counter[int]:
    """The same, by generation."""
    states = iter(tracker_states(tables, seats))
    count: Counter[int] = Counter()
    for number, seat in enumerate(seats):
        for expected in reference_states(seat):
            found = next(states)
            count[seat.gen] += 1
            if expected != found:
                told = first_difference(orjson.loads(orjson.dumps(expected)), found)
                assert told is None, f"seat {number}, gen {seat.gen}, turn {expected['turn']}: {told}"
    assert next(states, None) is None
    return count
