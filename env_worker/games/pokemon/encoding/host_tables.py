"""Tables of the simulator host's encoder and tracker, as JSON: ids, move data, type chart, layout, poke-env's data.

The Python encoder is the reference: its tables are sent to the host, whose encoder has no numbers of its own.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

from poke_env.battle.effect import Effect
from poke_env.battle.field import Field
from poke_env.battle.move import Move
from poke_env.battle.pokemon_type import PokemonType
from poke_env.battle.side_condition import STACKABLE_CONDITIONS, SideCondition
from poke_env.battle.status import Status
from poke_env.battle.weather import Weather
from poke_env.data import GenData, to_id_str

from simul.env_worker.games.pokemon.battle_view.corrections import passed_effects
from simul.env_worker.games.pokemon.battle_view.pp_costs import aim
from simul.env_worker.games.pokemon.battle_view.protocol_lines import SKIPPED_LINES
from simul.env_worker.games.pokemon.damage.export import damage_tables
from simul.env_worker.games.pokemon.encoding import expected_damage, features
from simul.env_worker.games.pokemon.encoding.layout_files import fingerprint
from simul.env_worker.games.pokemon.encoding.set_knowledge import known_sets
from simul.env_worker.games.pokemon.tables import doubles_layout, layout
from simul.env_worker.games.pokemon.tables.hit_terms import all_hit_terms
from simul.env_worker.games.pokemon.tables.movedex import MoveInfo, move_info, type_chart
from simul.env_worker.games.pokemon.tables.vocabulary import NO_ITEM, vocabulary

STAT_ORDER = ("hp", "atk", "def", "spa", "spd", "spe")
TYPES = {kind.name: int(kind.value) for kind in PokemonType} | {"???": int(PokemonType.THREE_QUESTION_MARKS.value)}
ABILITY_CHANGING_FORMES = ("Primal", "Stellar", "Terastal")


def tracker_tables(gen: int) -> dict[str, Any]:
    """JSON-able tables of one generation.

    species: id -> [type values, base stats as STAT_ORDER, ability ids, base species id, ability that the forme
    brings or None]. moves: id -> [aims at all, is stored, counts as protect, has power, type value, pp of an unused
    one, costs more under Pressure, of any foe].
    effects: name -> [breaks protect, ends with the turn]. weather, fields, sides: name or alias -> name.
    """
    data = GenData.from_gen(gen)
    return {
        "gen": gen,
        "types": TYPES,
        "species": {id_: _tracked_species(entry) for id_, entry in data.pokedex.items() if makes_a_pokemon(entry)},
        "moves": {id_: _tracked_move(id_, gen) for id_ in data.moves},
        "special_moves": ["fight", "recharge"],  # moves that have no entry of their own
        "effects": {effect.name: [bool(effect.breaks_protect), bool(effect.ends_on_turn)] for effect in Effect},
        "weather": {name: member.name for name, member in Weather.__members__.items()},
        "fields": {name: member.name for name, member in Field.__members__.items()},
        "sides": {name: member.name for name, member in SideCondition.__members__.items()},
        "stackable": [condition.name for condition in STACKABLE_CONDITIONS],
        "passed": sorted(effect.name for effect in passed_effects(gen)),
        "statuses": [status.name for status in Status],
        "unknown_item": GenData.UNKNOWN_ITEM,
        "skipped": sorted(SKIPPED_LINES),
    }


def makes_a_pokemon(entry: dict[str, Any]) -> bool:
    """poke-env raises on entries without types, of a type it does not know (MissingNo) and with an empty `prevo`."""
    types = entry.get("types", ())
    return len(types) > 0 and all(name.upper() in TYPES for name in types) and entry.get("prevo", "") is not None


def _tracked_species(entry: dict[str, Any]) -> list[Any]:
    forme = entry.get("forme", "")
    changes = forme.startswith("Mega") or forme in ABILITY_CHANGING_FORMES or forme.endswith("-Tera")
    return [
        [TYPES[name.upper()] for name in entry["types"]],
        [entry["baseStats"][name] for name in STAT_ORDER],
        [to_id_str(ability) for ability in entry["abilities"].values()],
        to_id_str(entry["baseSpecies"]),
        to_id_str(entry["abilities"]["0"]) if changes else None,
    ]


def _tracked_move(move_id: str, gen: int) -> list[Any]:
    move = Move(move_id, gen)
    return [
        move.entry["target"] == "all",
        Move.should_be_stored(move_id, gen),
        move.is_protect_counter,
        move.base_power > 0,
        int(move.type.value),
        move.max_pp,
        *aim(gen, move_id),
    ]


@cache
def encoder_tables(gen: int, extras: layout.Extras = layout.PLAIN, doubles: bool = False) -> dict[str, Any]:
    """Everything `node/encoder/host_tables.mjs`, `node/tracker` and `node/bots` read, for one generation.

    Doubles have no `extras`.
    """
    rows = vocabulary()
    return {
        "gen": gen,
        "doubles": doubles,
        "layout": {"fingerprint": fingerprint(), **(_doubles_layout() if doubles else _layout(extras))},
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
        "immunities": expected_damage.IMMUNITIES,
        "item_power": expected_damage.ITEM_POWER,
        "ability_power": expected_damage.ABILITY_POWER,
        "bulk": expected_damage.BULK,
        "damage": damage_tables(gen),
        "hit_terms": {move_id: terms[1:] for move_id, terms in all_hit_terms(gen).items()},
        "tracker": tracker_tables(gen),
        "sets": _sets(gen) if extras.sets and not doubles else None,
    }


def _layout(extras: layout.Extras) -> dict[str, Any]:
    """Where the blocks start; the host has the offsets in them from `layout_files`."""
    damage = layout.damage_fields(extras.attackers)
    return {
        "size": layout.observation_size(extras),
        "num_actions": layout.NUM_ACTIONS,
        "own_start": layout.OWN_START,
        "foe_start": layout.FOE_START,
        "move_start": layout.MOVE_START,
        "mask_start": layout.MASK_START,
        "damage_start": layout.DAMAGE_START,
        "damage_width": layout.width(damage),
        "damage_lead": layout.width(damage) - layout.width(layout.DAMAGE),
        "attackers": extras.attackers,
        "set_start": layout.set_start(extras.attackers),
    }


def _doubles_layout() -> dict[str, Any]:
    starts = {part.name: part.start for part in doubles_layout.slices()}
    return {
        "size": doubles_layout.OBSERVATION_SIZE,
        "num_actions": doubles_layout.NUM_ACTIONS,
        "own_start": starts["own.0.species"],
        "foe_start": starts["foe.0.species"],
        "move_start": starts["move.0.id"],
        "partner_move_start": starts["partner_move.0.id"],
        "mask_start": starts["mask"],
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
