"""One Pokemon as a target: all of the damage formula that does not depend on the weapon, as a row of integers."""

from __future__ import annotations

from env_worker.games.pokemon.damage import columns as col
from env_worker.games.pokemon.damage.columns import ONE
from env_worker.games.pokemon.damage.facts import FACTS
from env_worker.games.pokemon.damage.fighter import SUPPRESSED, Fighter, Surroundings
from env_worker.games.pokemon.damage.rules import DEFENCE, SPECIAL_DEFENCE, STAGES, Rule
from env_worker.games.pokemon.damage.state import (
    ICE,
    ROCK,
    chain,
    grounded,
    held,
    modify,
    removable,
    simple,
    speed,
    staged,
)
from env_worker.games.pokemon.damage.tables import Tables
from env_worker.games.pokemon.damage.weapons import Row

UNBREAKABLE = ("shadowshield", "prismarmor", "fullmetalbody")
_NO_RULE = (0, 0, ONE)


def target(tables: Tables, foe: Fighter, screens: tuple[str, ...], around: Surroundings, mold: bool) -> Row:
    """`foe` as it is now behind `screens` (reflect, lightscreen, auroraveil): TARGET_WIDTH integers, see `columns`.

    `mold`: its ability does not count.
    """
    gen, foe = tables.gen, simple(tables.gen, foe)
    if mold and foe.ability not in UNBREAKABLE:
        foe = foe._replace(ability=SUPPRESSED)
    facts = _facts(gen, foe, around)
    mods = [ONE] * STAGES
    guards: list[int] = []
    for rule in _rules(tables, foe, screens):
        if rule.stage in (DEFENCE, SPECIAL_DEFENCE):
            if (facts | around.facts) & rule.mask == rule.mask:
                mods[rule.stage] = chain(mods[rule.stage], rule.mod)
        elif len(guards) < 3 * col.GUARDS:
            guards += (rule.stage, rule.mask, rule.mod)
    guards += _NO_RULE * (col.GUARDS - len(guards) // 3)
    return (
        facts,
        foe.types[0],
        foe.types[1] if len(foe.types) > 1 else 0,
        *_defences(gen, foe, screens, around),
        mods[DEFENCE],
        mods[SPECIAL_DEFENCE],
        staged(gen, foe.stats[1], foe.stages[0]),
        foe.stats[1],
        foe.hp,
        foe.max_hp,
        foe.stats[0],
        tables.weights.get(foe.species, 0),
        speed(gen, foe, around),
        _oddities(foe, around),
        *guards,
    )


def guards_of(row: Row) -> int:
    """How many rules of a target wait for the weapon."""
    return sum(mod != ONE for mod in row[col.T_RULES + 2 :: 3])


def _facts(gen: int, foe: Fighter, around: Surroundings) -> int:
    facts = 0
    if foe.hp >= foe.max_hp:
        facts |= FACTS["target_full"]
    if 2 * foe.hp <= foe.max_hp:
        facts |= FACTS["target_half"]
    if foe.status or foe.ability == "comatose":
        facts |= FACTS["target_status"]
    if foe.status in ("PSN", "TOX"):
        facts |= FACTS["target_poisoned"]
    elif foe.status == "SLP" or foe.ability == "comatose":
        facts |= FACTS["target_asleep"]
    elif foe.status == "PAR":
        facts |= FACTS["target_paralyzed"]
    if grounded(gen, foe, around):
        facts |= FACTS["target_grounded"]
    if removable(foe):
        facts |= FACTS["target_item"]
    return facts


def _rules(tables: Tables, foe: Fighter, screens: tuple[str, ...]) -> list[Rule]:
    known = tables.rules
    found = list(known["target_ability"].get(foe.ability, ()))
    for effect in foe.effects:
        found += known["target_effect"].get(effect, ())
    item = held(foe)
    found += [r for r in known["target_item"].get(item, ()) if not r.species or foe.species.startswith(r.species)]
    if item == "eviolite" and foe.species in tables.unfinished:
        found += (Rule(DEFENCE, 6144, 0), Rule(SPECIAL_DEFENCE, 6144, 0))
    for screen in ("auroraveil",) if "auroraveil" in screens else screens:
        found += known["screen"].get(screen, ())
    return found


def _defences(gen: int, foe: Fighter, screens: tuple[str, ...], around: Surroundings) -> tuple[int, int, int, int]:
    """Defence with stages and without, special defence likewise; weather comes before other modifiers."""
    _, _, defence, _, special, _ = foe.stats
    values = [staged(gen, defence, foe.stages[1]), defence, staged(gen, special, foe.stages[3]), special]
    if gen >= 9 and around.facts & FACTS["snow"] and ICE in foe.types and around.harsh == 0:
        values[:2] = modify(values[0], 6144), modify(values[1], 6144)
    if gen >= 4 and around.facts & FACTS["sand"] and ROCK in foe.types:
        values[2:] = modify(values[2], 6144), modify(values[3], 6144)
    if gen <= 2 and ("reflect" in screens or "REFLECT" in foe.effects):
        values[0] *= 2
    if gen <= 2 and "lightscreen" in screens:
        values[2] *= 2
    return values[0], values[1], values[2], values[3]


def _oddities(foe: Fighter, around: Surroundings) -> int:
    return (
        (col.WONDER_GUARD if foe.ability == "wonderguard" else 0)
        + (col.TERA_SHELL if foe.ability == "terashell" and foe.hp >= foe.max_hp else 0)
        + (col.TAR_SHOT if "TAR_SHOT" in foe.effects else 0)
        + (col.STRONG_WINDS if around.harsh == 3 else 0)
        + (col.TERASTALLIZED if foe.terastallized else 0)
        + (col.UNAWARE if foe.ability == "unaware" else 0)
    )
