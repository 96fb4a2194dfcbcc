"""What is known of a move before any battle: numbers for the encoder, terms for the damage estimate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from poke_env.battle.move import Move
from poke_env.battle.move_category import MoveCategory
from poke_env.battle.pokemon_type import PokemonType
from poke_env.data import GenData

from simul.env_worker.games.pokemon.tables.layout import STATIC_MOVE
from simul.env_worker.games.pokemon.tables.vocabulary import vocabulary

_NAMED = ("sound", "punch", "bite", "slicing", "bullet", "pulse", "powder", "wind", "dance")
_MORE_NAMED = ("bypasssub", "protect", "reflectable", "defrost")
_SELF_TARGETS = ("self", "allies", "allySide", "adjacentAllyOrSelf")
_STATUSES = (("brn",), ("frz",), ("par",), ("psn", "tox"), ("slp",))

Entry = dict[str, Any]


def move_flags(entry: Entry, flags: dict[str, Any], effects: list[Entry]) -> tuple[float, ...]:
    """Of one entry of the move data; `effects`: its secondary effects."""
    return (
        *[float(name in flags) for name in _NAMED],
        *[float(name in flags) for name in _MORE_NAMED],
        float(entry["accuracy"] is True),
        float(entry.get("critRatio", 1) > 1 or bool(entry.get("willCrit"))),
        float("multihit" in entry),
        float("damage" in entry or "damageCallback" in entry or "ohko" in entry),
        float(entry.get("target") in _SELF_TARGETS),
        float("charge" in flags),
        float("recharge" in flags),
        *[_chance(entry, effects, "status", statuses) for statuses in _STATUSES],
        _chance(entry, effects, "volatileStatus", ("flinch",)),
        float(entry.get("volatileStatus") == "partiallytrapped"),
    )


def _chance(entry: Entry, effects: list[Entry], key: str, wanted: tuple[str, ...]) -> float:
    """How likely one of these follows when the move hits."""
    if entry.get(key) in wanted:
        return 1.0
    return max([effect.get("chance", 100) / 100 for effect in effects if effect.get(key) in wanted], default=0.0)


PHYSICAL, SPECIAL, STATUS = 0, 1, 2
Chart = tuple[tuple[float, ...], ...]  # type multiplier [attacking type id][defending type id]
# Moves whose power depends on the moment: a typical value.
TYPICAL_POWER = {
    "beatup": 60,
    "crushgrip": 60,
    "electroball": 70,
    "flail": 60,
    "fling": 50,
    "frustration": 102,
    "grassknot": 70,
    "gyroball": 70,
    "hardpress": 60,
    "heatcrash": 80,
    "heavyslam": 80,
    "hiddenpower": 60,
    "lowkick": 70,
    "magnitude": 70,
    "naturalgift": 80,
    "present": 50,
    "punishment": 70,
    "return": 102,
    "reversal": 60,
    "trumpcard": 50,
    "wringout": 60,
}
FRACTION_DAMAGE = {"superfang": 0.5, "naturesmadness": 0.5, "ruination": 0.5, "guardianofalola": 0.75}
HAZARDS = {"stealthrock", "spikes", "toxicspikes", "stickyweb", "ceaselessedge", "stoneaxe"}
CLEARERS = {"rapidspin", "defog", "mortalspin", "tidyup", "courtchange"}
SCREENS = {"reflect", "lightscreen", "auroraveil", "tailwind", "safeguard", "mist", "luckychant"}
HEALERS = {"rest": 1.0, "wish": 0.5, "morningsun": 0.5, "moonlight": 0.5, "synthesis": 0.5, "shoreup": 0.5}
HEALERS |= {"strengthsap": 0.4, "painsplit": 0.3, "leechseed": 0.3, "healingwish": 0.0, "lunardance": 0.0}
NAMED_TARGET_DEFENCE = {"psyshock", "psystrike", "secretsword"}


@dataclass(frozen=True, slots=True, eq=False)
class MoveInfo:
    """One move of one generation.

    Attributes:
        row, type: ids of the embedding tables.
        category: PHYSICAL, SPECIAL or STATUS.
        power: expected base power of all hits together; 0 where damage does not come from power.
        level_damage: True = damage equals the user's level.
        fraction: damage as a fraction of the target's hp, 0 for ordinary moves.
        flat: fixed damage in hp, 0 for ordinary moves.
        fixed: True = one of the three above; no modifier applies.
        own_defence: True = body press, attacks with defence; foe_attack: True = foul play, with the target's attack.
        hits_defence: True = the target defends with defence, False = with special defence.
        static: the encoder's numbers that never change, `layout.STATIC_MOVE`.
    """

    row: int
    type: int
    category: int
    power: float
    accuracy: float
    level_damage: bool
    fraction: float
    flat: float
    fixed: bool
    own_defence: bool
    foe_attack: bool
    hits_defence: bool
    static: tuple[float, ...]


@cache
def move_info(gen: int, move_id: str) -> MoveInfo | None:
    """None for what the move data does not know (recharge, fight)."""
    move_id = Move.retrieve_id(move_id) if not move_id.startswith("hiddenpower") else move_id.rstrip("0123456789")
    entry = GenData.from_gen(gen).moves.get(move_id)
    if entry is None:
        return None
    move = Move(move_id, gen=gen)
    category = {MoveCategory.PHYSICAL: PHYSICAL, MoveCategory.SPECIAL: SPECIAL}.get(move.category, STATUS)
    power = _power(move_id, entry)
    accuracy = 1.0 if entry["accuracy"] is True else entry["accuracy"] / 100
    damage = entry.get("damage")
    fraction = 1.0 if entry.get("ohko") else FRACTION_DAMAGE.get(move_id, 0.0)
    return MoveInfo(
        row=vocabulary().move.get(move_id, 0),
        type=move.type.value,
        category=category,
        power=power if category != STATUS else 0.0,
        accuracy=accuracy,
        level_damage=damage == "level",
        fraction=fraction,
        flat=float(damage) if isinstance(damage, int) else 0.0,
        fixed=bool(damage or fraction),
        own_defence=move_id == "bodypress",
        foe_attack=move_id == "foulplay",
        hits_defence=category == PHYSICAL or move_id in NAMED_TARGET_DEFENCE,
        static=_static(move_id, entry, category, power, accuracy),
    )


@cache
def type_chart(gen: int) -> Chart:
    """The multipliers of a generation; 1 for unknown, typeless and stellar."""
    chart = GenData.from_gen(gen).type_chart
    size = vocabulary().sizes["type"]
    table = [[1.0] * size for _ in range(size)]
    for attacker in PokemonType:
        for defender in PokemonType:
            row = chart.get(defender.name)
            if row is not None and attacker.name in row:
                table[attacker.value][defender.value] = row[attacker.name]
    return tuple(tuple(row) for row in table)


def _power(move_id: str, entry: dict[str, Any]) -> float:
    power = float(entry.get("basePower", 0) or TYPICAL_POWER.get(move_id, 0))
    hits = entry.get("multihit", 1)
    if move_id in ("triplekick", "tripleaxel"):
        return power * (1 + 2 * 0.9 + 3 * 0.81)
    if isinstance(hits, list):
        hits = 3.1 if hits == [2, 5] else sum(hits) / len(hits)
    return power * float(hits)


def _static(move_id: str, entry: dict[str, Any], category: int, power: float, accuracy: float) -> tuple[float, ...]:
    flags = entry.get("flags", {})
    effects = [*(entry.get("secondaries") or []), *([entry["secondary"]] if entry.get("secondary") else [])]
    own_boosts = _own_boosts(entry)
    foe_drops = _foe_drops(entry, effects)
    status, hindrance = _afflictions(entry, effects)
    heal, drain = entry.get("heal"), entry.get("drain")
    condition = entry.get("sideCondition", "")
    numbers: dict[str, float | tuple[float, ...]] = {
        "power": power,
        "accuracy": accuracy,
        "priority": entry.get("priority", 0),
        "category": (category == PHYSICAL, category == SPECIAL, category == STATUS),
        "heals": heal[0] / heal[1] if heal else HEALERS.get(move_id, 0.0),
        "drains": drain[0] / drain[1] if drain else 0.0,
        "recoil": any(entry.get(key) for key in ("recoil", "mindBlownRecoil", "hasCrashDamage", "selfdestruct")),
        "raises_self": sum(v for v in own_boosts if v > 0),
        "lowers_self": -sum(v for v in own_boosts if v < 0),
        "lowers_foe": foe_drops,
        "inflicts": status,
        "confuses": hindrance,
        "hazard": move_id in HAZARDS,
        "clears": move_id in CLEARERS,
        "protects": "stallingMove" in entry,
        "pivots": bool(entry.get("selfSwitch")),
        "phazes": bool(entry.get("forceSwitch")),
        "screen": condition in SCREENS,
        "field": any(key in entry for key in ("weather", "terrain", "pseudoWeather")),
        "slow": "charge" in flags or "recharge" in flags,
        "contact": "contact" in flags,
        "flags": move_flags(entry, flags, effects),
    }
    return tuple(min(value / field.scale, 1.0) for field in STATIC_MOVE for value in _each(numbers[field.name]))


def _each(numbers: float | tuple[float, ...]) -> tuple[float, ...]:
    return numbers if isinstance(numbers, tuple) else (numbers,)


def _own_boosts(entry: dict[str, Any]) -> list[int]:
    values = list((entry.get("self") or {}).get("boosts", {}).values())
    values += list((entry.get("selfBoost") or {}).get("boosts", {}).values())
    if entry.get("target") in ("self", "allies", "adjacentAllyOrSelf"):
        values += list((entry.get("boosts") or {}).values())
    return values


def _foe_drops(entry: dict[str, Any], effects: list[dict[str, Any]]) -> float:
    drops = 0.0
    if entry.get("target") not in ("self", "allies", "adjacentAllyOrSelf"):
        drops -= sum(min(v, 0) for v in (entry.get("boosts") or {}).values())
    for effect in effects:
        drops -= sum(min(v, 0) for v in (effect.get("boosts") or {}).values()) * effect.get("chance", 100) / 100
    return drops


def _afflictions(entry: dict[str, Any], effects: list[dict[str, Any]]) -> tuple[float, float]:
    """Chances of a status and of another hindrance."""
    status = 1.0 if entry.get("status") else 0.0
    hindrance = 1.0 if entry.get("volatileStatus") and entry.get("target") != "self" else 0.0
    for effect in effects:
        chance = effect.get("chance", 100) / 100
        if "status" in effect:
            status = max(status, chance)
        if "volatileStatus" in effect:
            hindrance = max(hindrance, chance)
    return status, hindrance
