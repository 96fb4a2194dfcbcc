"""The block of one own move: what it is, and what it would do now."""

from __future__ import annotations

import struct
from functools import cache
from typing import Any, NamedTuple

from env_worker.games.pokemon.features import RAIN, STAGES, SUN
from env_worker.games.pokemon.layout import MOVE_WIDTH
from env_worker.games.pokemon.matchup import Blow
from env_worker.games.pokemon.movedex import PHYSICAL, SPECIAL, MoveInfo, move_info
from env_worker.games.pokemon.profiles import move_row
from env_worker.games.pokemon.scene import Factors, Scene

FIRE, WATER = 7, 18
PRESENT_WIDTH = 8
STATIC_WIDTH = MOVE_WIDTH - PRESENT_WIDTH
NO_STATIC = (0.0,) * (STATIC_WIDTH - 2)
_STATIC = struct.Struct(f"<{STATIC_WIDTH}e")


class OwnMove(NamedTuple):
    """What stands in a slot.

    Attributes:
        name, info: the move and what is known of it (None: no data).
        blow: what it does to the foe that is out; None where there is none, or it is not the Pokemon's own.
        entry: what the request offers there (perhaps struggle or its like instead), None where it offers nothing.
    """

    name: str
    info: MoveInfo | None
    blow: Blow | None
    entry: dict[str, Any] | None


def offered_move(gen: int, own: OwnMove) -> OwnMove:
    """The Pokemon's own move in a slot, or what the request offers in its place."""
    if own.entry is None or own.entry["id"] in own.name:
        return own
    offered = own.entry["id"]
    return OwnMove(offered, move_info(gen, offered), None, own.entry)


def static_numbers(move: OwnMove) -> tuple[float, ...]:
    """The first of `fields.MOVE`: what follows from the move alone."""
    if move.info is None:
        return (move_row(move.name), 0, *NO_STATIC)
    return (move.info.row, move.info.type, *move.info.static)


@cache
def static_bytes(gen: int, name: str) -> bytes:
    """`static_numbers` of a move as float16."""
    return _STATIC.pack(*static_numbers(OwnMove(name, move_info(gen, name), None, None)))


def present_numbers(
    scene: Scene, move: OwnMove, user: Factors | None, target: Factors | None, usable: int, can_tera: bool
) -> tuple[float, ...]:
    """The rest: what it is worth now."""
    info, blow, entry = move.info, move.blow, move.entry
    pp = 0.0 if entry is None else min(entry.get("pp", 0) / max(entry.get("maxpp", 1), 1), 1.0)
    if info is None or blow is None:
        return (1.0, usable, pp, 0.0, 0.0, 0.0, 0.0, 0.0)
    damage = tera = 0.0
    knocks_out = False
    if blow.damage and user is not None and target is not None and scene.foe is not None:
        factor = 1.0 if info.fixed else _factor(scene, info, user, target)
        damage = blow.damage * factor
        tera = min(blow.tera_damage * factor, 1.0) if can_tera else 0.0
        knocks_out = damage >= scene.foe.current_hp_fraction > 0
    return (1.0, usable, pp, blow.stab, blow.effectiveness / 4, min(damage, 1.0), knocks_out, tera)


def _factor(scene: Scene, info: MoveInfo, user: Factors, target: Factors) -> float:
    """What stages, burn, screens and weather make of a move's damage."""
    if info.category == PHYSICAL:
        factor = user.physical_dealt * target.physical_taken
    else:
        factor = user.special_dealt * target.special_taken
        if info.category == SPECIAL and info.hits_defence and scene.foe is not None:
            boosts = scene.foe._boosts
            factor *= STAGES[boosts["spd"] + 6] / STAGES[boosts["def"] + 6]
    if info.type == WATER:
        factor *= 1.5 if scene.weather[RAIN] else 0.5 if scene.weather[SUN] else 1.0
    elif info.type == FIRE:
        factor *= 1.5 if scene.weather[SUN] else 0.5 if scene.weather[RAIN] else 1.0
    return factor
