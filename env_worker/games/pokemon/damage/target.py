"""One Pokemon as a target: all of the damage formula that does not depend on the attacker's move, in integers."""

from __future__ import annotations

from simul.env_worker.games.pokemon.damage import types
from simul.env_worker.games.pokemon.damage.queries import (
    ICE,
    ROCK,
    apply_modifier,
    at_stage,
    chain_modifiers,
    effective_item,
    grounded,
    item_removable,
    speed,
    with_simple_stages,
)
from simul.env_worker.games.pokemon.damage.rules import DEFENCE, SPECIAL_DEFENCE, DamageTables, Rule
from simul.env_worker.games.pokemon.damage.types import (
    FACTS,
    MOST_GUARDS,
    ONE,
    SUPPRESSED,
    Fighter,
    PairRule,
    Surroundings,
    Target,
)

UNBREAKABLE = ("shadowshield", "prismarmor", "fullmetalbody")


def target(tables: DamageTables, foe: Fighter, screens: tuple[str, ...], around: Surroundings, mold: bool) -> Target:
    """`foe` as it is now behind `screens` (reflect, lightscreen, auroraveil). `mold`: its ability is ignored."""
    gen, foe = tables.gen, with_simple_stages(tables.gen, foe)
    if mold and foe.ability not in UNBREAKABLE:
        foe = foe._replace(ability=SUPPRESSED)
    facts = _facts(gen, foe, around)
    mods = {DEFENCE: ONE, SPECIAL_DEFENCE: ONE}
    guards: list[PairRule] = []
    for stage, mod, mask, _ in _rules(tables, foe, screens):
        if stage in mods:
            if (facts | around.facts) & mask == mask:
                mods[stage] = chain_modifiers(mods[stage], mod)
        elif len(guards) < MOST_GUARDS:
            guards.append(PairRule(stage, mask, mod))
    defences, plain = _defences(gen, foe, screens, around)
    return Target(
        facts=facts,
        types=(*foe.types, 0, 0)[:3],
        defences=defences,
        plain_defences=plain,
        defence_mods=(mods[DEFENCE], mods[SPECIAL_DEFENCE]),
        attack=at_stage(gen, foe.stats[1], foe.stages[0]),
        attack_plain=foe.stats[1],
        hp=foe.hp,
        max_hp=foe.max_hp,
        full_hp=foe.stats[0],
        weight=tables.weights.get(foe.species, 0),
        speed=speed(gen, foe, around),
        odd=_oddities(foe, around),
        guards=tuple(guards),
    )


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
    if item_removable(foe):
        facts |= FACTS["target_item"]
    return facts


def _rules(tables: DamageTables, foe: Fighter, screens: tuple[str, ...]) -> list[Rule]:
    known = tables.rules
    found = list(known["target_ability"].get(foe.ability, ()))
    for effect in foe.effects:
        found += known["target_effect"].get(effect, ())
    item = effective_item(foe)
    found += [r for r in known["target_item"].get(item, ()) if not r.species or foe.species.startswith(r.species)]
    if item == "eviolite" and foe.species in tables.unfinished:
        found += (Rule(DEFENCE, 6144, 0), Rule(SPECIAL_DEFENCE, 6144, 0))
    for screen in ("auroraveil",) if "auroraveil" in screens else screens:
        found += known["screen"].get(screen, ())
    return found


def _defences(
    gen: int, foe: Fighter, screens: tuple[str, ...], around: Surroundings
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Physical and special with stages, and without; weather comes before other modifiers."""
    _, _, defence, _, special, _ = foe.stats
    staged_defence, staged_special = at_stage(gen, defence, foe.stages[1]), at_stage(gen, special, foe.stages[3])
    if gen >= 9 and around.facts & FACTS["snow"] and ICE in foe.types and around.harsh == 0:
        staged_defence, defence = apply_modifier(staged_defence, 6144), apply_modifier(defence, 6144)
    if gen >= 4 and around.facts & FACTS["sand"] and ROCK in foe.types:
        staged_special, special = apply_modifier(staged_special, 6144), apply_modifier(special, 6144)
    if gen <= 2 and ("reflect" in screens or "REFLECT" in foe.effects):
        staged_defence *= 2
    if gen <= 2 and "lightscreen" in screens:
        staged_special *= 2
    return (staged_defence, staged_special), (defence, special)


def _oddities(foe: Fighter, around: Surroundings) -> int:
    return (
        (types.WONDER_GUARD if foe.ability == "wonderguard" else 0)
        + (types.TERA_SHELL if foe.ability == "terashell" and foe.hp >= foe.max_hp else 0)
        + (types.TAR_SHOT if "TAR_SHOT" in foe.effects else 0)
        + (types.STRONG_WINDS if around.harsh == 3 else 0)
        + (types.TERASTALLIZED if foe.terastallized else 0)
        + (types.UNAWARE if foe.ability == "unaware" else 0)
    )
