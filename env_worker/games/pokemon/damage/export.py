"""The damage formula's tables for the host, as JSON: `node/damage/tables.mjs` reads them."""

from __future__ import annotations

from typing import Any

from poke_env.data import GenData

from simul.env_worker.games.pokemon.damage import attacker, from_battle, moves, queries
from simul.env_worker.games.pokemon.damage.moves import DamageMove, damage_move
from simul.env_worker.games.pokemon.damage.rules import STAGE_NAMES, Rule, tables
from simul.env_worker.games.pokemon.damage.target import UNBREAKABLE
from simul.env_worker.games.pokemon.damage.types import FACTS, PAIR_FACTS, words

HIDDEN_POWERS = "bug dark dragon electric fighting fire flying ghost grass ground ice poison psychic rock steel water"


def damage_tables(gen: int) -> dict[str, Any]:
    """Everything of one generation; masks of facts come as two words."""
    known = tables(gen)
    return {
        "facts": {name: words(mask) for name, mask in FACTS.items()},
        "pair_facts": words(PAIR_FACTS),
        "stages": STAGE_NAMES,
        "rules": {
            who: {name: [_rule(rule) for rule in found] for name, found in named.items()}
            for who, named in known.rules.items()
        },
        "exponents": known.exponents,
        "immune": known.immune,
        "weights": known.weights,
        "unfinished": sorted(known.unfinished),
        "moves": _moves(gen),
        "retyping": moves.RETYPING,
        "by_weather": moves.BY_WEATHER,
        "by_terrain": moves.BY_TERRAIN,
        "by_forme": moves.BY_FORME,
        "item_types": moves.ITEM_TYPES,
        "stuck": queries.STUCK,
        "always_stuck": queries.ALWAYS_STUCK,
        "heavy_items": queries.HEAVY_ITEMS,
        "speed_abilities": {name: words(fact) for name, fact in queries.SPEED_ABILITIES.items()},
        "mold": attacker.MOLD_BREAKERS,
        "scrappy": attacker.SCRAPPY,
        "unbreakable": UNBREAKABLE,
        "weathers": {name: [words(fact), harsh] for name, (fact, harsh) in from_battle.WEATHERS.items()},
        "terrains": {name: words(fact) for name, fact in from_battle.TERRAINS.items()},
        "screens": from_battle.SCREENS,
        "effects": from_battle.EFFECTS,
        "hp_abilities": from_battle.HP_ABILITIES,
        "calm": from_battle.WEATHER_CANCELLERS,
        "unknown_item": from_battle.UNKNOWN_ITEM,
    }


def _rule(rule: Rule) -> list[Any]:
    return [rule.stage, rule.mod, *words(rule.mask), rule.species]


def _moves(gen: int) -> dict[str, list[Any]]:
    names = [*GenData.from_gen(gen).moves, *[f"hiddenpower{kind}" for kind in HIDDEN_POWERS.split()]]
    found = {name: damage_move(gen, name) for name in names}
    return {name: _move(move) for name, move in found.items() if move is not None}


def _move(move: DamageMove) -> list[Any]:
    return [*move._replace(mask=0), words(move.mask)]
