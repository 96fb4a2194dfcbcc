"""Reads poke-env's Pokemon into ids and `DamageProfile`s."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from poke_env.battle.effect import Effect
from poke_env.battle.move import Move
from poke_env.battle.pokemon import Pokemon
from poke_env.battle.pokemon_type import PokemonType

from simul.env_worker.games.pokemon.battle_view.corrections import Copied
from simul.env_worker.games.pokemon.damage.types import Body
from simul.env_worker.games.pokemon.encoding.expected_damage import DamageProfile
from simul.env_worker.games.pokemon.tables.movedex import move_info
from simul.env_worker.games.pokemon.tables.vocabulary import NO_ITEM, vocabulary

STELLAR = PokemonType.STELLAR.value
POWER_TRICK = Effect.POWER_TRICK
STAT_NAMES = ("atk", "def", "spa", "spd", "spe")


@cache
def move_row(move_id: str) -> int:
    """Row of a move as requests spell it (`return102`, `hiddenpowerfire60`)."""
    rows = vocabulary().move
    return rows.get(move_id) or rows.get(move_id.rstrip("0123456789"), 0)


@cache
def type_row(name: str) -> int:
    """Row of a type as requests spell it; 0 for none."""
    return int(PokemonType.from_name(name).value) if name else 0


def item_row(item: str | None) -> int:
    """Row of an item: `unknown_item` is 0, nothing held (None or empty) has its own."""
    return vocabulary().item.get(item or NO_ITEM, 0)


def types_of(mon: Pokemon) -> tuple[int, ...]:
    """One to three type ids, as they defend now (a stellar Pokemon keeps its own types)."""
    if mon._terastallized and mon._terastallized_type is not None:
        tera = int(mon._terastallized_type.value)
        if tera != STELLAR:
            return (tera,)
    if mon._temporary_types:
        return tuple([kind._value_ for kind in mon._temporary_types])
    return base_types_of(mon)


def base_types_of(mon: Pokemon) -> tuple[int, ...]:
    """One or two type ids without terastallization."""
    if mon._type_2 is None:
        return (mon._type_1._value_,)
    return (mon._type_1._value_, mon._type_2._value_)


def moves_of(mon: Pokemon) -> dict[str, Move]:
    """`Pokemon.moves`, without its way through five properties where it has copied none."""
    moves = mon._moves
    return moves._base_moves if moves._transform_moves is None and moves._mimic_move is None else moves.moves


def own_profile(
    gen: int, mon: Pokemon, entry: dict[str, Any], types: tuple[int, ...], copied: Copied | None
) -> DamageProfile:
    """Everything is known of an own Pokemon. `types` as `types_of` gives them."""
    return DamageProfile(
        own_body(gen, mon, entry, types, copied), tuple([move_info(gen, name) for name in entry["moves"][:4]])
    )


def own_body(gen: int, mon: Pokemon, entry: dict[str, Any], types: tuple[int, ...], copied: Copied | None) -> Body:
    """Of `own_profile`."""
    stats = entry["stats"]
    points = _copied_points(gen, copied) if copied else [float(stats[name]) for name in STAT_NAMES]
    if POWER_TRICK in mon._effects:
        points = _tricked(points)
    return Body(
        types=types,
        base_types=base_types_of(mon),
        level=mon._level,
        stats=(float(mon._max_hp or 1), *points),
        ability=own_ability(mon, entry),
        item=entry["item"],
        terastallized=bool(entry.get("terastallized")),
        tera=type_row(entry.get("teraType", "")),
    )


def own_ability(mon: Pokemon, entry: dict[str, Any]) -> str:
    """Its ability now; until gen 6 a request gives only the one it was born with."""
    now, born = mon._temporary_ability, entry.get("baseAbility") or ""
    return entry.get("ability") or (born if now is None else now)


def foe_profile(gen: int, mon: Pokemon, copied: Copied | None) -> DamageProfile:
    """What has been seen of a foe."""
    moves = list(moves_of(mon))[:4]
    return DamageProfile(
        foe_body(gen, mon, copied), tuple([move_info(gen, name) for name in moves]), guess=len(moves) < 4
    )


def foe_body(gen: int, mon: Pokemon, copied: Copied | None) -> Body:
    """Of `foe_profile`; stats as random battles give them out (even spread, neutral nature)."""
    stats = _estimated(gen, tuple(mon._base_stats.items()), mon._level)
    if copied:
        stats = (stats[0], *_copied_points(gen, copied))
    if POWER_TRICK in mon._effects:
        stats = (stats[0], *_tricked(stats[1:]))
    return Body(
        types=types_of(mon),
        base_types=base_types_of(mon),
        level=mon._level,
        stats=stats,
        ability=mon.ability or "",
        item=mon._item or "",
        terastallized=bool(mon._terastallized),
    )


def _copied_points(gen: int, copied: Copied) -> Sequence[float]:
    """All stats but hp: those of an own model are known."""
    known = copied.stats
    if known is not None:
        points: Sequence[float] = [float(known[name]) for name in STAT_NAMES]
    else:
        points = _estimated(gen, tuple(copied.base_stats.items()), copied.level)[1:]
    return _tricked(points) if copied.tricked else points


def _tricked(points: Sequence[float]) -> Sequence[float]:
    """Power Trick exchanges attack and defence."""
    attack, defence, *others = points
    return [defence, attack, *others]


@lru_cache(maxsize=4096)
def _estimated(gen: int, base: tuple[tuple[str, int], ...], level: int) -> tuple[float, ...]:
    return estimated_stats(gen, dict(base), level)


def estimated_stats(gen: int, base: dict[str, int], level: int) -> tuple[float, ...]:
    """hp, atk, def, spa, spd, spe. Gens 1-2: all DVs 15 and full stat experience; later: 31 IVs and 85 EVs each."""
    bonus = 30 + 63 if gen <= 2 else 31 + 21
    values = [(2 * base[name] + bonus) * level // 100 for name in ("hp", *STAT_NAMES)]
    hp = 1 if base["hp"] == 1 else values[0] + level + 10  # Shedinja
    return (float(hp), *[float(value + 5) for value in values[1:]])
