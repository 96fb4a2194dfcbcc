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
from poke_env.data import GenData, to_id_str

from simul.env_worker.games.pokemon.battle_view.counters import full_pp, move_key
from simul.env_worker.games.pokemon.tables import doubles_layout as doubles
from simul.env_worker.games.pokemon.tables import layout
from simul.env_worker.games.pokemon.tables.layout import VOLATILES
from simul.env_worker.games.pokemon.tables.movedex import move_info
from simul.env_worker.games.pokemon.tables.vocabulary import NO_ITEM, vocabulary
from tests.support.pokemon.audit.battles import AuditedRow
from tests.support.pokemon.audit.claims import (
    Claim,
    Expected,
    Mon,
    Numbers,
    Side,
    View,
    infos_of,
    move_row,
    numbers_of_moves,
    places,
    real,
    view_of,
)
from tests.support.pokemon.audit.derived import PAIR, derived_claims
from tests.support.pokemon.audit.told import Facts

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
        "pp of copied moves (Mimic, Sketch; Transform until gen 4) are a fraction of what the move has elsewhere",
    ),
    "hidden ability": (
        "`own.ability`",
        "gens 3 to 6: a foe's ability that Skill Swap or Transform brings, which no line and no request tells",
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
        "doubles: a move of two turns does not show in its first whether it aims at the foe that has Pressure",
    ),
    "safeguard": (
        "`foe.moves_pp`",
        "gen 2: under Safeguard no line tells the end of Thrash, Outrage and Petal Dance",
    ),
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
# Slices of which nothing is claimed (patterns of their kinds), and what checks them instead.
NOT_AUDITED: dict[str, str] = {}


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
LAST_GEN_WITHOUT_ABILITIES = 2
LAST_GEN_OF_HIDDEN_SWAPS = 6  # later requests give the ability that a Pokemon has
PERISH = {4: 0.25, 3: 0.25, 2: 0.5, 1: 0.75}  # turns left -> number
STATUSES = ("brn", "frz", "par", "psn", "slp", "tox")
GIMMICKS = ("", " mega", " zmove", " dynamax", " terastallize")
GIMMICK_KEYS = ("canMegaEvo", "canZMove", "canDynamax", "canTerastallize")


def one_hot(place: int | None, size: int) -> list[float]:
    """All 0 for None."""
    return [float(i == place) for i in range(size)]


def age(turn: int, state: dict[str, Any] | None) -> float:
    """Turns since an effect began / 8, 0 for none."""
    return min((turn - state["start"]) / 8, 1.0) if state else 0.0


def species_row(name: str) -> float:
    return vocabulary().species.get(name, 0)


def told_species(mon: Mon) -> str:
    """A copy keeps its own; two formes are called as their base species by every line and request."""
    species: str = mon["base_species" if mon["transformed"] else "species"]
    return CALLED.get(species, species)


def type_rows(names: Sequence[str]) -> list[float]:
    """The first two."""
    rows = [float(PokemonType.from_name(name).value) for name in names[:2]]
    return rows + [0.0] * (2 - len(rows))


def tera_row(name: str) -> float:
    return float(PokemonType.from_name(name).value) if name else 0.0


def claims(row: AuditedRow) -> Iterator[Claim]:
    """All that one observation must hold."""
    view = view_of(row)
    yield from field_claims(view)
    yield from preview_claims(view)
    if not view.at_preview:
        yield from request_claims(view)
        yield from move_claims(view)
        if view.doubles:
            yield from partner_move_claims(view)
    yield from side_claims(view, "own")
    yield from side_claims(view, "foe")
    yield from active_claims(view)
    for place, mon in enumerate(view.own["pokemon"][:6]):
        yield from own_claims(view, f"own.{place}", mon)
    for place in range(len(view.own["pokemon"]), 6):
        for field in doubles.POKEMON if view.doubles else layout.POKEMON:
            yield Claim(f"own.{place}.{field.name}", [0.0] * field.size)
    yield from foe_team_claims(view)
    yield from derived_claims(view)


def preview_claims(view: View) -> Iterator[Claim]:
    """What is asked at a team preview; in a turn all of it is 0."""
    picks = [*view.row.picks, *[None] * 6] if view.at_preview else []
    wanted = view.row.request.get("maxChosenTeamSize") or (2 if view.doubles else 1)
    yield Claim("global.preview", [float(view.at_preview)])
    yield Claim("global.preview_picks", [min(wanted, len(view.own["pokemon"])) / 6 if view.at_preview else 0.0])
    order = [(picks.index(place) + 1) / 6 if place in picks else 0.0 for place in range(6)]
    yield Claim("global.preview_order", order)
    if view.at_preview:
        first = 1 if view.doubles else 0  # passing
        free = [float(place in range(len(view.own["pokemon"])) and place not in picks) for place in range(6)]
        size = places(view.row.job.format)["mask"].size
        yield Claim("mask", [0.0] * first + free + [0.0] * (size - first - 6))


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
    conditions, turn = side["conditions"], view.truth["turn"]
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
    """Status and its counters."""
    status = mon["status"]
    yield Claim(f"{name}.status", one_hot(STATUSES.index(status) if status in STATUSES else None, 6), excuse)
    talks = view.gen == 3 and {"sleeptalk", "snore"} & set(mon["moves"])
    counted = excuse or ("early bird" if mon["ability"] == "earlybird" else "sleep talk" if talks else "")
    yield Claim(f"{name}.sleep_turns", [min(mon["slept"] / 7, 1.0)], counted)
    yield Claim(f"{name}.resting", [float(mon["resting"])], excuse)
    stage = mon["status_state"].get("stage", mon["volatiles"].get("residualdmg", {}).get("counter", 0))
    excuse = excuse or ("old toxic" if view.gen <= 2 and status == "tox" else "")
    yield Claim(f"{name}.toxic_stage", [min(stage / 15, 1.0) if status == "tox" else 0.0], excuse)


def own_claims(view: View, name: str, mon: Mon) -> Iterator[Claim]:
    """An own Pokemon: everything is known."""
    rows, moves = vocabulary(), mon["moves"][:4]
    yield Claim(f"{name}.species", [species_row(told_species(mon))])
    changed = mon["base_ability"] not in (mon["ability"], "trace") or mon["transformed"] or mon["swapped"]
    swapped = view.gen <= LAST_GEN_OF_HIDDEN_SWAPS and changed
    yield Claim(f"{name}.ability", [rows.ability.get(mon["ability"], 0)], "hidden ability" if swapped else "")
    yield Claim(f"{name}.item", [rows.item.get(mon["item"] or NO_ITEM, 0)])
    yield Claim(f"{name}.moves", padded([move_row(move) for move in moves]))
    if not view.doubles:
        yield Claim(f"{name}.moves_known", numbers_of_moves(infos_of(view.gen, moves)))
    yield Claim(f"{name}.tera_type", [tera_row(mon["tera_type"]) if view.gen == 9 else 0.0])
    yield Claim(f"{name}.present", [1.0])
    yield Claim(f"{name}.hp", [hp_fraction(mon)])
    yield Claim(f"{name}.fainted", [float(mon["fainted"])])
    if not mon["fainted"]:
        yield Claim(f"{name}.active", [float(mon["active"])])
        if view.doubles:
            yield slot_claim(name, mon)
        yield from condition_claims(view, name, mon)
        yield Claim(f"{name}.types", type_rows(mon["types"]))
        mixed = "mixed stats" if mon["mixed"] else ""
        yield Claim(f"{name}.stats", [min(stat / 500, 1.0) for stat in (mon["max_hp"], *mon["stats"])], mixed)
        yield Claim(f"{name}.terastallized", [float(bool(mon["terastallized"]))])
    team = view.own["pokemon"]
    yield Claim(f"{name}.revealed", [float(team.index(mon) in view.own["appeared"])])
    yield Claim(f"{name}.level", [mon["level"] / 100])
    pp = padded([left / most for _, left, most in mon["slots"][:4]])
    pressed = view.gen == GEN_OF_HIDDEN_PRESSURE and view.foe["presses"]
    asked = mon["active"] and not mon["fainted"] and not mon["powered"]
    powered = view.own["powers"] and not asked
    excuse = "hidden pressure" if pressed else "max moves" if powered else pp_excuse(view.gen, mon)
    yield Claim(f"{name}.moves_pp", pp, excuse or aim_excuse(view, mon, view.foe))


def aim_excuse(view: View, mon: Mon, opposite: Side) -> str:
    """In doubles: whether it may have prepared a move that meets Pressure."""
    prepares = any("charge" in GenData.from_gen(view.gen).moves[name]["flags"] for name, _, _ in mon["slots"])
    return "hidden aim" if view.doubles and opposite["presses"] and prepares else ""


def pp_excuse(gen: int, mon: Mon) -> str:
    own = [name for name, _, _ in mon["slots"]] == [name for name, _, _ in mon["base_slots"]]
    sketched = any(most < full_pp(move_key(name), gen, False) for name, _, most in mon["base_slots"])
    return "" if (own and not sketched) or (mon["transformed"] and gen >= 5) else "copied pp"


def slot_claim(name: str, mon: Mon) -> Claim:
    """Where it stands in doubles."""
    return Claim(f"{name}.slot", one_hot(mon["position"] if mon["active"] else None, 2))


def padded(numbers: Sequence[Expected]) -> list[Expected]:
    return [*numbers, *[0.0] * (4 - len(numbers))]


def foe_team_claims(view: View) -> Iterator[Claim]:
    """Foes that have been out, in order of appearance; behind them those that team preview has shown."""
    side = view.foe
    met = side["appeared"][:6]
    for block, place in enumerate(met):
        mon, standing = side["pokemon"][place], real(side, place)
        excuse = "illusion" if mon["disguised"] or standing["disguised"] else ""
        for claim in foe_claims(view, f"foe.{block}", mon, standing):
            yield claim._replace(excused=excuse or claim.excused)
    previewed = view.at_preview or (view.row.told.previewed and len(met) < len(side["pokemon"]))
    unmet = [mon for place, mon in enumerate(side["pokemon"]) if place not in met] if previewed else []
    doubt = "illusion" if any(side["pokemon"][place]["disguised"] for place in met) else ""
    for block in range(len(met), 6):
        yield from unmet_claims(view, f"foe.{block}", unmet, doubt)


def unmet_claims(view: View, name: str, unmet: list[Mon], doubt: str) -> Iterator[Claim]:
    """A block behind those of the foes that have been out: one that team preview has shown, or nothing."""
    shown = view.observed(f"{name}.present") == [1.0]
    sure: dict[str, Numbers] = {"present": [frozenset((0.0, 1.0)) if unmet else 0.0]}
    if shown and unmet:
        sure |= {
            "species": [frozenset(species_row(form) for mon in unmet for form in (mon["species"], mon["base_form"]))],
            "ability": [frozenset((0.0, *[only_ability(view.gen, mon) for mon in unmet]))],
            "types": [None, None],
            "hp": [1.0],
            "level": [frozenset(mon["level"] / 100 for mon in unmet)],
            "stats": [None] * 6,
            "item": [frozenset((0.0, vocabulary().item[NO_ITEM]))],
        }
    for field in doubles.BODY if view.doubles else layout.POKEMON:
        if field.name not in (*PAIR, "moves_known"):
            yield Claim(f"{name}.{field.name}", sure.get(field.name, [0.0] * field.size), doubt)


def only_ability(gen: int, mon: Mon) -> float:
    """Of a species that has one only: its row, else 0."""
    abilities = set(GenData.from_gen(gen).pokedex[mon["species"]]["abilities"].values())
    return vocabulary().ability.get(to_id_str(abilities.pop()), 0) if len(abilities) == 1 else 0.0


def told_ability(view: View, facts: Facts, mon: Mon) -> Numbers:
    """Its ability where a line has given it or its species has no other one, else 0; one that is changed is open."""
    true, only = float(vocabulary().ability.get(mon["ability"], 0)), only_ability(view.gen, mon)
    changed = mon["ability"] != mon["base_ability"] or mon["transformed"] or mon["swapped"]
    if view.gen <= LAST_GEN_WITHOUT_ABILITIES:
        return [frozenset((0.0, only, true)) if true else 0.0]  # no battle but a test's gives them one
    standing = [one for side in (view.own, view.foe) for one in side["pokemon"] if one["active"]]
    silent = "gastroacid" in mon["volatiles"] or any(one["ability"] == "neutralizinggas" for one in standing)
    if mon["ability"] == facts.ability and not changed and not silent:
        return [true]
    return [frozenset((0.0, only, true if mon["ability"] in facts.words or changed or only else 0.0))]


def told_item(facts: Facts, mon: Mon) -> Numbers:
    """The item where a line has given it; 0 where none has named it."""
    true = float(vocabulary().item.get(mon["item"] or NO_ITEM, 0))
    hint = mon["item"] in facts.words
    return [true if facts.item is not None else frozenset((0.0, true)) if hint else 0.0]


def told_moves(facts: Facts, mon: Mon) -> Numbers:
    """The moves that it has used by itself, in their order; open where something else may have told of one."""
    has = foe_pp(mon)
    used = [move_row(name) for name in facts.moves]
    same = [name for name, _, _ in mon["slots"]] == [name for name, _, _ in mon["base_slots"]]
    if mon["transformed"]:
        return [frozenset((0.0, *has))] * 4
    if same and not facts.called and len(used) <= 4 and all(row in has for row in used):
        return padded([float(row) for row in used])
    return [frozenset((0.0, *[row for row in has if row in used or row in map(move_row, facts.words)]))] * 4


def estimated_stats(gen: int, species: str, level: int) -> list[float]:
    """hp, atk, def, spa, spd, spe of an even set: 31 IVs and 85 EVs each; until gen 2 the most there can be."""
    base = GenData.from_gen(gen).pokedex[species]["baseStats"]
    bonus = 93 if gen <= 2 else 52
    points = {name: (2 * base[name] + bonus) * level // 100 + 5 for name in ("hp", *BOOSTS[:5])}
    points["hp"] = 1 if base["hp"] == 1 else points["hp"] + level + 5
    return [min(value / 500, 1.0) for value in points.values()]


def foe_claims(view: View, name: str, mon: Mon, standing: Mon) -> Iterator[Claim]:
    """A foe: what is shown of it is true, and it was told. `standing`: who it really is."""
    facts = view.row.told.of(mon["name"])
    yield Claim(f"{name}.species", [species_row(told_species(mon))])
    yield Claim(f"{name}.ability", told_ability(view, facts, standing))
    yield Claim(f"{name}.item", told_item(facts, standing))
    yield Claim(f"{name}.moves", told_moves(facts, standing))
    shown, pp = view.observed(f"{name}.moves"), foe_pp(standing)
    left = [frozenset(pp[row]) if row in pp else 0.0 if not row else None for row in shown]
    powered = "max moves" if view.foe["powers"] else ""
    pressed = "hidden pressure" if view.gen == GEN_OF_HIDDEN_PRESSURE and view.own["borrows_pressure"] else ""
    hidden = pp_excuse(view.gen, standing) or aim_excuse(view, standing, view.own)
    guarded = "safeguard" if view.gen == 2 and may_end_unseen(view.foe, standing) else ""
    yield Claim(f"{name}.moves_pp", left, powered or guarded or pressed or hidden)
    yield Claim(f"{name}.present", [1.0])
    recovery = foe_excuse(mon, standing)
    yield Claim(f"{name}.hp", [shown_hp(view.foe, view.foe["pokemon"].index(mon))], recovery)
    yield Claim(f"{name}.fainted", [float(standing["fainted"])])
    if not standing["fainted"]:
        yield Claim(f"{name}.active", [float(standing["active"])])
        if view.doubles:
            yield slot_claim(name, standing)
        yield from condition_claims(view, name, standing, recovery)
        yield Claim(f"{name}.types", type_rows(standing["types"]))
        yield Claim(f"{name}.tera_type", [tera_row(standing["terastallized"])])
        yield Claim(f"{name}.terastallized", [float(bool(standing["terastallized"]))])
    if not standing["transformed"] and "powertrick" not in standing["volatiles"]:
        yield Claim(f"{name}.stats", estimated_stats(view.gen, standing["species"], standing["level"]))
    yield Claim(f"{name}.revealed", [1.0])
    yield Claim(f"{name}.level", [mon["level"] / 100])


def may_end_unseen(side: Side, mon: Mon) -> bool:
    """Gen 2: whether it may thrash under a Safeguard of its side."""
    team = {name for one in side["pokemon"] for name in one["base_moves"]}
    return "safeguard" in team and bool({"thrash", "outrage", "petaldance"} & set(mon["base_moves"]))


def foe_pp(mon: Mon) -> dict[float, set[float]]:
    """Fractions of pp left by the row of a move; the type of a hidden power is not shown."""
    found: dict[float, set[float]] = {}
    for name, left, most in (*mon["slots"], *mon["base_slots"]):
        found.setdefault(move_row(name), set()).add(left / most)
    for name, (_, left, most) in zip(mon["moves"], mon["slots"]):
        found.setdefault(move_row(name), set()).add(left / most)
    return found


def request_claims(view: View) -> Iterator[Claim]:
    """The mask, and what the request says, by what the simulator accepts; what it hides from the seat is left open."""
    legal = set(view.truth["legal"])
    asked = (view.row.request.get("active") or [{}, {}])[view.row.slot] or {}
    hidden_switch = bool(asked.get("maybeTrapped"))
    hidden_moves = bool(asked.get("maybeDisabled") or asked.get("maybeLocked"))
    words = double_words(view) if view.doubles else single_words(view)
    standing = [place for place in view.own["slots"] if place >= 0 and not view.own["pokemon"][place]["fainted"]]
    lonely = view.doubles and len(standing) < 2
    mask: list[Expected] = []
    for word in words:
        kind = word.split(" ")[0]
        unknown = (kind == "switch" and hidden_switch) or (kind == "move" and hidden_moves)
        unknown = unknown or (kind == "pass" and view.row.slot == 1)  # the left slot's pass is accepted, too
        unknown = unknown or (" -" in word and lonely)  # the simulator lets it aim at a partner that has fainted
        unknown = unknown and not (kind == "switch" and hidden_switch)
        offered = word in legal or (kind == "switch" and hidden_switch and may_come_in(view, word))
        mask.append(None if unknown else float(offered))
    yield Claim("mask", mask)
    if view.doubles:
        yield from partner_claims(view)
        yield from first_claims(view)
    who = "self." if view.doubles else ""
    forced = not any(word.startswith("move") for word in legal)
    yield Claim(f"global.{who}force_switch", [float(forced)])
    switches = [
        view.own["pokemon"][view.own["line_up"][int(word[-1]) - 1]] for word in legal if word.startswith("switch")
    ]
    yield Claim("global.reviving", [float(any(mon["fainted"] for mon in switches))])
    yield Claim(f"global.{who}maybe_trapped", [float(hidden_switch)])
    if hidden_switch:
        yield Claim(f"global.{who}trapped", [0.0])
    benched = any(not mon["fainted"] and not mon["active"] for mon in view.own["pokemon"])
    if benched and not forced and not hidden_switch and not view.truth["first"].startswith("switch"):
        yield Claim(f"global.{who}trapped", [float(not switches)])
    if not hidden_moves:
        first = view.truth["first"]  # the simulator takes what it uses from the right slot's choices
        gimmicks: list[Expected] = [
            None if first.endswith(suffix) else float(any(word.endswith(suffix) for word in legal))
            for suffix in GIMMICKS[1:]
        ]
        yield Claim(f"global.{who}can_gimmick", gimmicks)


def may_come_in(view: View, word: str) -> bool:
    """Whether a switch is one of those that a seat would have that does not know that it is trapped."""
    place = view.own["line_up"][int(word[-1]) - 1]
    mon = view.own["pokemon"][place]
    return not mon["fainted"] and not mon["active"] and word != view.truth["first"]


def partner_claims(view: View) -> Iterator[Claim]:
    """What the simulator has asked of the other slot."""
    request, slot = view.row.request, 1 - view.row.slot
    active = request.get("active") or []
    asked = active[slot] if slot < len(active) and active[slot] else {}
    forced = request.get("forceSwitch") or []
    yield Claim("global.partner.force_switch", [float(slot < len(forced) and forced[slot])])
    yield Claim("global.partner.trapped", [float("trapped" in asked)])
    yield Claim("global.partner.maybe_trapped", [float("maybeTrapped" in asked)])
    yield Claim("global.partner.can_gimmick", [float(key in asked) for key in GIMMICK_KEYS])


def first_claims(view: View) -> Iterator[Claim]:
    """What the left slot has chosen, while the right one decides."""
    kind, *rest = (*view.truth["first"].split(" "), "") if view.truth["first"] else ("pass", "")
    move = kind == "move"
    yield Claim("global.first.made", [float(view.row.slot == 1)])
    member = view.own["line_up"][int(rest[0]) - 1] if kind == "switch" else None
    yield Claim("global.first.switch", one_hot(member, 6))
    targets = [int(word) for word in rest[1:] if re.fullmatch(r"-?\d", word)]
    yield Claim("global.first.target", one_hot((targets or [0])[0] + 2 if move else None, 5))
    yield Claim(
        "global.first.gimmick", one_hot(GIMMICKS.index(f" {rest[-2]}") - 1 if move and rest[-2].isalpha() else None, 4)
    )
    partner = view.own["pokemon"][view.own["slots"][0]]
    name = partner["slots"][int(rest[0]) - 1][0] if move and not view.truth["first_lock"] else view.truth["first_lock"]
    yield Claim("global.first.move", [move_row(name) if move else 0.0])


def single_words(view: View) -> list[str]:
    """The words of each action, "" where it has none; see encoding/actions.py."""
    words = [switch_word(view, member) for member in range(6)]
    return words + [move_word(view, move, gimmick) for gimmick in GIMMICKS for move in range(4)]


def double_words(view: View) -> list[str]:
    """The same in doubles, see doubles/actions.py."""
    words = ["pass", *[switch_word(view, member) for member in range(6)]]
    for gimmick in GIMMICKS:
        for move in range(4):
            words += [move_word(view, move, f" {aim}{gimmick}" if aim else gimmick) for aim in (-2, -1, 0, 1, 2)]
    return words


def switch_word(view: View, member: int) -> str:
    line_up = view.own["line_up"]
    return f"switch {line_up.index(member) + 1}" if member in line_up else ""


def move_word(view: View, move: int, rest: str) -> str:
    """A locked move stays in its slot, any other only choice is in the first; it goes out as number 1."""
    lock, names = view.truth["lock"], [name for name, _, _ in acting(view)["slots"]]
    if not lock:
        return f"move {move + 1}{rest}"
    return f"move 1{rest}" if move == (names.index(lock) if lock in names else 0) else ""


def acting(view: View) -> Mon:
    """The own Pokemon that decides."""
    mon: Mon = view.own["pokemon"][view.own["slots"][view.row.slot]]
    return mon


def move_claims(view: View) -> Iterator[Claim]:
    """The moves that the deciding Pokemon offers; of a locked one nothing is claimed."""
    legal, mon = view.truth["legal"], acting(view)
    asked = (view.row.request.get("active") or [{}, {}])[view.row.slot] or {}
    if not any(word.startswith("move") for word in legal):
        for k in range(4):
            yield from no_move_claims(view, f"move.{k}")
        return
    if view.truth["lock"] or asked.get("maybeDisabled"):
        return
    for k, (name, (_, left, most)) in enumerate(zip(mon["moves"][:4], mon["slots"])):
        yield from known_move_claims(view, f"move.{k}", name, left / most)
        plain = [word for word in legal if re.fullmatch(rf"move {k + 1}( -?\d)?", word)]
        yield Claim(f"move.{k}.usable", [float(bool(plain))])
    for k in range(len(mon["moves"]), 4):
        yield from no_move_claims(view, f"move.{k}")


def partner_move_claims(view: View) -> Iterator[Claim]:
    """The moves of the other slot, as the simulator has asked for them; of a locked one nothing is claimed."""
    slot, active = 1 - view.row.slot, view.row.request.get("active") or [None, None]
    asked, place = active[slot], view.own["slots"][slot]
    mon = view.own["pokemon"][place] if place >= 0 else None
    if mon is None or mon["fainted"] or view.row.request.get("active") is None:
        for k in range(4):
            yield from no_move_claims(view, f"partner_move.{k}")
    elif asked and len(asked["moves"]) == len(mon["moves"]) and ("maxMoves" in asked) == ("canDynamax" in asked):
        for k, (name, entry) in enumerate(zip(mon["moves"][:4], asked["moves"])):
            yield from known_move_claims(view, f"partner_move.{k}", name, mon["slots"][k][1] / mon["slots"][k][2])
            if "commanding" not in mon["volatiles"]:
                yield Claim(f"partner_move.{k}.usable", [float(not entry.get("disabled"))])
        for k in range(len(mon["moves"]), 4):
            yield from no_move_claims(view, f"partner_move.{k}")


def known_move_claims(view: View, block: str, name: str, left: float) -> Iterator[Claim]:
    """What a move is, by the move table."""
    info = move_info(view.gen, name)
    assert info is not None, name
    yield Claim(f"{block}.present", [1.0])
    yield Claim(f"{block}.id", [move_row(name)])
    yield Claim(f"{block}.pp", [min(left, 1.0)])
    yield Claim(f"{block}.type", [float(info.type)])
    numbers = iter(info.static)
    for field in layout.STATIC_MOVE:
        yield Claim(f"{block}.{field.name}", [next(numbers) for _ in range(field.size)])


def no_move_claims(view: View, block: str) -> Iterator[Claim]:
    for field in doubles.MOVE if view.doubles else layout.MOVE:
        if not field.name.endswith(("effectiveness", "damage", "knocks_out", "stab")):
            yield Claim(f"{block}.{field.name}", [0.0] * field.size)
