"""What the damage formula needs of a move, as plain integers; `node/damage/tables.mjs` reads them."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from poke_env.battle.move import Move
from poke_env.battle.pokemon_type import PokemonType
from poke_env.data import GenData

from simul.env_worker.games.pokemon.tables.damage.facts import FACTS

STATUS, PHYSICAL, SPECIAL = 0, 1, 2
# Power that follows from the two Pokemon; everything else has a number of its own.
(PLAIN, WEIGHT, WEIGHT_RATIO, SLOWER, FASTER, TARGET_HP, USER_HP, PINCH, BOOSTS, NO_ITEM, FALLEN, HALVED_HP) = range(12)
POWER_KINDS = {
    **dict.fromkeys(("lowkick", "grassknot"), WEIGHT),
    **dict.fromkeys(("heavyslam", "heatcrash"), WEIGHT_RATIO),
    **dict.fromkeys(("crushgrip", "wringout", "hardpress"), TARGET_HP),
    **dict.fromkeys(("eruption", "waterspout", "dragonenergy"), USER_HP),
    **dict.fromkeys(("flail", "reversal"), PINCH),
    **dict.fromkeys(("storedpower", "powertrip"), BOOSTS),
    "gyroball": SLOWER,
    "electroball": FASTER,
    "acrobatics": NO_ITEM,
    "lastrespects": FALLEN,
    "brine": HALVED_HP,
}
# Power known only when the move is used: what it is on average, or at first.
USUAL_POWER = {
    "beatup": 14, "fling": 50, "frustration": 102, "hiddenpower": 60, "magnitude": 71, "naturalgift": 80, "present": 52,
    "punishment": 60, "return": 102, "spitup": 100, "trumpcard": 40, "tripleaxel": 40, "triplekick": 20,
    "crushgrip": 120, "wringout": 120, "hardpress": 100,
}  # fmt: skip
# Damage that no modifier changes.
(NOT_FIXED, FLAT, LEVEL, TARGET_SHARE, TARGET_ALL, TO_USERS_HP, USERS_HP, ROUGHLY_LEVEL) = range(8)
FIXED = {
    **dict.fromkeys(("superfang", "naturesmadness", "ruination"), (TARGET_SHARE, 2)),
    "guardianofalola": (TARGET_SHARE, 4),
    "endeavor": (TO_USERS_HP, 0),
    "finalgambit": (USERS_HP, 0),
    "psywave": (ROUGHLY_LEVEL, 0),
}
UNFORESEEN = {"counter", "mirrorcoat", "metalburst", "comeuppance", "bide"}  # they return the damage that the user took
# How the type follows from the user or the field.
(OWN_TYPE, TERA_TYPE, WEATHER_TYPE, TERRAIN_TYPE, ITEM_TYPE, FIRST_TYPE, FORME_TYPE, HIDDEN_TYPE) = range(8)
TYPE_KINDS = {
    "terablast": TERA_TYPE,
    "terastarstorm": FORME_TYPE,
    "weatherball": WEATHER_TYPE,
    "terrainpulse": TERRAIN_TYPE,
    **dict.fromkeys(("judgment", "multiattack", "technoblast"), ITEM_TYPE),
    "revelationdance": FIRST_TYPE,
    **dict.fromkeys(("ivycudgel", "aurawheel", "ragingbull"), FORME_TYPE),
    "hiddenpower": HIDDEN_TYPE,
    "naturalgift": HIDDEN_TYPE,
}
# Odd effectiveness.
(NO_ODDITY, FREEZE_DRY, FLYING_PRESS, THOUSAND_ARROWS) = range(4)
ODDITIES = {"freezedry": FREEZE_DRY, "flyingpress": FLYING_PRESS, "thousandarrows": THOUSAND_ARROWS}
(
    CRITS,  # always
    BETTER_SIDE,
    OWN_DEFENCE,
    FOE_ATTACK,
    HITS_DEFENCE,
    IGNORES_STAGES,
    IGNORES_ABILITY,
    STRUGGLES,
    EXPLODES,
    UNFORCED,  # terastallizing does not lift its power to 60
    RISES,  # it raises the user's special attack before it hits
) = (1 << place for place in range(11))
SCREEN_BREAKERS = {"brickbreak", "psychicfangs", "ragingbull"}
_SPECIAL_TYPES = ["FIRE", "WATER", "GRASS", "ICE", "ELECTRIC", "PSYCHIC", "DRAGON", "DARK"]


class DamageMove(NamedTuple):
    """`bits`: CRITS and so on; `mask`: facts of the move itself (category and type come with the user);
    `hits`: mean and variance of the number of hits."""

    type: int
    category: int
    power: int
    power_kind: int
    type_kind: int
    fixed: int
    amount: int
    oddity: int
    bits: int
    mask: int
    few_hits: bool
    hits: tuple[float, float]


@cache
def damage_move(gen: int, name: str) -> DamageMove | None:
    """None for moves without predictable damage. `name` as requests spell it (`hiddenpowerfire60`)."""
    move_id = "hiddenpower" if name.startswith("hiddenpower") else Move.retrieve_id(name)
    entry = GenData.from_gen(gen).moves.get(move_id)
    if entry is None or entry["category"] == "Status" or move_id in UNFORESEEN:
        return None
    fixed, amount = _fixed(move_id, entry)
    power = USUAL_POWER.get(move_id, entry["basePower"])
    kind = POWER_KINDS.get(move_id, PLAIN)
    if kind == WEIGHT and power:  # gens 1 and 2
        kind = PLAIN
    if not (power or fixed or kind):
        return None
    own_type = _hidden_type(gen, name) if move_id == "hiddenpower" else _type(entry["type"])
    return DamageMove(
        type=own_type,
        category=_category(gen, entry, own_type),
        power=power if move_id != "hiddenpower" or gen >= 6 else _hidden_power(name),
        power_kind=kind,
        type_kind=TYPE_KINDS.get(move_id, OWN_TYPE),
        fixed=fixed,
        amount=amount,
        oddity=ODDITIES.get(move_id, NO_ODDITY),
        bits=_bits(gen, move_id, entry),
        mask=_mask(gen, move_id, entry),
        few_hits=entry.get("multihit") == [2, 5],
        hits=_hits(gen, entry.get("multihit", 1)),
    )


def _type(name: str) -> int:
    return int(PokemonType.from_name(name).value) if name != "???" else int(PokemonType.THREE_QUESTION_MARKS.value)


def _category(gen: int, entry: dict[str, Any], kind: int) -> int:
    """Before gen 4 the type decides (of hidden power, too)."""
    if gen <= 3 and entry["category"] != "Status":
        return SPECIAL if PokemonType(kind).name in _SPECIAL_TYPES else PHYSICAL
    return PHYSICAL if entry["category"] == "Physical" else SPECIAL


def _hidden_type(gen: int, name: str) -> int:
    return int(Move(name.rstrip("0123456789"), gen=gen).type.value)


def _hidden_power(name: str) -> int:
    digits = name.lstrip("abcdefghijklmnopqrstuvwxyz")
    return int(digits) if digits else 70


def _fixed(move_id: str, entry: dict[str, Any]) -> tuple[int, int]:
    if move_id in FIXED:
        return FIXED[move_id]
    if entry.get("ohko"):
        return TARGET_ALL, 0
    damage = entry.get("damage")
    if damage == "level":
        return LEVEL, 0
    return (FLAT, damage) if damage else (NOT_FIXED, 0)


def _bits(gen: int, move_id: str, entry: dict[str, Any]) -> int:
    flags = (
        bool(entry.get("willCrit")),
        move_id in ("photongeyser", "terablast"),
        entry.get("overrideOffensiveStat") == "def",
        entry.get("overrideOffensivePokemon") == "target",
        entry.get("overrideDefensiveStat") == "def",
        bool(entry.get("ignoreDefensive")),
        bool(entry.get("ignoreAbility")),
        move_id == "struggle" and gen >= 2,
        gen <= 4 and move_id in ("explosion", "selfdestruct"),
        bool(entry.get("multihit")) or entry["priority"] > 0 or _odd_power(entry),
        move_id in ("meteorbeam", "electroshot"),
    )
    return sum(1 << place for place, flag in enumerate(flags) if flag)


def _odd_power(entry: dict[str, Any]) -> bool:
    """Power that terastallizing does not lift to 60."""
    return "basePowerCallback" in entry and entry["basePower"] in (0, 150)


def _mask(gen: int, move_id: str, entry: dict[str, Any]) -> int:
    mask = 0
    for flag in ("contact", "punch", "bite", "sound", "slicing", "pulse", "bullet", "wind"):
        if flag in entry.get("flags", {}):
            mask |= FACTS[flag]
    if entry.get("recoil") or entry.get("hasCrashDamage"):
        mask |= FACTS["recoil"]
    if entry["priority"] > 0:
        mask |= FACTS["early"]
    if _has_secondary(entry):
        mask |= FACTS["secondary"]
    breaks = move_id in SCREEN_BREAKERS and not (gen == 3 and move_id == "brickbreak")
    if not breaks and not entry.get("willCrit"):
        mask |= FACTS["meets_screens"]
    return mask


def _has_secondary(entry: dict[str, Any]) -> bool:
    """What Sheer Force gives up for power."""
    effects = bool(entry.get("secondaries")) or entry.get("secondary") is not None  # {}: one that is said elsewhere
    return effects or bool(entry.get("hasSheerForce") or entry.get("hasSheerForceBoost"))


def _hits(gen: int, hits: int | list[int]) -> tuple[float, float]:
    if hits == [2, 5]:
        return (3.1, 1.09) if gen >= 5 else (3.0, 1.0)
    number = float(hits if isinstance(hits, int) else sum(hits) / 2)
    return number, 0.0


BUG, DARK, DRAGON, ELECTRIC, FAIRY, FIGHTING, FIRE, FLYING, GHOST, GRASS, GROUND, ICE = range(1, 13)
NORMAL, POISON, PSYCHIC, ROCK, STEEL, WATER = range(13, 19)
STELLAR = 20
RETYPING = {
    "aerilate": (FLYING, 6),
    "pixilate": (FAIRY, 6),
    "refrigerate": (ICE, 6),
    "galvanize": (ELECTRIC, 7),
    "normalize": (NORMAL, 4),
}
BY_WEATHER = (("sun", FIRE), ("rain", WATER), ("sand", ROCK), ("snow", ICE))
BY_TERRAIN = (
    ("electric_terrain", ELECTRIC), ("grassy_terrain", GRASS), ("misty_terrain", FAIRY), ("psychic_terrain", PSYCHIC),
)  # fmt: skip
BY_FORME = (
    ("ivycudgel", "ogerponwellspring", WATER),
    ("ivycudgel", "ogerponhearthflame", FIRE),
    ("ivycudgel", "ogerponcornerstone", ROCK),
    ("aurawheel", "morpekohangry", DARK),
    ("ragingbull", "taurospaldeacombat", FIGHTING),
    ("ragingbull", "taurospaldeablaze", FIRE),
    ("ragingbull", "taurospaldeaaqua", WATER),
    ("terastarstorm", "terapagosstellar", STELLAR),
)
_PLATES = (
    "fist:6 dread:2 flame:7 draco:3 pixie:5 stone:16 zap:4 iron:17 meadow:10 splash:18 icicle:12 mind:15 toxic:14 "
    "sky:8 insect:1 earth:11 spooky:9"
)
_MEMORIES = (
    "bug:1 dark:2 dragon:3 electric:4 fairy:5 fighting:6 fire:7 flying:8 ghost:9 grass:10 ground:11 ice:12 poison:14 "
    "psychic:15 rock:16 steel:17 water:18"
)


def _item_types(pairs: str, ending: str) -> dict[str, int]:
    return {f"{name}{ending}": int(kind) for name, kind in (pair.split(":") for pair in pairs.split())}


ITEM_TYPES = {
    **_item_types(_PLATES, "plate"),
    **_item_types(_MEMORIES, "memory"),
    **_item_types("burn:7 douse:18 shock:4 chill:12", "drive"),
}
