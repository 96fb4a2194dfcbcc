"""Small pure pieces of the observation: conditions of the field, of a side, of an active Pokemon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from poke_env.battle.abstract_battle import AbstractBattle
from poke_env.battle.effect import Effect
from poke_env.battle.field import Field
from poke_env.battle.pokemon import Pokemon
from poke_env.battle.side_condition import SideCondition
from poke_env.battle.status import Status
from poke_env.battle.weather import Weather

from simul.env_worker.games.pokemon.battle_view.corrections import Corrections
from simul.env_worker.games.pokemon.encoding.profiles import move_row
from simul.env_worker.games.pokemon.tables.layout import VOLATILES

# Enum members hash in Python; everything below is therefore indexed by their integer value.
SIDE_SLOTS = {
    SideCondition.STEALTH_ROCK.value: (0, 1.0),
    SideCondition.SPIKES.value: (1, 1 / 3),
    SideCondition.TOXIC_SPIKES.value: (2, 1 / 2),
    SideCondition.STICKY_WEB.value: (3, 1.0),
    SideCondition.REFLECT.value: (4, 1.0),
    SideCondition.LIGHT_SCREEN.value: (5, 1.0),
    SideCondition.AURORA_VEIL.value: (6, 1.0),
    SideCondition.SAFEGUARD.value: (7, 1.0),
    SideCondition.MIST.value: (7, 1.0),
    SideCondition.TAILWIND.value: (8, 1.0),
}
STACKABLE = (1, 2)
SCREENS, NUM_SCREENS = 4, 5  # the first with turns; the turns follow all of them
REFLECT, LIGHT_SCREEN, AURORA_VEIL = 4, 5, 6
SUN, RAIN, SAND, SNOW, WIND = range(5)
WEATHER_SLOTS = {
    Weather.SUNNYDAY.value: SUN,
    Weather.DESOLATELAND.value: SUN,
    Weather.RAINDANCE.value: RAIN,
    Weather.PRIMORDIALSEA.value: RAIN,
    Weather.SANDSTORM.value: SAND,
    Weather.SNOWSCAPE.value: SNOW,
    Weather.HAIL.value: SNOW,
    Weather.DELTASTREAM.value: WIND,
}
TERRAIN_SLOTS = {
    Field.ELECTRIC_TERRAIN.value: 0,
    Field.GRASSY_TERRAIN.value: 1,
    Field.MISTY_TERRAIN.value: 2,
    Field.PSYCHIC_TERRAIN.value: 3,
}
TRICK_ROOM = 5  # index in `field_numbers`; its turns follow
STATUS_SLOTS = {
    Status.BRN.value: 0,
    Status.FRZ.value: 1,
    Status.PAR.value: 2,
    Status.PSN.value: 3,
    Status.SLP.value: 4,
    Status.TOX.value: 5,
}
BOUND = (
    "bind clamp fire_spin g_max_centiferno g_max_sandblast infestation magma_storm sand_tomb snap_trap thunder_cage "
    "trapped whirlpool wrap"
)
EFFECTS_OF_VOLATILE = (
    "substitute",
    "confusion",
    "leech_seed",
    "taunt",
    "encore",
    "disable",
    "yawn",
    "perish0 perish1 perish2 perish3",
    "salt_cure",
    f"{BOUND} partially_trapped no_retreat octolock ingrain",
    "protosynthesis protosynthesisatk protosynthesisdef protosynthesisspa protosynthesisspd protosynthesisspe "
    "quark_drive quarkdriveatk quarkdrivedef quarkdrivespa quarkdrivespd quarkdrivespe",
    "flash_fire charge",
    "torment attract throat_chop heal_block imprison embargo",
    "dynamax",
)
PERISH_COUNT = {"perish3": 0.25, "perish2": 0.5, "perish1": 0.75}
VOLATILE_SLOTS = {
    Effect[name.upper()].value: (slot, PERISH_COUNT.get(name, 1.0))
    for slot, names in enumerate(EFFECTS_OF_VOLATILE)
    for name in names.split()
}
NO_SIDE = (0.0,) * (SCREENS + 2 * NUM_SCREENS)
NO_WEATHER, NO_FIELD = (0.0,) * 6, (0.0,) * 7
NO_VOLATILES = (0.0,) * len(VOLATILES)
NO_STATUS = (0.0,) * 6
BOOSTS = ("atk", "def", "spa", "spd", "spe", "accuracy", "evasion")
STATUS_ROWS = tuple(tuple(float(i == j) for j in range(6)) for i in range(6))
STAGES = tuple((2 + s) / 2 if s > 0 else 2 / (2 - s) for s in range(-6, 7))  # index stage + 6


def side_numbers(conditions: Mapping[Any, int], turn: int) -> Sequence[float]:
    """Hazards (4), screens (5) and their age (5) of one side."""
    if not conditions:
        return NO_SIDE
    numbers = list(NO_SIDE)
    for condition, count in conditions.items():
        place = SIDE_SLOTS.get(condition._value_)
        if place is not None:
            slot, scale = place
            numbers[slot] = min(count * scale, 1.0) if slot in STACKABLE else 1.0
            if slot >= SCREENS:
                numbers[slot + NUM_SCREENS] = min((turn - count) / 8, 1.0)
    return numbers


def weather_numbers(weather: Mapping[Any, int], turn: int) -> Sequence[float]:
    """One-hot weather (5) and its age."""
    if not weather:
        return NO_WEATHER
    numbers = list(NO_WEATHER)
    for kind, start in weather.items():
        slot = WEATHER_SLOTS.get(kind._value_)
        if slot is not None:
            numbers[slot] = 1.0
            numbers[5] = min((turn - start) / 8, 1.0)
    return numbers


def field_numbers(fields: Mapping[Any, int], turn: int) -> Sequence[float]:
    """One-hot terrain (4), its age, trick room, its age."""
    if not fields:
        return NO_FIELD
    numbers = list(NO_FIELD)
    for kind, start in fields.items():
        slot = TERRAIN_SLOTS.get(kind._value_)
        if slot is not None:
            numbers[slot] = 1.0
            numbers[4] = min((turn - start) / 8, 1.0)
        elif kind is Field.TRICK_ROOM:
            numbers[TRICK_ROOM] = 1.0
            numbers[TRICK_ROOM + 1] = min((turn - start) / 8, 1.0)
    return numbers


def status_numbers(mon: Pokemon) -> tuple[float, ...]:
    """One-hot status (6)."""
    status = mon._status
    slot = STATUS_SLOTS.get(status._value_) if status is not None else None
    return NO_STATUS if slot is None else STATUS_ROWS[slot]


def volatile_numbers(mon: Pokemon) -> tuple[float, ...] | list[float]:
    """`layout.VOLATILES`; of two effects of a kind the later one (perish song counts down)."""
    if not mon._effects:
        return NO_VOLATILES
    numbers = list(NO_VOLATILES)
    for effect in mon._effects:
        place = VOLATILE_SLOTS.get(effect._value_)
        if place is not None:
            numbers[place[0]] = place[1]
    return numbers


def active_numbers(mon: Pokemon | None, corrections: Corrections) -> Sequence[float]:
    """`layout.ACTIVE` of one side; all zero where it has no active Pokemon."""
    if mon is None:
        return NO_ACTIVE
    boosts = mon._boosts
    last, *others = plain_active_numbers(mon, corrections)
    return [last, *[boosts[stat] / 6 for stat in BOOSTS], *volatile_numbers(mon), *others]


def is_plain(mon: Pokemon) -> bool:
    """Whether an active Pokemon has neither stages nor volatiles."""
    return not mon._effects and not any(mon._boosts.values())


def plain_active_numbers(mon: Pokemon, corrections: Corrections) -> tuple[float, ...]:
    """`layout.ACTIVE` without stages and volatiles."""
    return (
        move_row(corrections.facts(mon).last_move),
        1.0 if mon._must_recharge else 0.0,
        1.0 if mon._preparing_move is not None or mon._preparing_target else 0.0,
        mon._protect_counter / 3 if mon._protect_counter < 3 else 1.0,
        mon._active_turns / 8 if mon._active_turns < 8 else 1.0,
        1.0 if mon._moves._transform_moves is not None else 0.0,
    )


def gimmicks_spent(battle: AbstractBattle) -> tuple[bool, bool]:
    """Whether the own side, and the foe's, has used its once-a-battle gimmick."""
    own = battle._used_tera or battle._used_mega_evolve or battle._used_z_move or battle._used_dynamax
    foe = (
        battle._opponent_used_tera
        or battle._opponent_used_mega_evolve
        or battle._opponent_used_z_move
        or battle._opponent_used_dynamax
    )
    return own, foe


NO_ACTIVE = (0.0,) * (8 + len(VOLATILES) + 5)
