"""Fighters and surroundings from what the seat knows (poke-env's Battle and the encoder's profiles)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

from poke_env.battle.effect import Effect
from poke_env.battle.field import Field
from poke_env.battle.pokemon import Pokemon
from poke_env.battle.side_condition import SideCondition
from poke_env.battle.status import Status
from poke_env.battle.weather import Weather

from simul.env_worker.games.pokemon.damage import rules
from simul.env_worker.games.pokemon.damage.moves import (
    FALLEN,
    HALVED_HP,
    PINCH,
    TARGET_HP,
    TARGET_SHARE,
    TO_USERS_HP,
    USER_HP,
    USERS_HP,
    damage_move,
)
from simul.env_worker.games.pokemon.damage.types import (
    FACTS,
    NO_SURROUNDINGS,
    PREPARING,
    SUPPRESSED,
    Body,
    Fighter,
    Surroundings,
)

UNKNOWN_ITEM = "unknown_item"
SIXTHS = 6
# Names of poke-env's enums -> facts and how harsh the weather is; its members hash in Python, their values fast.
WEATHERS = {
    "SUNNYDAY": (FACTS["sun"], 0),
    "DESOLATELAND": (FACTS["sun"], 1),
    "RAINDANCE": (FACTS["rain"], 0),
    "PRIMORDIALSEA": (FACTS["rain"], 2),
    "SANDSTORM": (FACTS["sand"], 0),
    "SNOWSCAPE": (FACTS["snow"], 0),
    "SNOW": (FACTS["snow"], 0),
    "HAIL": (FACTS["snow"], 4),
    "DELTASTREAM": (0, 3),
}
TERRAINS = {name.upper(): FACTS[name] for name in FACTS if name.endswith("_terrain")}
SCREENS = {"REFLECT": "reflect", "LIGHT_SCREEN": "lightscreen", "AURORA_VEIL": "auroraveil"}
HP_ABILITIES = (
    "blaze",
    "defeatist",
    "multiscale",
    "overgrow",
    "shadowshield",
    "swarm",
    "terashell",
    "torrent",
)
WEATHER_CANCELLERS = ("cloudnine", "airlock")
_OTHER_EFFECTS = "SMACK_DOWN MAGNET_RISE TELEKINESIS INGRAIN ROOST DYNAMAX TAR_SHOT REFLECT"


def _effects_of(text: str) -> set[str]:
    return {name for line in filter(None, text.split("\n")) for name in line.split("|")[0].split()}


EFFECTS = sorted(_effects_of(rules.EFFECTS) | _effects_of(rules.TARGET_EFFECTS) | set(_OTHER_EFFECTS.split()))
_EFFECTS = {member.value: member.name for member in Effect if member.name in EFFECTS}
_WEATHERS = {member.value: WEATHERS[name] for name, member in Weather.__members__.items() if name in WEATHERS}
_TERRAINS = {member.value: TERRAINS[member.name] for member in Field if member.name in TERRAINS}
_SCREENS = {member.value: SCREENS[member.name] for member in SideCondition if member.name in SCREENS}
_NO_STAGES = (0, 0, 0, 0, 0)
_NO_EFFECTS: tuple[str, ...] = ()
_STAGES = itemgetter("atk", "def", "spa", "spd", "spe")


def surroundings(weather: Mapping[Any, int], fields: Mapping[Any, int], abilities: tuple[str, str]) -> Surroundings:
    """Of poke-env's weather and fields; `abilities`: of the two active Pokemon; some suppress the weather."""
    if not weather and not fields:
        return NO_SURROUNDINGS
    facts = harsh = 0
    gravity = False
    if abilities[0] not in WEATHER_CANCELLERS and abilities[1] not in WEATHER_CANCELLERS:
        for kind in weather:
            fact, harsh = _WEATHERS.get(kind._value_, (0, 0))
            facts |= fact
    for field in fields:
        facts |= _TERRAINS.get(field._value_, 0)
        gravity = gravity or field is Field.GRAVITY
    return Surroundings(facts, harsh, gravity)


def screens_of(conditions: Mapping[Any, int]) -> tuple[str, ...]:
    """A side's screens, sorted."""
    if not conditions:
        return ()
    return tuple(sorted([_SCREENS[c._value_] for c in conditions if c._value_ in _SCREENS]))


class DamageInputs(NamedTuple):
    """Which further inputs the damage of a user's moves has: hp of either side, fainted team mates."""

    own_hp: bool
    foes_hp: bool
    fallen: bool


@cache
def damage_inputs(gen: int, names: tuple[str, ...]) -> DamageInputs:
    """For moves as requests spell them."""
    moves = [move for name in names if (move := damage_move(gen, name)) is not None]
    powers, fixed = {move.power_kind for move in moves}, {move.fixed for move in moves}
    return DamageInputs(
        own_hp=bool(powers & {USER_HP, PINCH} or fixed & {TO_USERS_HP, USERS_HP}),
        foes_hp=bool(powers & {TARGET_HP, HALVED_HP} or fixed & {TARGET_SHARE, TO_USERS_HP}),
        fallen=FALLEN in powers,
    )


class FighterInputs(NamedTuple):
    """Everything a Fighter is made from, cheap to build and compare: most decisions find it unchanged."""

    species: str
    body: Body
    status: Status | None
    hp: int
    max_hp: int
    stages: tuple[int, ...]
    effects: tuple[str, ...]
    down: int


def fighter_inputs(mon: Pokemon, body: Body, exact_hp: bool, out: bool, down: int) -> FighterInputs:
    """Of `mon`, whose profile has `body`. Without `exact_hp` its hp is kept only as far as its ability needs it."""
    hp = full = SIXTHS
    if exact_hp:
        hp, full = mon._current_hp or 0, mon._max_hp or 1
    elif body.ability in HP_ABILITIES:
        hp = _steps(mon._current_hp or 0, mon._max_hp or 1)
    stages, effects = _NO_STAGES, _NO_EFFECTS
    if out:
        stages = _STAGES(mon._boosts)
        if mon._effects or _is_preparing(mon):
            effects = _effects(mon)
    return FighterInputs(mon._species, body, mon._status, hp, full, stages, effects, down)


def fighter(seen: FighterInputs) -> Fighter:
    """The fighter that these inputs make."""
    body, status = seen.body, seen.status
    return Fighter(
        seen.species,
        body.level,
        _points(body.stats),
        body.types,
        body.base_types,
        body.ability,
        SUPPRESSED if body.item == UNKNOWN_ITEM else body.item,
        body.tera,
        body.terastallized,
        seen.hp,
        seen.max_hp,
        "" if status is None or status is Status.FNT else status._name_,
        seen.stages,
        seen.effects,
        seen.down,
    )


@lru_cache(maxsize=4096)
def _points(stats: tuple[float, ...]) -> tuple[int, ...]:
    return tuple([int(stat) for stat in stats])


def _steps(hp: int, full: int) -> int:
    """Sixths that stand for: full, over a half, a half, a third."""
    if hp >= full:
        return 6
    return 2 if 3 * hp <= full else 3 if 2 * hp <= full else 5


def _is_preparing(mon: Pokemon) -> bool:
    return mon._preparing_move is not None or bool(mon._preparing_target)


def _effects(mon: Pokemon) -> tuple[str, ...]:
    found = [_EFFECTS[effect._value_] for effect in mon._effects if effect._value_ in _EFFECTS]
    if _is_preparing(mon):
        found.append(PREPARING)
    return tuple(sorted(found))
