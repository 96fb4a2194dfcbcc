"""The field at one decision, and its effect on damage and speed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from poke_env.battle.pokemon import Pokemon
from poke_env.battle.status import Status

from simul.env_worker.games.pokemon.battle_view.seat_battle import SeatBattle
from simul.env_worker.games.pokemon.damage.types import Body
from simul.env_worker.games.pokemon.encoding.features import (
    AURORA_VEIL,
    LIGHT_SCREEN,
    REFLECT,
    STAGES,
    field_numbers,
    side_numbers,
    weather_numbers,
)

# Multipliers of one Pokemon's damage: physical and special dealt (stages, burn), physical and special taken
# (stages, screens).
Strength = tuple[float, float, float, float]
NO_SCREEN = (1.0, 1.0)
LEVEL: Strength = (1.0, 1.0, 1.0, 1.0)
BRN = Status.BRN


class Factors(NamedTuple):
    """Strength and speed of one Pokemon."""

    physical_dealt: float
    special_dealt: float
    physical_taken: float
    special_taken: float
    speed: float

    @property
    def strength(self) -> Strength:
        return self[:4]


class FieldState(NamedTuple):
    """Numbers as `features` makes them; `own`, `foe`: the active Pokemon, None = none."""

    own: Pokemon | None
    foe: Pokemon | None
    own_side: Sequence[float]
    foe_side: Sequence[float]
    weather: Sequence[float]
    field: Sequence[float]


def read_field_state(battle: SeatBattle, own: Pokemon | None, foe: Pokemon | None) -> FieldState:
    """The field as the seat sees it now."""
    return FieldState(
        own,
        foe,
        side_numbers(battle._side_conditions, battle._turn),
        side_numbers(battle._opponent_side_conditions, battle._turn),
        weather_numbers(battle._weather, battle._turn),
        field_numbers(battle._fields, battle._turn),
    )


def base_speed(gen: int, body: Body, paralyzed: bool) -> float:
    """Speed with paralysis and choice scarf, without stages."""
    value = body.stats[5]
    if paralyzed and body.ability != "quickfeet":
        value *= 0.5 if gen >= 7 else 0.25
    if body.item == "choicescarf":
        value *= 1.5
    return value


def active_factors(mon: Pokemon, speed: float, side: Sequence[float]) -> Factors:
    """Of the Pokemon on the field; `speed` as `base_speed` gives it."""
    return Factors(*active_strength(mon, screens(side)), speed * STAGES[mon._boosts["spe"] + 6])


def active_strength(mon: Pokemon, screen: tuple[float, float]) -> Strength:
    """Of the Pokemon on the field; `screen` as `screens` gives it."""
    boosts = mon._boosts
    if not any(boosts.values()):
        return bench_strength(mon, screen)
    physical_screen, special_screen = screen
    return (
        STAGES[boosts["atk"] + 6] * (0.5 if mon._status is BRN else 1.0),
        STAGES[boosts["spa"] + 6],
        physical_screen / STAGES[boosts["def"] + 6],
        special_screen / STAGES[boosts["spd"] + 6],
    )


def bench_strength(mon: Pokemon, screen: tuple[float, float]) -> Strength:
    """Of a Pokemon without stages."""
    if mon._status is not BRN and screen is NO_SCREEN:
        return LEVEL  # nearly always: one object, quick to compare
    return (0.5 if mon._status is BRN else 1.0, 1.0, *screen)


def screens(side: Sequence[float]) -> tuple[float, float]:
    """Factors of a side's screens on physical and special damage."""
    if side[AURORA_VEIL]:
        return 0.5, 0.5
    if side[REFLECT] or side[LIGHT_SCREEN]:
        return (0.5 if side[REFLECT] else 1.0), (0.5 if side[LIGHT_SCREEN] else 1.0)
    return NO_SCREEN
