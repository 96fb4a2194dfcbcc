"""Everything that the host's tracker, encoder and bots are told before a battle, as JSON."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

from poke_env.battle.pokemon_type import PokemonType
from poke_env.data import GenData

from simul.env_worker.games.pokemon.tables import doubles_layout, layout, slots
from simul.env_worker.games.pokemon.tables.damage.rules import rules
from simul.env_worker.games.pokemon.tables.damage.tables import damage_tables
from simul.env_worker.games.pokemon.tables.hit_terms import all_hit_terms
from simul.env_worker.games.pokemon.tables.layout_files import fingerprint
from simul.env_worker.games.pokemon.tables.movedex import MoveInfo, move_info, type_chart
from simul.env_worker.games.pokemon.tables.random_sets import known_sets
from simul.env_worker.games.pokemon.tables.tracker_tables import tracker_tables
from simul.env_worker.games.pokemon.tables.vocabulary import NO_ITEM, vocabulary

# What the encoder's estimate of damage knows; pairs are factors of physical and special damage.
# Ability -> the attacking type it makes harmless (ids of PokemonType), and since which generation.
GROUND, WATER, ELECTRIC, FIRE, GRASS = 11, 18, 4, 7, 10
IMMUNITIES = {
    "levitate": (GROUND, 3),
    "eartheater": (GROUND, 9),
    "waterabsorb": (WATER, 3),
    "stormdrain": (WATER, 5),
    "dryskin": (WATER, 4),
    "voltabsorb": (ELECTRIC, 3),
    "motordrive": (ELECTRIC, 4),
    "lightningrod": (ELECTRIC, 5),
    "flashfire": (FIRE, 3),
    "wellbakedbody": (FIRE, 9),
    "sapsipper": (GRASS, 5),
}
ITEM_POWER = {"lifeorb": (1.3, 1.3), "choiceband": (1.5, 1.0), "choicespecs": (1.0, 1.5), "lightball": (2.0, 2.0)}
ABILITY_POWER = {"hugepower": (2.0, 1.0), "purepower": (2.0, 1.0), "gorillatactics": (1.5, 1.0), "hustle": (1.5, 1.0)}
BULK = {"furcoat": (2.0, 1.0), "icescales": (1.0, 2.0)}


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
        "side_slots": slots.SIDE_SLOTS,
        "weather_slots": slots.WEATHER_SLOTS,
        "terrain_slots": slots.TERRAIN_SLOTS,
        "status_slots": slots.STATUS_SLOTS,
        "volatile_slots": slots.VOLATILE_SLOTS,
        "immunities": {ability: kind for ability, (kind, since) in IMMUNITIES.items() if gen >= since},
        "item_power": ITEM_POWER,
        "ability_power": ABILITY_POWER,
        "bulk": BULK,
        "behind_screen": _behind_screen(gen, doubles),
        "damage": damage_tables(gen, doubles),
        "hit_terms": {move_id: terms[1:] for move_id, terms in all_hit_terms(gen).items()},
        "tracker": tracker_tables(gen),
        "sets": _sets(gen) if extras.sets and not doubles else None,
    }


def _behind_screen(gen: int, doubles: bool) -> float:
    """What a screen leaves of damage. Gens 1 and 2 double the defence instead."""
    found = rules(gen, doubles)["screen"].get("reflect")
    return found[0].mod / 4096 if found else 0.5


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
    """`random_sets.Role`s by species, in the order of their fields."""
    return {species: [list(role) for role in roles] for species, roles in known_sets(gen).items()}
