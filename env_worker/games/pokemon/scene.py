"""The field at one decision, and what it makes of damage and speed."""

from __future__ import annotations

from typing import NamedTuple

from poke_env.battle.pokemon import Pokemon
from poke_env.battle.status import Status

from env_worker.games.pokemon.combatants import Body
from env_worker.games.pokemon.features import (
    AURORA_VEIL,
    LIGHT_SCREEN,
    REFLECT,
    STAGES,
    field_numbers,
    side_numbers,
    weather_numbers,
)
from env_worker.games.pokemon.seat_battle import SeatBattle


class Factors(NamedTuple):
    """Multipliers of one Pokemon's damage: dealt (stages, burn) and taken (stages, screens), and its speed."""

    physical_dealt: float
    special_dealt: float
    physical_taken: float
    special_taken: float
    speed: float


class Scene(NamedTuple):
    """Lists as `features` makes them; `own`, `foe`: the active Pokemon, None where nobody is out."""

    own: Pokemon | None
    foe: Pokemon | None
    own_side: list[float]
    foe_side: list[float]
    weather: list[float]
    field: list[float]


def read_scene(battle: SeatBattle, own: Pokemon | None, foe: Pokemon | None) -> Scene:
    """The field as the seat sees it now."""
    return Scene(
        own,
        foe,
        side_numbers(battle._side_conditions, battle._turn),
        side_numbers(battle._opponent_side_conditions, battle._turn),
        weather_numbers(battle._weather, battle._turn),
        field_numbers(battle._fields, battle._turn),
    )


def base_speed(gen: int, body: Body, mon: Pokemon) -> float:
    """Speed with paralysis and choice scarf, without stages."""
    value = body.stats[5]
    if mon._status is Status.PAR and body.ability != "quickfeet":
        value *= 0.5 if gen >= 7 else 0.25
    if body.item == "choicescarf":
        value *= 1.5
    return value


def active_factors(mon: Pokemon, speed: float, side: list[float]) -> Factors:
    """Of the Pokemon on the field; `speed` as `base_speed` gives it."""
    boosts = mon._boosts
    physical_screen, special_screen = screens(side)
    return Factors(
        STAGES[boosts["atk"] + 6] * (0.5 if mon._status is Status.BRN else 1.0),
        STAGES[boosts["spa"] + 6],
        physical_screen / STAGES[boosts["def"] + 6],
        special_screen / STAGES[boosts["spd"] + 6],
        speed * STAGES[boosts["spe"] + 6],
    )


def screens(side: list[float]) -> tuple[float, float]:
    """What a side's screens leave of physical and special damage."""
    if side[AURORA_VEIL]:
        return 0.5, 0.5
    return (0.5 if side[REFLECT] else 1.0), (0.5 if side[LIGHT_SCREEN] else 1.0)
