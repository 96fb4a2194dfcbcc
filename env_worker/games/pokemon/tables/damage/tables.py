"""The damage formula's tables for the host, as JSON: `node/damage/tables.mjs` reads them."""

from __future__ import annotations

from typing import Any

from poke_env.data import GenData

from simul.env_worker.games.pokemon.tables.damage import moves, rules
from simul.env_worker.games.pokemon.tables.damage.facts import FACTS, PAIR_FACTS, words
from simul.env_worker.games.pokemon.tables.damage.moves import DamageMove, damage_move
from simul.env_worker.games.pokemon.tables.damage.rules import STAGE_NAMES, Rule
from simul.env_worker.games.pokemon.tables.movedex import type_chart

EXPONENTS = {0.0: 0, 0.5: -1, 1.0: 0, 2.0: 1}  # log2 of a type's multiplier, 0 where it is immune
HIDDEN_POWERS = "bug dark dragon electric fighting fire flying ghost grass ground ice poison psychic rock steel water"
HEAVY_ITEMS = (
    "ironball",
    "machobrace",
    *[f"power{part}" for part in ("weight", "bracer", "belt", "lens", "band", "anklet")],
)
STUCK = {"arceus": "plate", "silvally": "memory", "genesect": "drive", "giratina": "griseous", "ogerpon": "mask"}
ALWAYS_STUCK = ("iumz", "ite", "itex", "itey", "rustedsword", "rustedshield", "boosterenergy", "blueorb", "redorb")
SPEED_ABILITIES = {
    "chlorophyll": FACTS["sun"],
    "swiftswim": FACTS["rain"],
    "sandrush": FACTS["sand"],
    "slushrush": FACTS["snow"],
    "surgesurfer": FACTS["electric_terrain"],
}
MOLD_BREAKERS = ("moldbreaker", "teravolt", "turboblaze")
SCRAPPY = ("scrappy", "mindseye")
UNBREAKABLE = ("shadowshield", "prismarmor", "fullmetalbody")
# By poke-env's names: facts, and how harsh the weather is (1 desolate land, 2 primordial sea, 3 strong winds, 4 hail).
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
SCREENS = {
    "REFLECT": "reflect",
    "LIGHT_SCREEN": "lightscreen",
    "AURORA_VEIL": "auroraveil",
    "LUCKY_CHANT": "luckychant",
}
UNCRITICAL_ABILITIES = ("battlearmor", "shellarmor")  # no hit on the holder is critical, nor behind Lucky Chant
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
_OTHER_EFFECTS = "SMACK_DOWN MAGNET_RISE TELEKINESIS INGRAIN ROOST DYNAMAX TAR_SHOT REFLECT LIGHT_SCREEN"


def _effects_of(text: str) -> set[str]:
    return {name for line in filter(None, text.split("\n")) for name in line.split("|")[0].split()}


EFFECTS = sorted(_effects_of(rules.EFFECTS) | _effects_of(rules.TARGET_EFFECTS) | set(_OTHER_EFFECTS.split()))


def damage_tables(gen: int, doubles: bool = False) -> dict[str, Any]:
    """Everything of one generation; masks of facts come as two words, weights in tenths of a kilogram."""
    dex, chart = GenData.from_gen(gen).pokedex, type_chart(gen)
    return {
        "facts": {name: words(mask) for name, mask in FACTS.items()},
        "pair_facts": words(PAIR_FACTS),
        "stages": STAGE_NAMES,
        "rules": {
            who: {name: [_rule(rule) for rule in found] for name, found in named.items()}
            for who, named in rules.rules(gen, doubles).items()
        },
        "exponents": [[EXPONENTS[value] for value in row] for row in chart],
        "immune": [[value == 0.0 for value in row] for row in chart],
        "weights": {name: round(10 * entry.get("weightkg", 0)) for name, entry in dex.items()},
        "unfinished": sorted(name for name, entry in dex.items() if entry.get("evos")),
        "moves": _moves(gen),
        "retyping": moves.RETYPING,
        "by_weather": moves.BY_WEATHER,
        "by_terrain": moves.BY_TERRAIN,
        "by_forme": moves.BY_FORME,
        "item_types": moves.ITEM_TYPES,
        "stuck": STUCK,
        "always_stuck": ALWAYS_STUCK,
        "heavy_items": HEAVY_ITEMS,
        "speed_abilities": {name: words(fact) for name, fact in SPEED_ABILITIES.items()},
        "mold": MOLD_BREAKERS,
        "scrappy": SCRAPPY,
        "unbreakable": UNBREAKABLE,
        "uncritical": UNCRITICAL_ABILITIES,
        "weathers": {name: [words(fact), harsh] for name, (fact, harsh) in WEATHERS.items()},
        "terrains": {name: words(fact) for name, fact in TERRAINS.items()},
        "screens": SCREENS,
        "effects": EFFECTS,
        "hp_abilities": HP_ABILITIES,
        "calm": WEATHER_CANCELLERS,
        "unknown_item": GenData.UNKNOWN_ITEM,
    }


def _rule(rule: Rule) -> list[Any]:
    return [rule.stage, rule.mod, *words(rule.mask), rule.species]


def _moves(gen: int) -> dict[str, list[Any]]:
    names = [*GenData.from_gen(gen).moves, *[f"hiddenpower{kind}" for kind in HIDDEN_POWERS.split()]]
    found = {name: damage_move(gen, name) for name in names}
    return {name: _move(move) for name, move in found.items() if move is not None}


def _move(move: DamageMove) -> list[Any]:
    return [*move._replace(mask=0), words(move.mask)]
