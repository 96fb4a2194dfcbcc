"""The block of one own move: what it is, and what it would do now."""

from __future__ import annotations

import struct
from functools import cache
from typing import Any, NamedTuple

from poke_env.battle.pokemon import Pokemon

from simul.env_worker.games.pokemon.encoding.expected_damage import MoveDamage
from simul.env_worker.games.pokemon.encoding.features import RAIN, STAGES, SUN
from simul.env_worker.games.pokemon.encoding.field_state import FieldState, Strength
from simul.env_worker.games.pokemon.encoding.profiles import move_row
from simul.env_worker.games.pokemon.tables.layout import MOVE_WIDTH
from simul.env_worker.games.pokemon.tables.movedex import PHYSICAL, MoveInfo, move_info

FIRE, WATER = 7, 18
PRESENT_WIDTH = 8
STATIC_WIDTH = MOVE_WIDTH - PRESENT_WIDTH
NO_STATIC = (0.0,) * (STATIC_WIDTH - 2)
_STATIC = struct.Struct(f"<{STATIC_WIDTH}e")


# What stands in a slot: the move's name, what is known of it (None: no data), and what it does to the foe that is out
# (None where there is none, or where it is not the Pokemon's own).
OwnMove = tuple[str, MoveInfo | None, MoveDamage | None]
NO_MOVE: OwnMove = ("", None, None)


class DamageScale(NamedTuple):
    """Factors of stages, burn, screens and weather on the damage of one Pokemon's moves to another, now.

    Attributes:
        physical, special: of moves of either category; on_defence: of special ones that meet the target's defence.
        water, fire: further factor of the weather for these types.
        target_hp: the target's hp fraction.
    """

    physical: float
    special: float
    on_defence: float
    water: float
    fire: float
    target_hp: float


def damage_scale(field_state: FieldState, user: Strength, target: Strength, foe: Pokemon) -> DamageScale:
    """`foe` is the target."""
    physical_dealt, special_dealt, _, _ = user
    _, _, physical_taken, special_taken = target
    special, boosts = special_dealt * special_taken, foe._boosts
    rain, sun = field_state.weather[RAIN], field_state.weather[SUN]
    return DamageScale(
        physical_dealt * physical_taken,
        special,
        special * (STAGES[boosts["spd"] + 6] / STAGES[boosts["def"] + 6]),
        1.5 if rain else 0.5 if sun else 1.0,
        1.5 if sun else 0.5 if rain else 1.0,
        foe.current_hp_fraction,
    )


def offered_move(gen: int, own: OwnMove, entry: dict[str, Any] | None) -> OwnMove:
    """The Pokemon's own move in a slot, or what the request offers in its place (struggle or its like)."""
    if entry is None or entry["id"] in own[0]:
        return own
    return entry["id"], move_info(gen, entry["id"]), None


def static_numbers(name: str, info: MoveInfo | None) -> tuple[float, ...]:
    """The first of `layout.MOVE`: what follows from the move alone."""
    if info is None:
        return (move_row(name), 0, *NO_STATIC)
    return (info.row, info.type, *info.static)


@cache
def static_bytes(gen: int, name: str) -> bytes:
    """`static_numbers` of a move as float16."""
    return _STATIC.pack(*static_numbers(name, move_info(gen, name)))


def present_numbers(
    move: OwnMove, entry: dict[str, Any] | None, damage_scale: DamageScale | None, usable: int, can_tera: bool
) -> tuple[float, ...]:
    """The rest: what it is worth now. `entry`: what the request says of it, None where it does not offer it."""
    _, info, expected = move
    pp = 0.0 if entry is None else entry.get("pp", 0) / (entry.get("maxpp") or 1)
    pp = pp if pp < 1.0 else 1.0
    if info is None or expected is None or damage_scale is None:
        return (1.0, usable, pp, 0.0, 0.0, 0.0, 0.0, 0.0)
    damage, effectiveness, stab, tera = expected
    if not damage:
        return (1.0, usable, pp, stab, effectiveness / 4, 0.0, 0.0, 0.0)
    factor = 1.0 if info.fixed else _factor(info, damage_scale)
    damage *= factor
    tera = tera * factor if can_tera else 0.0
    knocks_out = damage >= damage_scale.target_hp > 0
    return (
        1.0,
        usable,
        pp,
        stab,
        effectiveness / 4,
        damage if damage < 1.0 else 1.0,
        knocks_out,
        tera if tera < 1.0 else 1.0,
    )


def _factor(info: MoveInfo, damage_scale: DamageScale) -> float:
    if info.category == PHYSICAL:
        factor = damage_scale.physical
    else:
        factor = damage_scale.on_defence if info.hits_defence else damage_scale.special
    if info.type == WATER:
        factor *= damage_scale.water
    elif info.type == FIRE:
        factor *= damage_scale.fire
    return factor
