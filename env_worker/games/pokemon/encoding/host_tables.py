"""What the simulator host's encoder must know before any battle, as JSON: ids, move data, type chart, places.

The Python encoder is the truth; its tables travel, so that the host's has no numbers of its own.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

from poke_env.battle.effect import Effect
from poke_env.battle.field import Field
from poke_env.battle.pokemon_type import PokemonType
from poke_env.battle.side_condition import SideCondition
from poke_env.battle.status import Status
from poke_env.battle.weather import Weather
from poke_env.data import GenData

from simul.env_worker.games.pokemon.battle_view.set_knowledge import known_sets
from simul.env_worker.games.pokemon.damage.host_side import damage_tables
from simul.env_worker.games.pokemon.encoding import combatants, features, fields, layout
from simul.env_worker.games.pokemon.encoding.move_features import NO_STATIC
from simul.env_worker.games.pokemon.encoding.movedex import MoveInfo, move_info, type_chart
from simul.env_worker.games.pokemon.encoding.tracker_tables import tracker_tables
from simul.env_worker.games.pokemon.encoding.vocabulary import NO_ITEM, vocabulary


@cache
def encoder_tables(gen: int, extras: layout.Extras = layout.PLAIN) -> dict[str, Any]:
    """Everything `sim_host/encoder/tables.mjs` and `sim_host/tracker` read, for one generation."""
    rows = vocabulary()
    return {
        "gen": gen,
        "layout": _layout(extras),
        "species": rows.species,
        "ability": rows.ability,
        "item": rows.item,
        "no_item": NO_ITEM,
        "move": rows.move,
        "moves": _moves(gen),
        "types": {kind.name: kind.value for kind in PokemonType},
        "chart": type_chart(gen),
        "side_slots": _by_name(SideCondition, features.SIDE_SLOTS),
        "weather_slots": _by_name(Weather, features.WEATHER_SLOTS),
        "terrain_slots": _by_name(Field, features.TERRAIN_SLOTS),
        "status_slots": _by_name(Status, features.STATUS_SLOTS),
        "volatile_slots": _by_name(Effect, features.VOLATILE_SLOTS),
        "immunities": combatants.IMMUNITIES,
        "item_power": combatants.ITEM_POWER,
        "ability_power": combatants.ABILITY_POWER,
        "bulk": combatants.BULK,
        "damage": damage_tables(gen),
        "tracker": tracker_tables(gen),
        "sets": _sets(gen) if extras.sets else None,
    }


def _layout(extras: layout.Extras) -> dict[str, Any]:
    damage = layout.damage_fields(extras.attackers)
    return {
        "size": layout.observation_size(extras),
        "pokemon_width": layout.POKEMON_WIDTH,
        "move_width": layout.MOVE_WIDTH,
        "move_static": len(NO_STATIC),
        "preview_start": layout.PREVIEW_START,
        "own_start": layout.OWN_START,
        "foe_start": layout.FOE_START,
        "move_start": layout.MOVE_START,
        "mask_start": layout.MASK_START,
        "damage_start": layout.DAMAGE_START,
        "damage_width": layout.width(damage),
        "damage_lead": layout.width(damage) - layout.width(layout.DAMAGE),
        "attackers": extras.attackers,
        "set_start": layout.set_start(extras.attackers),
        "possible": [fields.POSSIBLE_MOVES, fields.POSSIBLE_ABILITIES, fields.POSSIBLE_TERAS],
        "deals": layout.DEALS,
        "takes": layout.TAKES,
    }


def _moves(gen: int) -> dict[str, list[Any]]:
    """`MoveInfo` of every move of the generation, in the order of its fields."""
    names = [field.name for field in dataclasses.fields(MoveInfo)]
    infos = {name: move_info(gen, name) for name in GenData.from_gen(gen).moves}
    return {name: [getattr(info, field) for field in names] for name, info in infos.items() if info is not None}


def _sets(gen: int) -> dict[str, list[list[Any]]]:
    """`set_knowledge.Role`s by species, in the order of their fields."""
    return {species: [list(role) for role in roles] for species, roles in known_sets(gen).items()}


def _by_name(enum: Any, slots: dict[int, Any]) -> dict[str, Any]:
    return {member.name: slots[member.value] for member in enum if member.value in slots}
