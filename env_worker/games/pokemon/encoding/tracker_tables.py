"""What the tracker inside the simulator host must know beforehand, taken from poke-env.

poke-env's own data stay the only truth: types, stats, abilities, how moves are stored, which names its enums
know. The host loads the tables of a generation once; `sim_host/tracker/dex.mjs` reads them.
"""

from __future__ import annotations

from typing import Any

from poke_env.battle.effect import Effect
from poke_env.battle.field import Field
from poke_env.battle.move import Move
from poke_env.battle.pokemon_type import PokemonType
from poke_env.battle.side_condition import STACKABLE_CONDITIONS, SideCondition
from poke_env.battle.status import Status
from poke_env.battle.weather import Weather
from poke_env.data import GenData, to_id_str

from simul.env_worker.games.pokemon.battle_view.line_kinds import SKIPPED

STAT_ORDER = ("hp", "atk", "def", "spa", "spd", "spe")
TYPES = {kind.name: int(kind.value) for kind in PokemonType} | {"???": int(PokemonType.THREE_QUESTION_MARKS.value)}
PRESSED_TARGETS = ("all", "allAdjacent", "allAdjacentFoes", "any", "normal", "randomNormal", "scripted")
ABILITY_CHANGING_FORMES = ("Primal", "Stellar", "Terastal")


def tracker_tables(gen: int) -> dict[str, Any]:
    """JSON-able tables of one generation.

    species: id -> [type values, base stats as STAT_ORDER, ability ids, base species id, ability that the forme
    brings or None]. moves: id -> [aims at all, is stored, counts as protect, has power, type value, pp of an unused
    one, costs more under Pressure].
    effects: name -> [breaks protect, ends with the turn]. weather, fields, sides: name or alias -> name.
    """
    data = GenData.from_gen(gen)
    return {
        "gen": gen,
        "types": TYPES,
        "species": {id_: _species(entry) for id_, entry in data.pokedex.items() if _makes_a_pokemon(entry)},
        "moves": {id_: _move(id_, gen) for id_ in data.moves},
        "special_moves": ["fight", "recharge"],  # moves that have no entry of their own
        "effects": {effect.name: [bool(effect.breaks_protect), bool(effect.ends_on_turn)] for effect in Effect},
        "weather": {name: member.name for name, member in Weather.__members__.items()},
        "fields": {name: member.name for name, member in Field.__members__.items()},
        "sides": {name: member.name for name, member in SideCondition.__members__.items()},
        "stackable": [condition.name for condition in STACKABLE_CONDITIONS],
        "statuses": [status.name for status in Status],
        "unknown_item": GenData.UNKNOWN_ITEM,
        "skipped": sorted(SKIPPED),
    }


def _makes_a_pokemon(entry: dict[str, Any]) -> bool:
    """poke-env raises on entries without types, of a type it does not know (MissingNo) and with an empty `prevo`."""
    types = entry.get("types", ())
    return len(types) > 0 and all(name.upper() in TYPES for name in types) and entry.get("prevo", "") is not None


def _species(entry: dict[str, Any]) -> list[Any]:
    forme = entry.get("forme", "")
    changes = forme.startswith("Mega") or forme in ABILITY_CHANGING_FORMES or forme.endswith("-Tera")
    return [
        [TYPES[name.upper()] for name in entry["types"]],
        [entry["baseStats"][name] for name in STAT_ORDER],
        [to_id_str(ability) for ability in entry["abilities"].values()],
        to_id_str(entry["baseSpecies"]),
        to_id_str(entry["abilities"]["0"]) if changes else None,
    ]


def _move(move_id: str, gen: int) -> list[Any]:
    move = Move(move_id, gen)
    return [
        move.entry["target"] == "all",
        Move.should_be_stored(move_id, gen),
        move.is_protect_counter,
        move.base_power > 0,
        int(move.type.value),
        move.max_pp,
        move.entry["target"] in PRESSED_TARGETS or "mustpressure" in move.entry["flags"],
    ]
