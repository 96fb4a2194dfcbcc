"""Perturbs every slice of the audit's observations in turn and says which perturbations the audit reports.

    python -m tests.support.pokemon.audit.perturb [--battles 2] [--turns 30] [--first 0]

A pair is a slice of a layout (singles of one generation, or doubles) and a kind of perturbation. It stands for an
encoder that is wrong in that way in every decision. It is caught if the audit reports at least one row, for `off by
one` at least one for each number of the slice. Pairs that no row can show (a value that never changes, no other
block) are left out.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from simul.common.protocol.specs import Slice
from simul.env_worker.games.pokemon.formats.spec import is_doubles
from simul.env_worker.games.pokemon.tables import doubles_layout, layout
from simul.env_worker.games.pokemon.tables.layout import Field
from simul.env_worker.games.pokemon.tables.vocabulary import NO_ITEM, vocabulary
from tests.support.pokemon.audit.battles import (
    AuditedRow,
    BattleJob,
    audited_rows,
    custom_battles,
    extras_of,
    random_battles,
)
from tests.support.pokemon.audit.compare import agrees, claims, kind_of
from tests.support.pokemon.audit.derived import best, fighter, place_of, threat_numbers, threats
from tests.support.pokemon.audit.slices import padded, species_row, tera_row, type_rows
from tests.support.pokemon.audit.view import Mon, View, infos_of, move_row, numbers_of_moves, places, view_of

OFF_BY_ONE, STALE, WRONG, HIDDEN = KINDS = ("off by one", "stale by a turn", "wrong Pokemon", "hidden fact shown")
PERCENT = 0.01
# One unit of what a number counts where that is neither 1 / scale nor a flag.
UNITS = {
    **dict.fromkeys(["hp", "moves_pp", "pp", "accuracy", "heals", "drains", "inflicts", "confuses"], PERCENT),
    **dict.fromkeys(["deals", "takes", "damage", "tera_damage", "knock_out_chance"], PERCENT),
    **dict.fromkeys(["threat", "threat_chance", "falls", "hp_lost"], PERCENT),
    **dict.fromkeys(["moves_chance", "abilities_chance", "tera_types_chance"], PERCENT),
    "team_hp": PERCENT / 6,
    "stab": 0.5,
    "moves_first": 1.0,
    "preview_order": 1 / 6,
}
UNITS_OF_KNOWN_MOVES = (1 / 250, PERCENT, 1 / 7, 1.0, 1.0)
OTHER_SIDE = {"own_side": "foe_side", "own_active": "foe_active", "self_active": "partner_active", "self": "partner"}
OTHER_SIDE |= {"own_last": "foe_last"}
OTHER_SIDE |= {"left_foe_active": "right_foe_active"}
OTHER_SIDE |= {other: one for one, other in OTHER_SIDE.items()}
SELDOM = "few rows show it, and in all of them the slice is excused or open"
# Kinds of pairs that may stay unnoticed, and why; of others see SELDOM.
NOT_CAUGHT: dict[tuple[str, str], str] = {
    ("foe.types", HIDDEN): "a forme that team preview does not tell from its species",
}

Change = tuple[int | None, list[float]]  # the number that it is about, None for the whole slice, and the slice's values


class Pair(NamedTuple):
    layout: str  # "gen1" ... "gen9", "doubles"
    slice: str
    kind: str


class Results:
    """What was tried and what was noticed: by pair, by number of the slice (None: all of it).

    Attributes:
        rows: perturbed rows of each pair; noticed: those that the audit reports.
    """

    def __init__(self) -> None:
        self.rows: defaultdict[Pair, Counter[int | None]] = defaultdict(Counter)
        self.noticed: defaultdict[Pair, Counter[int | None]] = defaultdict(Counter)

    def caught(self, pair: Pair) -> bool:
        return all(self.noticed[pair][place] for place in self.rows[pair])

    def missed(self) -> list[Pair]:
        """Pairs that are not caught."""
        return [pair for pair in self.rows if not self.caught(pair)]

    def read(self, rows: Iterable[AuditedRow]) -> Results:
        """Perturb every slice of every row; rows of one seat and slot must follow each other."""
        before: dict[tuple[BattleJob, int, int], AuditedRow] = {}
        for row in rows:
            key = (row.job._replace(choices=None), row.seat, row.slot)
            self._read_one(row, before.get(key))
            before[key] = row
        return self

    def _read_one(self, row: AuditedRow, before: AuditedRow | None) -> None:
        view = view_of(row)
        group = "doubles" if view.doubles else f"gen{view.gen}"
        known = {claim.name: claim for claim in claims(row)}
        for name, part in places(row.job.format).items():
            claim = known.get(name)
            for kind, place, values in changes(view, part, before):
                pair = Pair(group, name, kind)
                self.rows[pair][place] += 1
                if claim is None or claim.excused:
                    continue
                places_changed = range(part.size) if place is None else (place,)
                if not all(agrees(claim.numbers[at], values[at]) for at in places_changed):
                    self.noticed[pair][place] += 1


def changes(view: View, part: Slice, before: AuditedRow | None) -> Iterator[tuple[str, int | None, list[float]]]:
    """All perturbations of one slice of a row: kind, number, values as half floats."""
    values = view.observed(part.name)
    for place, value in enumerate(values):
        other = off_by_one(part, field_of(view.row.job.format, part.name), place, value)
        yield OFF_BY_ONE, place, [*values[:place], other, *values[place + 1 :]]
    found = {
        STALE: before.observation[part.start : part.start + part.size].tolist() if before is not None else None,
        WRONG: of_another(view, part.name, values),
        HIDDEN: hidden(view, part.name),
    }
    for kind, other_values in found.items():
        if other_values is not None:
            rounded = np.array(other_values, np.float16).tolist()
            if rounded != values:
                yield kind, None, rounded


@cache
def field_of(battle_format: str, name: str) -> Field:
    """The declaration of a slice."""
    if is_doubles(battle_format):
        blocks = doubles_layout.BLOCKS
    else:
        extras = extras_of(battle_format)
        damage = tuple(("", layout.damage_fields(extras.attackers)) for _ in range(extras.attackers))
        blocks = (*layout.BLOCKS, *damage, *(("", layout.POSSIBLE) for _ in range(6)))
    fields = [field for _, fields in blocks for field in fields]
    return dict(zip(places(battle_format), fields))[name]


def off_by_one(part: Slice, field: Field, place: int, value: float) -> float:
    """The next row of a table, the opposite of a flag, one unit more (less at the end of the range)."""
    if part.kind == "id":
        return value + 1 if value + 1 < part.vocabulary else 1.0
    name = field.name.rpartition(".")[2]
    if part.name.startswith("damage.") and name != "attacker":
        unit = PERCENT
    elif name == "moves_known":
        unit = UNITS_OF_KNOWN_MOVES[place % 5]
    else:
        unit = UNITS.get(name, 1 / field.scale)
    if unit == 1.0 and field.low == 0.0:
        return 1.0 - value
    return float(np.float16(value + unit if value + unit <= part.high else value - unit))


def of_another(view: View, name: str, values: list[float]) -> list[float] | None:
    """The same slice of another block of the kind, where it differs; None: there is none."""
    found = re.match(r"(own|foe|move|partner_move|damage|set)\.(\d)\.(foe\.(\d))?", name)
    if name.startswith("global."):
        _, who, *rest = name.split(".")
        return view.observed(".".join(("global", OTHER_SIDE[who], *rest))) if who in OTHER_SIDE and rest else None
    if found is None:
        return None
    block, number, _, target = found.groups()
    count = {"own": 6, "foe": 6, "set": 6, "damage": 3}.get(block, 4)
    others = [f"{block}.{(int(number) + step) % count}.{name[found.end(2) + 1 :]}" for step in range(1, count)]
    if target:
        others = [f"{block}.{number}.foe.{(int(target) + step) % 6}" for step in range(1, 6)]
    for other in others:
        described = f"{other[: other.index('.', len(block) + 1)]}.present"
        there = described not in places(view.row.job.format) or view.observed(described)[0]
        if there and view.observed(other) != values:
            return view.observed(other)
    return None


def hidden(view: View, name: str) -> list[float] | None:
    """The slice with what the seat was not told; None where it hides nothing."""
    if name == "global.foe_side.team_hp":
        return [sum(mon["hp"] / mon["max_hp"] for mon in view.foe["pokemon"]) / 6]
    if name in ("mask", "global.trapped", "global.self.trapped"):
        return hidden_trap(view, name)
    if name.endswith(("deals", "takes", "threat", "threat_chance", "falls")):
        return hidden_matchup(view, name)
    found = re.match(r"(foe|set)\.(\d)\.(.*)", name)
    mon = hidden_foe(view, int(found[2])) if found else None
    if found is None or mon is None:
        return None
    facts = facts_of(view, mon) if found[1] == "foe" else facts_of_sets(view, mon, int(found[2]))
    return facts.get(found[3])


def hidden_trap(view: View, name: str) -> list[float] | None:
    """Where the seat may be trapped: what the simulator would say."""
    asked = {} if view.at_preview else ((view.row.request.get("active") or [{}, {}])[view.row.slot] or {})
    if not asked.get("maybeTrapped") or any(word.startswith("switch") for word in view.truth["legal"]):
        return None
    if name != "mask":
        return [1.0]
    first = 1 if view.doubles else 0
    values = view.observed(name)
    return [*values[:first], *[0.0] * 6, *values[first + 6 :]]


def hidden_matchup(view: View, name: str) -> list[float] | None:
    """What the estimate comes to with the foe's stats and moves."""
    whose, place, *side, part = name.split(".")
    slot = ["", "left", "right"].index("".join(side)) // 2
    one, opposite = fighter(view, whose, int(place)), "foe" if whose == "own" else "own"
    out = next((at for at in range(6) if place_of(view, opposite, at) == slot), None)
    other = fighter(view, opposite, out) if out is not None else None
    mon = view.foe_in_block(int(place) if whose == "foe" else out) if out is not None else None
    if one is None or other is None or mon is None or mon["fainted"] or not (one.plain and other.plain):
        return None
    own, foe = (one, other) if whose == "own" else (other, one)
    foe = foe._replace(stats=(mon["max_hp"], *mon["stats"]), moves=tuple(infos_of(view.gen, mon["moves"])), guess=False)
    foe = foe._replace(likely=None)
    user, target = (own, foe) if (part == "deals") == (whose == "own") else (foe, own)
    if part in ("deals", "takes"):
        return [best(view.gen, user, target)[0]]
    expected, falls = threat_numbers(threats(view.gen, user, target), user, target)
    return {"threat": [expected], "threat_chance": [float(expected > 0)], "falls": [falls.low]}[part]


def hidden_foe(view: View, block: int) -> Mon | None:
    """Who is described there, or would be next."""
    met = view.foe["appeared"]
    if block < len(met):
        return view.foe_in_block(block)
    unmet = [mon for place, mon in enumerate(view.foe["pokemon"]) if place not in met]
    shown = view.observed(f"foe.{block}.species")[0]
    if shown:
        return next((mon for mon in unmet if species_row(mon["species"]) == shown), None)
    return unmet[block - len(met)] if block - len(met) < len(unmet) else None


def facts_of(view: View, mon: Mon) -> dict[str, list[float]]:
    """What the row would hold of a foe that is known as well as an own Pokemon."""
    rows, moves = vocabulary(), mon["moves"][:4]
    return {
        "species": [species_row(mon["species"])],
        "ability": [float(rows.ability.get(mon["ability"], 0))],
        "item": [float(rows.item.get(mon["item"] or NO_ITEM, 0))],
        "moves": padded([float(move_row(name)) for name in moves]),  # type: ignore[dict-item]
        "types": type_rows(mon["types"]),
        "tera_type": [tera_row(mon["tera_type"]) if view.gen == 9 else 0.0],
        "present": [1.0],
        "hp": [mon["hp"] / mon["max_hp"]],
        "level": [mon["level"] / 100],
        "stats": [min(stat / 500, 1.0) for stat in (mon["max_hp"], *mon["stats"])],
        "moves_known": numbers_of_moves(infos_of(view.gen, moves)),
        "moves_pp": [*[left / most for _, left, most in mon["slots"][:4]], *[0.0] * 4][:4],
    }


def facts_of_sets(view: View, mon: Mon, block: int) -> dict[str, list[float]]:
    """The blocks `set.*` with what the foe really has."""
    shown = view.observed(f"foe.{block}.moves")
    left = [row for name in mon["moves"] if (row := float(move_row(name))) not in shown]
    ability, tera = float(vocabulary().ability.get(mon["ability"], 0)), tera_row(mon["tera_type"])
    unknown = not view.observed(f"foe.{block}.ability")[0] and view.gen >= 3
    return {
        "moves": [*left, *[0.0] * 6][:6],
        "moves_chance": [*[1.0] * len(left), *[0.0] * 6][:6],
        **({"abilities": [ability, 0.0, 0.0], "abilities_chance": [1.0, 0.0, 0.0]} if unknown else {}),
        **({"tera_types": [tera, 0.0, 0.0], "tera_types_chance": [1.0, 0.0, 0.0]} if view.gen == 9 else {}),
    }


def battles(count: int, turns: int, first: int = 0) -> list[BattleJob]:
    """Random and custom ones of every generation, doubles, and formats where some are picked at team preview."""
    jobs: list[BattleJob] = []
    for gen in range(1, 10):
        jobs += random_battles(f"gen{gen}randombattle", count, first)
        jobs += custom_battles(f"gen{gen}customgame", count, first)
    for battle_format in ("gen9bssregi", "gen7doublescustomgame", "gen8doublescustomgame", "gen9doublescustomgame"):
        jobs += custom_battles(battle_format, count, first)
    jobs += random_battles("gen9randomdoublesbattle", count, first)
    return [job._replace(turns=turns) for job in jobs]


def report(results: Results) -> str:
    """Tables of Markdown: caught of all pairs by kind and layout; what is not caught."""
    groups = list(dict.fromkeys(pair.layout for pair in results.rows))
    lines = ["| layout | " + " | ".join(KINDS) + " | all |", "|---" * (len(KINDS) + 2) + "|"]
    for wanted in (*groups, ""):
        pairs = [pair for pair in results.rows if wanted in ("", pair.layout)]
        cells = [share(results, [pair for pair in pairs if kind in ("", pair.kind)]) for kind in (*KINDS, "")]
        lines.append(f"| {wanted or 'all'} | " + " | ".join(cells) + " |")
    noticed = [sum(of.values()) for of in (Counter(), *results.noticed.values())]
    tried = sum(sum(of.values()) for of in results.rows.values())
    lines += ["", f"Perturbed rows: {tried}, noticed: {sum(noticed) / tried:.3f}", "", "Not caught:"]
    missed: defaultdict[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in results.missed():
        missed[kind_of(pair.slice), pair.kind].append(pair)
    for (kind, how), pairs in sorted(missed.items()):
        where = ", ".join(dict.fromkeys(pair.layout for pair in pairs))
        lines.append(f"- {kind}, {how}: {len(pairs)} ({where}); {NOT_CAUGHT.get((kind, how), SELDOM)}")
    return "\n".join(lines)


def share(results: Results, pairs: list[Pair]) -> str:
    return f"{sum(map(results.caught, pairs))}/{len(pairs)}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Perturb observations and see what the audit reports.")
    parser.add_argument("--battles", type=int, default=2, help="of each format")
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--first", type=int, default=0, help="number of the first battle")
    options = parser.parse_args()
    jobs = battles(options.battles, options.turns, options.first)
    print(report(Results().read(audited_rows(jobs))))


if __name__ == "__main__":
    main()
