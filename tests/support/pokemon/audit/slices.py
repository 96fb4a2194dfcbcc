"""The observation as the simulator's state (record.mjs) says it must be: slice by slice, own or public facts only.

Written from the simulator's objects alone. Where the observation is approximate on purpose, `APPROXIMATIONS` names it;
docs/pokemon.md has the same list.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from poke_env.battle.move import Move
from poke_env.battle.pokemon_type import PokemonType
from poke_env.data import GenData

from simul.env_worker.games.pokemon.tables import doubles_layout as doubles
from simul.env_worker.games.pokemon.tables import layout
from simul.env_worker.games.pokemon.tables.layout import VOLATILES
from simul.env_worker.games.pokemon.tables.vocabulary import NO_ITEM, vocabulary
from tests.support.pokemon.audit.view import (
    Claim,
    Expected,
    Mon,
    Numbers,
    Side,
    View,
    infos_of,
    move_row,
    numbers_of_moves,
    real,
)

# What is approximate on purpose, as docs/pokemon.md lists it: name -> (slices, meaning).
APPROXIMATIONS = {
    "illusion": (
        "`foe.*`, `foe_side.team_hp`",
        "of a foe that has looked like another one, and of that other one: what was shown, by name",
    ),
    "silent recovery": (
        "`foe.hp`, `foe.status` and its counters, `foe_side.team_hp`",
        "Regenerator and Natural Cure of a foe show when it comes back",
    ),
    "borrowed moves": (
        "`last_move`",
        "a move that is not among those of its user (called, copied, or used before it transformed) may count or not",
    ),
    "copied pp": (
        "`own.moves_pp`, `foe.moves_pp`",
        "gen 1: Mimic may bring a move that its user has, and a copy that calls a move gives a move of its own one pp; "
        "until gen 4: how many pp a move can have that Transform brings depends on moves that a foe may not have shown",
    ),
    "max moves": (
        "`own.moves_pp`, `foe.moves_pp`",
        "Z-moves and max moves do not show which move they were made from; requests tell it of an own Pokemon that has "
        "stayed on the field",
    ),
    "hidden bind": (
        "`volatiles`",
        "gen 1: from its second turn on neither side is told whether Wrap, Bind, Clamp or Fire Spin goes on",
    ),
    "silent hold": (
        "`prevented`, `moved_first`, `failed`",
        "gen 1: a Pokemon that is bound (from the second turn of Wrap, Bind, Clamp or Fire Spin on) or waits with Bide "
        "does not count as kept from moving, nor as first, nor as failing: no line says `move` or `cant`",
    ),
    "hidden flinch": (
        "`recharging`",
        "gen 1: a foe that flinches need not recharge, and no line tells of a flinch after its move",
    ),
    "hidden pressure": (
        "`own.moves_pp`, `foe.moves_pp`",
        "gen 3: no line tells that a foe has Pressure; what it costs shows when the request offers the move again",
    ),
    "mixed stats": (
        "`own.stats`",
        "Guard Split, Power Split and Speed Swap with a foe, whose stats are not known",
    ),
    "hidden aim": (
        "`own.moves_pp`, `foe.moves_pp`",
        "doubles: a move of two turns does not show in its first, nor Me First where it fails, "
        "whether it aims at the foe that has Pressure",
    ),
    "safeguard": (
        "`foe.moves_pp`",
        "gen 2: under Safeguard no line tells the end of Thrash, Outrage and Petal Dance",
    ),
    "silent barb": ("`foe.item`", "no line tells that Sticky Barb changes hands"),
    "early bird": ("`sleep_turns`", "the ability Early Bird counts each lost turn twice"),
    "sleep talk": (
        "`sleep_turns`",
        "gen 3: turns of Sleep Talk and Snore, which the simulator gives back after a switch",
    ),
    "old toxic": (
        "`toxic_stage`",
        "gens 1 and 2: Leech Seed and switches change the simulator's counter in their own way",
    ),
}

CALLED = {"greninjabond": "greninja", "rockruffdusk": "rockruff"}
WEATHERS = {
    "sunnyday": 0,
    "desolateland": 0,
    "raindance": 1,
    "primordialsea": 1,
    "sandstorm": 2,
    "snowscape": 3,
    "hail": 3,
    "deltastream": 4,
}
TERRAINS = {"electricterrain": 0, "grassyterrain": 1, "mistyterrain": 2, "psychicterrain": 3}
SCREENS = (("reflect",), ("lightscreen",), ("auroraveil",), ("safeguard", "mist"), ("tailwind",))
BOOSTS = ("atk", "def", "spa", "spd", "spe", "accuracy", "evasion")
VOLATILE_IDS = (
    "substitute",
    "confusion",
    "leechseed",
    "taunt",
    "encore",
    "disable",
    "yawn",
    "perishsong",
    "saltcure",
    "partiallytrapped trapped noretreat octolock ingrain",
    "protosynthesis quarkdrive",
    "flashfire charge",
    "torment attract throatchop healblock imprison embargo",
    "dynamax",
)
PROTECTING = {name for gen in (8, 9) for name in GenData.from_gen(gen).moves if Move(name, gen).is_protect_counter}
PROTECTING.add("maxguard")
assert len(VOLATILE_IDS) == len(VOLATILES)
GEN_OF_HIDDEN_PRESSURE = 3
LAST_GEN_OF_OWN_PP_UPS = 4  # a copied move has those of the move in whose place it stands
LAST_GEN_OF_HIDDEN_SWAPS = 6  # later requests give the ability that a Pokemon has
PERISH = {4: 0.25, 3: 0.25, 2: 0.5, 1: 0.75}  # turns left -> number
STATUSES = ("brn", "frz", "par", "psn", "slp", "tox")


def one_hot(place: int | None, size: int) -> list[float]:
    """All 0 for None."""
    return [float(i == place) for i in range(size)]


def age(turn: int, state: dict[str, Any] | None) -> float:
    """Turns since an effect began / 8, 0 for none."""
    return min((turn - state["start"]) / 8, 1.0) if state else 0.0


def species_row(name: str) -> float:
    return vocabulary().species.get(name, 0)


def told_species(mon: Mon) -> str:
    """A copy keeps its own."""
    return called(mon["base_species" if mon["transformed"] else "species"])


def called(species: str) -> str:
    """Two formes are called as their base species by every line and request."""
    return CALLED.get(species, species)


def type_rows(names: Sequence[str]) -> list[float]:
    """The first two."""
    rows = [float(PokemonType.from_name(name).value) for name in names[:2]]
    return rows + [0.0] * (2 - len(rows))


def tera_row(name: str) -> float:
    return float(PokemonType.from_name(name).value) if name else 0.0


def field_claims(view: View) -> Iterator[Claim]:
    """Turn, weather, terrain, trick room."""
    truth, turn = view.truth, view.truth["turn"]
    rooms = truth["rooms"]
    yield Claim("global.turn", [min(turn / 100, 1.0)])
    if view.doubles:
        yield Claim("global.right", [float(view.row.slot)])
    yield Claim("global.weather", one_hot(WEATHERS.get(truth["weather"]), 5))
    yield Claim("global.weather_turns", [age(turn, truth["weather_state"] if truth["weather"] else None)])
    yield Claim("global.terrain", one_hot(TERRAINS.get(truth["terrain"]), 4))
    yield Claim("global.terrain_turns", [age(turn, truth["terrain_state"] if truth["terrain"] else None)])
    yield Claim("global.trick_room", [float("trickroom" in rooms)])
    yield Claim("global.trick_room_turns", [age(turn, rooms.get("trickroom"))])


def side_claims(view: View, whose: str) -> Iterator[Claim]:
    """Hazards, screens, remaining strength of one side."""
    side: Side = getattr(view, whose)
    conditions, turn = side["conditions"] | own_screens(view.gen, side), view.truth["turn"]
    layers = [conditions.get(name, {}).get("layers", 0) for name in ("spikes", "toxicspikes")]
    hazards = ["stealthrock" in conditions, min(layers[0] / 3, 1.0), min(layers[1] / 2, 1.0), "stickyweb" in conditions]
    yield Claim(f"global.{whose}_side.hazards", [float(number) for number in hazards])
    found = [[conditions[name] for name in names if name in conditions] for names in SCREENS]
    yield Claim(f"global.{whose}_side.screens", [float(bool(of_kind)) for of_kind in found])
    ages: list[Expected] = [frozenset(age(turn, state) for state in of_kind or [None]) for of_kind in found]
    yield Claim(f"global.{whose}_side.screen_turns", ages)
    team = side["pokemon"]
    yield Claim(f"global.{whose}_side.alive", [sum(not mon["fainted"] for mon in team) / 6])
    yield Claim(f"global.{whose}_side.gimmick_used", [float(side["spent"])])
    hp = [hp_fraction(mon) if whose == "own" else shown_hp(side, place) for place, mon in enumerate(team)]
    excuses = [foe_excuse(mon, mon) for mon in team] if whose == "foe" else []
    yield Claim(f"global.{whose}_side.team_hp", [sum(hp) / 6], next(filter(None, excuses), ""))


def own_screens(gen: int, side: Side) -> dict[str, Any]:
    """What the Pokemon on the field has put up for itself: in gen 1 all screens, in gen 2 Mist."""
    names = ("reflect", "lightscreen", "mist") if gen == 1 else ("mist",) if gen == 2 else ()
    volatiles = next((mon["volatiles"] for mon in side["pokemon"] if mon["active"] and not mon["fainted"]), {})
    return {name: volatiles[name] for name in names if name in volatiles}


def foe_excuse(mon: Mon, standing: Mon) -> str:
    """Why the hp of a foe may be others. `standing`: who it really is."""
    if mon["disguised"] or standing["disguised"]:
        return "illusion"
    return "silent recovery" if not mon["active"] and mon["ability"] in ("regenerator", "naturalcure") else ""


def hp_fraction(mon: Mon) -> float:
    return mon["hp"] / mon["max_hp"] if not mon["fainted"] else 0.0


def shown_hp(side: Side, place: int) -> float:
    """Of a foe, as its hp are shown: in percent or pixels; full before it has come out."""
    if place not in side["appeared"]:
        return 1.0
    text = real(side, place)["shared_hp"]
    found = re.match(r"(\d+)/(\d+)", text)
    return int(found[1]) / int(found[2]) if found else 0.0


def active_claims(view: View) -> Iterator[Claim]:
    """The Pokemon on the field; of a fainted one nothing is claimed."""
    own, foe = view.own, view.foe
    if view.doubles:
        slot = view.row.slot
        standing = (("self", own, slot), ("partner", own, 1 - slot), ("left_foe", foe, 0), ("right_foe", foe, 1))
    else:
        standing = (("own", own, 0), ("foe", foe, 0))
    for name, side, slot in standing:
        place = side["slots"][slot] if slot < len(side["slots"]) else -1
        if place >= 0 and not side["pokemon"][place]["fainted"]:
            yield from one_active(view, f"global.{name}_active", side["pokemon"][place])


def one_active(view: View, name: str, mon: Mon) -> Iterator[Claim]:
    volatiles = mon["volatiles"]
    lasts = mon["last_moves"]
    borrowed = lasts and not mon["powered"] and lasts[-1] not in [slot for slot, _, _ in mon["slots"]]
    rows = frozenset(map(move_row, lasts)) or frozenset((0.0,))
    yield Claim(f"{name}.last_move", [rows], "borrowed moves" if borrowed else "")
    yield Claim(f"{name}.boosts", [mon["boosts"][stat] / 6 for stat in BOOSTS])
    bind = "hidden bind" if view.gen == 1 and bind_is_hidden(view.truth["turn"], volatiles) else ""
    yield Claim(f"{name}.volatiles", [volatile_number(volatiles, ids.split()) for ids in VOLATILE_IDS], bind)
    flinched = mon["flinched"] and "foe" in name
    yield Claim(f"{name}.recharging", [float("mustrecharge" in volatiles)], "hidden flinch" if flinched else "")
    charged = volatiles.get("twoturnmove", {}).get("move")  # after gen 1 its own effect ends when it is used
    yield Claim(f"{name}.preparing", [float(charged in volatiles or (view.gen == 1 and charged is not None))])
    protects = not lasts or not PROTECTING.isdisjoint(lasts)  # what is left of the count goes at the end of the turn
    count = protect_count(view.gen, volatiles.get("stall")) if protects else 0
    yield Claim(f"{name}.protect_count", [min(count / 3, 1.0)])
    yield Claim(f"{name}.turns_active", [min(mon["active_turns"] / 8, 1.0)])
    yield Claim(f"{name}.transformed", [float(mon["transformed"])])


def last_claims(view: View, who: str) -> Iterator[Claim]:
    """What a side did and met in the turn just played, or so far; nothing before the first."""
    name, seat = f"global.{who}_last", view.row.seat if who == "own" else 1 - view.row.seat
    turn = view.truth["last"]
    if turn is None:
        for part in layout.LAST:
            yield Claim(f"{name}.{part.name}", [0.0])
        return
    did = turn[seat]
    silent = [one["prevented"] and not one["told"] for one in turn]
    for field in ("missed", "critical", "switched", "fainted"):
        yield Claim(f"{name}.{field}", [float(did[field])])
    for field in ("prevented", "failed"):
        yield Claim(f"{name}.{field}", [float(did[field])], "silent hold" if silent[seat] else "")
    yield Claim(f"{name}.moved_first", [float(did["first"])], "silent hold" if any(silent) else "")
    yield Claim(f"{name}.hp_lost", [min(did["lost"]["exact" if who == "own" else "shown"], 1.0)])


def bind_is_hidden(turn: int, volatiles: dict[str, Any]) -> bool:
    """Gen 1: whether a trapping move has gone on after its first turn, or has just ended."""
    bind = volatiles.get("partiallytrapped")
    return "fakepartiallytrapped" in volatiles or (bind is not None and bind["start"] < turn - 1)


def volatile_number(volatiles: dict[str, Any], ids: list[str]) -> float:
    found = [volatiles[name] for name in ids if name in volatiles]
    if not found:
        return 0.0
    return PERISH.get(found[0]["duration"], 1.0) if ids == ["perishsong"] else 1.0


def protect_count(gen: int, stall: dict[str, Any] | None) -> int:
    """Consecutive successes, from what the simulator multiplies or divides with each."""
    if stall is None:
        return 0
    if gen == 2:
        return round(math.log2(255 / stall["counter"]))
    return round(math.log(stall["counter"], 2 if gen in (3, 4, 5) else 3))


def condition_claims(view: View, name: str, mon: Mon, excuse: str = "") -> Iterator[Claim]:
    """Status and its counters; none of who has fainted, which in gen 4 keeps them until the turn ends."""
    status = mon["status"] if not mon["fainted"] else ""
    yield Claim(f"{name}.status", one_hot(STATUSES.index(status) if status in STATUSES else None, 6), excuse)
    talks = view.gen == 3 and {"sleeptalk", "snore"} & set(mon["moves"])
    counted = excuse or ("early bird" if mon["ability"] == "earlybird" else "sleep talk" if talks else "")
    yield Claim(f"{name}.sleep_turns", [min(mon["slept"] / 7, 1.0) if status == "slp" else 0.0], counted)
    yield Claim(f"{name}.resting", [float(mon["resting"] and status == "slp")], excuse)
    stage = mon["status_state"].get("stage", mon["volatiles"].get("residualdmg", {}).get("counter", 0))
    excuse = excuse or ("old toxic" if view.gen <= 2 and status == "tox" else "")
    yield Claim(f"{name}.toxic_stage", [min(stage / 15, 1.0) if status == "tox" else 0.0], excuse)


def own_team_claims(view: View) -> Iterator[Claim]:
    """Own Pokemon, and the blocks behind a smaller team."""
    for place, mon in enumerate(view.own["pokemon"][:6]):
        yield from own_claims(view, f"own.{place}", mon)
    for place in range(len(view.own["pokemon"]), 6):
        for field in doubles.POKEMON if view.doubles else layout.POKEMON:
            yield Claim(f"own.{place}.{field.name}", [0.0] * field.size)


def own_claims(view: View, name: str, mon: Mon) -> Iterator[Claim]:
    """An own Pokemon: everything is known."""
    rows, moves = vocabulary(), mon["moves"][:4]
    yield Claim(f"{name}.species", [species_row(told_species(mon))])
    changed = mon["base_ability"] not in (mon["ability"], "trace") or mon["transformed"] or mon["swapped"]
    swapped = view.gen <= LAST_GEN_OF_HIDDEN_SWAPS and changed
    true = float(rows.ability.get(mon["ability"], 0))
    yield Claim(f"{name}.ability", [frozenset((0.0, true)) if swapped else true])
    yield Claim(f"{name}.item", [rows.item.get(mon["item"] or NO_ITEM, 0)])
    yield Claim(f"{name}.moves", padded([move_row(move) for move in moves]))
    if not view.doubles:
        yield Claim(f"{name}.moves_known", numbers_of_moves(infos_of(view.gen, moves)))
    yield Claim(f"{name}.tera_type", [tera_row(mon["tera_type"]) if view.gen == 9 else 0.0])
    yield Claim(f"{name}.present", [1.0])
    yield Claim(f"{name}.hp", [hp_fraction(mon)])
    yield Claim(f"{name}.fainted", [float(mon["fainted"])])
    yield from condition_claims(view, name, mon)
    if not mon["fainted"]:
        yield Claim(f"{name}.active", [float(mon["active"])])
        if view.doubles:
            yield slot_claim(name, mon)
        yield Claim(f"{name}.types", type_rows(mon["types"]))
        mixed = "mixed stats" if mon["mixed"] else ""
        yield Claim(f"{name}.stats", own_stats(view, mon), mixed)
        yield Claim(f"{name}.terastallized", [float(bool(mon["terastallized"]))])
    team = view.own["pokemon"]
    yield Claim(f"{name}.revealed", [float(team.index(mon) in view.own["appeared"])])
    yield Claim(f"{name}.level", [mon["level"] / 100])
    pp = padded([min(left / most, 1.0) for _, left, most in mon["slots"][:4]])
    yield Claim(f"{name}.moves_pp", pp, own_pp_excuse(view, mon))


def own_stats(view: View, mon: Mon) -> Numbers:
    """Its own; those of a copy of a foe may be the foe's estimates."""
    true = [min(stat / 500, 1.0) for stat in (mon["max_hp"], *mon["stats"])]
    models = [foe for foe in view.foe["pokemon"] if mon["transformed"] and foe["species"] == mon["species"]]
    estimates = [estimated_stats(view.gen, foe["species"], foe["level"]) for foe in models]
    return [true[0], *[frozenset(stat) for stat in zip(true[1:], *(numbers[1:] for numbers in estimates))]]


def estimated_stats(gen: int, species: str, level: int, dynamaxed: bool = False) -> list[float]:
    """hp, atk, def, spa, spd, spe of an even set: 31 IVs and 85 EVs each; until gen 2 the most there can be."""
    base = GenData.from_gen(gen).pokedex[species]["baseStats"]
    bonus = 93 if gen <= 2 else 52
    points = {name: (2 * base[name] + bonus) * level // 100 + 5 for name in ("hp", *BOOSTS[:5])}
    points["hp"] = 1 if base["hp"] == 1 else (points["hp"] + level + 5) * (2 if dynamaxed else 1)
    return [min(value / 500, 1.0) for value in points.values()]


def own_pp_excuse(view: View, mon: Mon) -> str:
    """Why the pp of an own Pokemon may be others where no request gives them."""
    pressed = view.gen == GEN_OF_HIDDEN_PRESSURE and view.foe["presses"]
    asked = mon["active"] and not mon["fainted"] and not mon["powered"]
    powered = view.own["powers"] and not asked
    excuse = "hidden pressure" if pressed else "max moves" if powered else old_copy(view.gen, mon)
    return excuse or aim_excuse(view, mon, view.foe)


def aim_excuse(view: View, mon: Mon, opposite: Side) -> str:
    """In doubles: whether it may have prepared a move that meets Pressure, or used Me First in vain."""
    moves = GenData.from_gen(view.gen).moves
    hides = any(name == "mefirst" or "charge" in moves[name]["flags"] for name, _, _ in mon["slots"])
    return "hidden aim" if view.doubles and opposite["presses"] and hides else ""


def pp_excuse(gen: int, mon: Mon) -> str:
    """Of a foe."""
    return "copied pp" if mon["transformed"] and gen <= LAST_GEN_OF_OWN_PP_UPS else old_copy(gen, mon)


def old_copy(gen: int, mon: Mon) -> str:
    """Whether gen 1 may have copied a move strangely."""
    copies = {"mimic", "transform", "metronome"} & set(mon["base_moves"])
    return "copied pp" if gen == 1 and copies else ""


def slot_claim(name: str, mon: Mon) -> Claim:
    """Where it stands in doubles."""
    return Claim(f"{name}.slot", one_hot(mon["position"] if mon["active"] else None, 2))


def padded(numbers: Sequence[Expected]) -> list[Expected]:
    return [*numbers, *[0.0] * (4 - len(numbers))]


def foe_pp(mon: Mon) -> dict[float, set[float]]:
    """Fractions of pp left by the row of a move; the type of a hidden power is not shown."""
    found: dict[float, set[float]] = {}
    for name, left, most in (*mon["slots"], *mon["base_slots"]):
        found.setdefault(move_row(name), set()).add(min(left / most, 1.0))
    for name, (_, left, most) in zip(mon["moves"], mon["slots"]):
        found.setdefault(move_row(name), set()).add(min(left / most, 1.0))
    return found
