"""One move in one user's hands: all of the damage formula that does not depend on the target, as a row of integers."""

from __future__ import annotations

from env_worker.games.pokemon.damage import columns as col
from env_worker.games.pokemon.damage.columns import ONE
from env_worker.games.pokemon.damage.facts import FACTS, PAIR_FACTS, type_fact
from env_worker.games.pokemon.damage.fighter import Fighter, Surroundings
from env_worker.games.pokemon.damage.moves import (
    BETTER_SIDE,
    CRITS,
    FOE_ATTACK,
    HITS_DEFENCE,
    IGNORES_ABILITY,
    IGNORES_STAGES,
    OWN_DEFENCE,
    PHYSICAL,
    SPECIAL,
    STRUGGLES,
    UNFORCED,
    DamageMove,
)
from env_worker.games.pokemon.damage.movetypes import FIRE, WATER, move_type
from env_worker.games.pokemon.damage.powers import user_power
from env_worker.games.pokemon.damage.rules import (
    ATTACK,
    ATTACK_FIRST,
    EARLY,
    FINAL,
    FOE_DEFENCE,
    FOE_SPECIAL_DEFENCE,
    MIDDLE,
    POWER,
    STAGES,
    Rule,
)
from env_worker.games.pokemon.damage.state import STELLAR, chain, grounded, held, modify, simple, speed, staged
from env_worker.games.pokemon.damage.tables import Tables

Row = tuple[int, ...]
MOLD = ("moldbreaker", "teravolt", "turboblaze")
SCRAPPY = ("scrappy", "mindseye")
_NO_RULE = (0, 0, ONE)


def weapon(tables: Tables, user: Fighter, name: str, move: DamageMove, around: Surroundings) -> Row:
    """`move` (called `name`) used by `user` as it is now: WEAPON_WIDTH integers, see `columns`."""
    gen, user = tables.gen, simple(tables.gen, user)
    kind, retyped = move_type(gen, user, name, move, around)
    category = _category(gen, user, move, kind)
    power = user_power(gen, user, move)
    facts = _facts(gen, user, move, category, around) | type_fact(kind) | (FACTS["retyped"] if retyped else 0)
    mods, waiting = _apply(_rules(tables, user, name), facts)
    special = category == SPECIAL and not move.bits & HITS_DEFENCE
    attack, plain = _attack(gen, user, move, category, mods[ATTACK_FIRST])
    return (
        facts,
        kind if not move.bits & STRUGGLES else 0,
        2 * user.level // 5 + 2,
        power,
        move.power_kind,
        attack,
        plain,
        mods[POWER],
        mods[ATTACK],
        mods[FOE_SPECIAL_DEFENCE if special else FOE_DEFENCE],
        mods[FINAL],
        mods[EARLY],
        mods[MIDDLE],
        _stab(gen, user, kind, move),
        _weather(around, kind, name),
        int(special),
        int(_burned(gen, user, category, name)),
        move.fixed,
        move.amount if move.amount else user.level,
        move.oddity,
        move.bits | IGNORES_STAGES if user.ability == "unaware" else move.bits,
        user.stats[0] * user.hp // user.max_hp,
        tables.weights.get(user.species, 0),
        speed(gen, user, around),
        int(user.terastallized and kind in user.types and not move.bits & UNFORCED),
        int(user.ability in SCRAPPY),
        int(user.ability in MOLD or bool(move.bits & IGNORES_ABILITY)),
        *waiting,
    )


def _facts(gen: int, user: Fighter, move: DamageMove, category: int, around: Surroundings) -> int:
    """All but the type."""
    facts = around.facts | move.mask | FACTS["physical" if category == PHYSICAL else "special"]
    facts |= _user_facts(gen, user, around)
    if user.ability == "infiltrator" and gen >= 5:
        facts &= ~FACTS["meets_screens"]
    if user.ability == "sheerforce" and gen <= 4:
        facts &= ~FACTS["secondary"]
    return facts


def _user_facts(gen: int, user: Fighter, around: Surroundings) -> int:
    facts = 0
    if 3 * user.hp <= user.max_hp:
        facts |= FACTS["user_pinched"]
    if 2 * user.hp <= user.max_hp:
        facts |= FACTS["user_weak"]
    if user.status and not (user.status == "SLP" and gen >= 3 and user.ability != "guts"):
        facts |= FACTS["user_status"]
    if user.status == "BRN":
        facts |= FACTS["user_burned"]
    elif user.status in ("PSN", "TOX"):
        facts |= FACTS["user_poisoned"]
    if grounded(gen, user, around):
        facts |= FACTS["user_grounded"]
    return facts


def _category(gen: int, user: Fighter, move: DamageMove, kind: int) -> int:
    if gen <= 3 and kind != move.type:  # the type decides, and the weather changed it
        return SPECIAL if kind in (FIRE, WATER, 12) else PHYSICAL
    if move.bits & BETTER_SIDE and (user.terastallized or move.type == 15):
        attack = staged(gen, user.stats[1], user.stages[0])
        return PHYSICAL if attack > staged(gen, user.stats[3], user.stages[2]) else move.category
    return move.category


def _rules(tables: Tables, user: Fighter, name: str) -> list[Rule]:
    """All that may apply, in the order the modifiers are chained."""
    known, item = tables.rules, held(user)
    found = [*known["user_ability"].get(user.ability, ()), *known["move"].get(name, ()), *known["field"].get("any", ())]
    if not (item.startswith("choice") and "DYNAMAX" in user.effects):
        found += [r for r in known["user_item"].get(item, ()) if not r.species or user.species.startswith(r.species)]
    for effect in user.effects:
        found += known["user_effect"].get(effect, ())
    return found


def _apply(found: list[Rule], facts: int) -> tuple[list[int], list[int]]:
    """Modifiers by stage, and what has to wait for the target as (stage, mask, mod) three times."""
    mods = [ONE] * STAGES
    waiting: list[int] = []
    for stage, mod, mask, _ in found:
        known = mask & ~PAIR_FACTS
        if facts & known != known:
            continue
        if mask == known:
            mods[stage] = chain(mods[stage], mod)
        elif len(waiting) < 3 * col.WAITING:
            waiting += (stage, mask, mod)
    waiting += _NO_RULE * (col.WAITING - len(waiting) // 3)
    return mods, waiting


def _attack(gen: int, user: Fighter, move: DamageMove, category: int, first: int) -> tuple[int, int]:
    """With stages and without; 0 where the target's attack is used."""
    if move.bits & FOE_ATTACK:
        return 0, 0
    place = 1 if move.bits & OWN_DEFENCE else 0 if category == PHYSICAL else 2
    stat, stage = user.stats[place + 1], user.stages[place]
    if move.bits & CRITS:
        stage = max(stage, 0)
    boosted, plain = staged(gen, stat, stage), staged(gen, stat, 0)
    if gen <= 2 and place == 0 and user.status == "BRN":
        boosted = max(boosted // 2, 1)
    return (boosted, plain) if first == ONE else (modify(boosted, first), modify(plain, first))


def _stab(gen: int, user: Fighter, kind: int, move: DamageMove) -> int:
    if move.bits & STRUGGLES or kind == 19:
        return ONE
    now, born = kind in user.types, kind in user.base_types
    if user.terastallized and user.tera == STELLAR:
        return 8192 if now or born else 4915
    both = user.terastallized and user.tera == kind and born
    if user.ability == "adaptability" and now:
        return 9216 if both else 8192
    return 8192 if both else 6144 if now or (born and user.terastallized) else ONE


def _weather(around: Surroundings, kind: int, name: str) -> int:
    if around.facts & FACTS["sun"]:
        if name == "hydrosteam" or kind == FIRE:
            return 6144
        if kind == WATER:
            return 0 if around.harsh == 1 else 2048
    elif around.facts & FACTS["rain"]:
        if kind == WATER:
            return 6144
        if kind == FIRE:
            return 0 if around.harsh == 2 else 2048
    return ONE


def _burned(gen: int, user: Fighter, category: int, name: str) -> bool:
    if gen <= 2 or user.status != "BRN" or category != PHYSICAL or user.ability == "guts":
        return False
    return gen <= 5 or name != "facade"
