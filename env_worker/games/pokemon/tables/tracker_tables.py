"""poke-env's data as the host's tracker reads it: species, moves, effects, conditions, and lines without state."""

from __future__ import annotations

from typing import Any

from poke_env.battle.battle import Battle
from poke_env.battle.effect import Effect
from poke_env.battle.field import Field
from poke_env.battle.move import Move
from poke_env.battle.pokemon_type import PokemonType
from poke_env.battle.side_condition import STACKABLE_CONDITIONS, SideCondition
from poke_env.battle.status import Status
from poke_env.battle.weather import Weather
from poke_env.data import GenData, to_id_str

STAT_ORDER = ("hp", "atk", "def", "spa", "spd", "spe")
TYPES = {kind.name: int(kind.value) for kind in PokemonType} | {"???": int(PokemonType.THREE_QUESTION_MARKS.value)}
ABILITY_CHANGING_FORMES = ("Primal", "Stellar", "Terastal")

# Moves aimed at foes, whose Pressure they meet; and at all of them.
AIMED = frozenset(["adjacentFoe", "all", "allAdjacent", "allAdjacentFoes", "any", "normal", "randomNormal", "scripted"])
AT_ALL_FOES = frozenset(["all", "allAdjacent", "allAdjacentFoes"])
# What Baton Pass hands over; Shed Tail hands over a substitute only.
PASSED = """
aqua_ring bind charge clamp confusion curse embargo fire_spin focus_energy g_max_centiferno g_max_sandblast gastro_acid
heal_block infestation ingrain laser_focus leech_seed magma_storm magnet_rise no_retreat octolock perish0 perish1
perish2 perish3 power_trick sand_tomb snap_trap substitute tar_shot taunt telekinesis throat_chop thunder_cage
whirlpool wrap
"""
WITHOUT_PP_UPS = ("trumpcard",)  # and what the moves' data mark
LAST_GEN_THAT_PASSES_TRAPS = 4
GEN_THAT_PASSES_MIST = 2
# What the tracker reads and poke-env passes over.
READ_LINES = frozenset(["", "-anim", "-block", "-burst", "-crit", "-fail", "-miss", "upkeep"])
# Routed by the source itself, or without any state in them (t: has the clock, win and tie come from the host).
SKIPPED_LINES = frozenset(Battle.MESSAGES_TO_IGNORE) - READ_LINES | {
    "bigerror", "error", "gen", "inactive", "message", "-message", "player", "raw", "request", "rule", "showteam",
    "start", "t:", "tie", "tier", "title", "uhtmlchange", "win",
}  # fmt: skip


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
        "effects": _effects(gen),
        "weather": {name: member.name for name, member in Weather.__members__.items()},
        "fields": {name: member.name for name, member in Field.__members__.items()},
        "sides": {name: member.name for name, member in SideCondition.__members__.items()},
        "stackable": [condition.name for condition in STACKABLE_CONDITIONS],
        "passed": _passed_effects(gen),
        "statuses": [status.name for status in Status],
        "unknown_item": GenData.UNKNOWN_ITEM,
        "skipped": sorted(SKIPPED_LINES),
    }


def makes_a_pokemon(entry: dict[str, Any]) -> bool:
    """Not the entries without types, and not MissingNo, whose type nothing else has."""
    types = entry.get("types", ())
    return len(types) > 0 and all(name.upper() in TYPES for name in types)


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
        move.entry["pp"] if move_id in WITHOUT_PP_UPS else move.max_pp,
        move.entry["pp"],
        *_aim(gen, move_id),
    ]


def _aim(gen: int, move_id: str) -> tuple[bool, bool]:
    """Whether foes' Pressure makes it cost more at all, and that of all of them, not its target's only."""
    entry = GenData.from_gen(gen).moves.get(Move.retrieve_id(move_id))
    if entry is None:
        return False, False
    presses = "mustpressure" in entry["flags"]
    return presses or entry["target"] in AIMED, presses or entry["target"] in AT_ALL_FOES


def _effects(gen: int) -> dict[str, list[bool]]:
    """poke-env has no Light Screen of one Pokemon, which gen 1 has."""
    found = {effect.name: [bool(effect.breaks_protect), bool(effect.ends_on_turn)] for effect in Effect}
    return found | ({"LIGHT_SCREEN": [False, False]} if gen == 1 else {})


def _passed_effects(gen: int) -> list[str]:
    names = PASSED.split() + (["trapped"] if gen <= LAST_GEN_THAT_PASSES_TRAPS else [])
    names += ["mist"] if gen == GEN_THAT_PASSES_MIST else []
    return sorted(Effect[name.upper()].name for name in names)
