"""The block of one own move: what it is, and what it would do now."""

from __future__ import annotations

from typing import Any

from env_worker.games.pokemon.features import RAIN, STAGES, SUN
from env_worker.games.pokemon.layout import MOVE_WIDTH
from env_worker.games.pokemon.matchup import NO_BLOW, Blow
from env_worker.games.pokemon.movedex import PHYSICAL, SPECIAL, MoveInfo, move_info
from env_worker.games.pokemon.profiles import move_row
from env_worker.games.pokemon.scene import Factors, Scene

FIRE, WATER = 7, 18
DYNAMIC_WIDTH = 8
NO_STATIC = (0.0,) * (MOVE_WIDTH - 2 - DYNAMIC_WIDTH)


def move_block(
    scene: Scene,
    gen: int,
    name: str,
    info: MoveInfo | None,
    entry: dict[str, Any] | None,
    blow: Blow | None,
    user: Factors | None,
    target: Factors | None,
    usable: int,
    can_tera: bool,
) -> tuple[float, ...]:
    """`fields.MOVE` of one slot.

    `name`, `info`, `blow`: the Pokemon's own move there. `entry`: what the request offers there (perhaps
    struggle or its like instead), None where it offers nothing.
    """
    pp = 0.0
    if entry is not None:
        offered = entry["id"]
        if offered not in name:
            info, blow, name = move_info(gen, offered), None, offered
        pp = min(entry.get("pp", 0) / max(entry.get("maxpp", 1), 1), 1.0)
    if info is None:
        return (move_row(name), 0, *NO_STATIC, 1.0, usable, pp, 0.0, 0.0, 0.0, 0.0, 0.0)
    blow = blow or NO_BLOW
    damage = tera = 0.0
    knocks_out = False
    if blow.damage and user is not None and target is not None and scene.foe is not None:
        factor = 1.0 if info.fixed else _factor(scene, info, user, target)
        damage = blow.damage * factor
        tera = min(blow.tera_damage * factor, 1.0) if can_tera else 0.0
        knocks_out = damage >= scene.foe.current_hp_fraction > 0
    return (
        info.row,
        info.type,
        *info.static,
        1.0,
        usable,
        pp,
        blow.stab,
        blow.effectiveness / 4,
        min(damage, 1.0),
        knocks_out,
        tera,
    )


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
