"""What changes from turn to turn: stages, burn, weather, screens; and the block of one own move."""

from __future__ import annotations

from typing import Any, NamedTuple

from poke_env.battle.pokemon import Pokemon
from poke_env.battle.status import Status

from env_worker.games.pokemon.features import (
    AURORA_VEIL,
    LIGHT_SCREEN,
    RAIN,
    REFLECT,
    STAGES,
    SUN,
    TAILWIND,
)
from env_worker.games.pokemon.layout import MOVE_WIDTH
from env_worker.games.pokemon.matchup import NO_BLOW, Blow, Profile
from env_worker.games.pokemon.movedex import PHYSICAL, SPECIAL, MoveInfo, move_info
from env_worker.games.pokemon.profiles import move_row

FIRE, WATER = 7, 18
TRICK_ROOM = 5  # in features.field_numbers
NO_STATIC = (0.0,) * (MOVE_WIDTH - 2 - 8)


class Scene(NamedTuple):
    """The field at one decision; lists as `features` makes them."""

    gen: int
    own: Pokemon | None
    foe: Pokemon | None
    own_side: list[float]
    foe_side: list[float]
    weather: list[float]
    field: list[float]

    def moves_first(self, own: Profile, foe: Profile, own_mon: Pokemon, foe_mon: Pokemon) -> float:
        """1 = the own Pokemon is faster, -1 = slower, 0 = a tie."""
        mine = speed(self.gen, own, own_mon) * (2 if self.own_side[TAILWIND] else 1)
        theirs = speed(self.gen, foe, foe_mon) * (2 if self.foe_side[TAILWIND] else 1)
        if mine == theirs:
            return 0.0
        return 1.0 if (mine > theirs) != bool(self.field[TRICK_ROOM]) else -1.0


def speed(gen: int, profile: Profile, mon: Pokemon) -> float:
    """Speed with stages, paralysis and choice scarf."""
    value = profile.stats[5] * STAGES[mon._boosts["spe"] + 6]
    if mon._status is Status.PAR and profile.ability != "quickfeet":
        value *= 0.5 if gen >= 7 else 0.25
    if profile.item == "choicescarf":
        value *= 1.5
    return value


def stage_factors(user: Pokemon, target: Pokemon, target_side: list[float]) -> tuple[float, float]:
    """What stages, burn and screens make of physical and special damage."""
    own, other = user._boosts, target._boosts
    physical = STAGES[own["atk"] + 6] / STAGES[other["def"] + 6]
    special = STAGES[own["spa"] + 6] / STAGES[other["spd"] + 6]
    if user._status is Status.BRN:
        physical *= 0.5
    if target_side[REFLECT] or target_side[AURORA_VEIL]:
        physical *= 0.5
    if target_side[LIGHT_SCREEN] or target_side[AURORA_VEIL]:
        special *= 0.5
    return physical, special


def move_block(
    scene: Scene, name: str, entry: dict[str, Any] | None, blow: Blow | None, usable: bool, can_tera: bool
) -> tuple[float, ...]:
    """`layout.MOVE` of one slot. `entry` is what the request offers there, None where it offers nothing."""
    offered = entry["id"] if entry is not None else name
    info = move_info(scene.gen, name or offered)
    if entry is not None and offered not in name:
        info, blow = move_info(scene.gen, offered), None  # struggle and its like
    pp = entry.get("pp", 0) / max(entry.get("maxpp", 1), 1) if entry is not None else 0.0
    if info is None:
        return (move_row(offered), 0, *NO_STATIC, 1.0, usable, min(pp, 1.0), 0.0, 0.0, 0.0, 0.0, 0.0)
    blow = blow or NO_BLOW
    damage = tera = knocks_out = 0.0
    if blow.damage and scene.own is not None and scene.foe is not None:
        factor = _factor(scene, info, scene.own, scene.foe)
        damage = blow.damage * factor
        tera = min(blow.tera_damage * factor, 1.0) if can_tera else 0.0
        knocks_out = float(damage >= scene.foe.current_hp_fraction > 0)
    return (
        info.row,
        info.type,
        *info.static,
        1.0,
        usable,
        min(pp, 1.0),
        blow.stab,
        blow.effectiveness / 4,
        min(damage, 1.0),
        knocks_out,
        tera,
    )


def _factor(scene: Scene, info: MoveInfo, user: Pokemon, target: Pokemon) -> float:
    """Of one move's damage; fixed damage knows no modifiers."""
    if info.level_damage or info.flat or info.fraction:
        return 1.0
    physical, special = stage_factors(user, target, scene.foe_side)
    factor = physical if info.category == PHYSICAL else special
    if info.category == SPECIAL and info.hits_defence:
        factor *= STAGES[target._boosts["spd"] + 6] / STAGES[target._boosts["def"] + 6]
    if info.type == WATER:
        factor *= 1.5 if scene.weather[RAIN] else 0.5 if scene.weather[SUN] else 1.0
    elif info.type == FIRE:
        factor *= 1.5 if scene.weather[SUN] else 0.5 if scene.weather[RAIN] else 1.0
    return factor
