"""What the blocks of foes must hold: what the seat was told, which is true, and nothing more."""

from __future__ import annotations

from collections.abc import Iterator

from poke_env.data import GenData, to_id_str

from simul.env_worker.games.pokemon.tables import doubles_layout as doubles
from simul.env_worker.games.pokemon.tables import layout
from simul.env_worker.games.pokemon.tables.vocabulary import NO_ITEM, vocabulary
from tests.support.pokemon.audit.derived import PAIR
from tests.support.pokemon.audit.slices import (
    GEN_OF_HIDDEN_PRESSURE,
    aim_excuse,
    called,
    condition_claims,
    estimated_stats,
    foe_excuse,
    foe_pp,
    padded,
    pp_excuse,
    shown_hp,
    slot_claim,
    species_row,
    tera_row,
    told_species,
    type_rows,
)
from tests.support.pokemon.audit.told import Facts
from tests.support.pokemon.audit.view import Claim, Mon, Numbers, Side, View, move_row, real

LAST_GEN_WITHOUT_ABILITIES = 2


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


def foe_claims(view: View, name: str, mon: Mon, standing: Mon) -> Iterator[Claim]:
    """A foe: what is shown of it is true, and it was told. `standing`: who it really is."""
    facts = view.row.told.of(mon["name"])
    yield Claim(f"{name}.species", [species_row(told_species(mon))])
    yield Claim(f"{name}.ability", told_ability(view, facts, standing))
    barb = "silent barb" if "stickybarb" in (standing["item"], *facts.words) else ""
    yield Claim(f"{name}.item", told_item(facts, standing), barb)
    yield Claim(f"{name}.moves", told_moves(view, facts, standing))
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
    yield from condition_claims(view, name, standing, recovery)
    if not standing["fainted"]:
        yield Claim(f"{name}.active", [float(standing["active"])])
        if view.doubles:
            yield slot_claim(name, standing)
        yield Claim(f"{name}.types", type_rows(standing["types"]))
        yield Claim(f"{name}.tera_type", [tera_row(standing["terastallized"])])
        yield Claim(f"{name}.terastallized", [float(bool(standing["terastallized"]))])
    if not standing["transformed"] and "powertrick" not in standing["volatiles"]:
        dynamaxed = "dynamax" in standing["volatiles"]
        yield Claim(f"{name}.stats", estimated_stats(view.gen, standing["species"], standing["level"], dynamaxed))
    yield Claim(f"{name}.revealed", [1.0])
    yield Claim(f"{name}.level", [mon["level"] / 100])


def told_ability(view: View, facts: Facts, mon: Mon) -> Numbers:
    """Its ability where a line has given it or its species has no other one, else 0; one that is changed is open."""
    true, only = float(vocabulary().ability.get(mon["ability"], 0)), only_ability(view.gen, called(mon["species"]))
    changed = mon["ability"] != mon["base_ability"] or mon["transformed"] or mon["swapped"]
    if view.gen <= LAST_GEN_WITHOUT_ABILITIES:
        return [frozenset((0.0, only, true)) if true else 0.0]  # no battle but a test's gives them one
    silent = "gastroacid" in mon["volatiles"]
    changed |= "transform" in facts.words  # an own copy has told it
    if (mon["ability"] == facts.ability or true == only) and not changed and not silent:
        return [true]
    shown = mon["ability"] in facts.words or any(only_ability(view.gen, word) == true for word in facts.words)
    return [frozenset((0.0, only, true if shown or changed or only else 0.0))]


def told_item(facts: Facts, mon: Mon) -> Numbers:
    """The item where a line has given it; 0 where none has named it."""
    true = float(vocabulary().item.get(mon["item"] or NO_ITEM, 0))
    hint = mon["item"] in facts.words
    return [true if facts.item is not None else frozenset((0.0, true)) if hint else 0.0]


def told_moves(view: View, facts: Facts, mon: Mon) -> Numbers:
    """The moves that it has used by itself, in their order; open where something else may have told of one.

    Of a copy all moves: those of an own Pokemon; in doubles perhaps of its partner.
    """
    has = foe_pp(mon)
    used = [move_row(name) for name in facts.moves]
    same = [name for name, _, _ in mon["slots"]] == [name for name, _, _ in mon["base_slots"]]
    if mon["transformed"]:
        copied = frozenset(map(move_row, (*mon["moves"], *[name for name, _, _ in mon["slots"]])))
        return [copied | {0.0}] * 4 if view.doubles else padded([copied] * len(mon["moves"]))
    if same and not facts.called and len(used) <= 4 and all(row in has for row in used):
        return padded([float(row) for row in used])
    return [frozenset((0.0, *[row for row in has if row in used or row in map(move_row, facts.words)]))] * 4


def only_ability(gen: int, species: str) -> float:
    """Of a species that has one only: its row, else 0."""
    entry = GenData.from_gen(gen).pokedex.get(species)
    abilities = set(entry["abilities"].values()) if entry else set()
    return vocabulary().ability.get(to_id_str(abilities.pop()), 0) if len(abilities) == 1 else 0.0


def may_end_unseen(side: Side, mon: Mon) -> bool:
    """Gen 2: whether it may thrash under a Safeguard of its side."""
    team = {name for one in side["pokemon"] for name in one["base_moves"]}
    return "safeguard" in team and bool({"thrash", "outrage", "petaldance"} & set(mon["base_moves"]))


def unmet_claims(view: View, name: str, unmet: list[Mon], doubt: str) -> Iterator[Claim]:
    """A block behind those of the foes that have been out: one that team preview has shown, or nothing."""
    shown = view.observed(f"{name}.present") == [1.0]
    sure: dict[str, Numbers] = {"present": [frozenset((0.0, 1.0)) if unmet else 0.0]}
    if shown and unmet:
        sure |= {
            "species": [frozenset(species_row(form) for mon in unmet for form in (mon["species"], mon["base_form"]))],
            "ability": [frozenset((0.0, *[only_ability(view.gen, mon["species"]) for mon in unmet]))],
            "types": [None, None],
            "hp": [1.0],
            "level": [frozenset(mon["level"] / 100 for mon in unmet)],
            "stats": [None] * 6,
            "item": [frozenset((0.0, vocabulary().item[NO_ITEM]))],
        }
    for field in doubles.BODY if view.doubles else layout.POKEMON:
        if field.name not in (*PAIR, "moves_known"):
            yield Claim(f"{name}.{field.name}", sure.get(field.name, [0.0] * field.size), doubt)
