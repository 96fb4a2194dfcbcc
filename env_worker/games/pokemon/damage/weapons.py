"""One move in one user's hands: all of the damage formula that does not depend on the target."""

from __future__ import annotations

from simul.env_worker.games.pokemon.damage.facts import FACTS, PAIR_FACTS, facts, type_fact
from simul.env_worker.games.pokemon.damage.fighter import Fighter, Surroundings
from simul.env_worker.games.pokemon.damage.moves import (
    BETTER_SIDE,
    CRITS,
    FASTER,
    FIRST_TYPE,
    FOE_ATTACK,
    HITS_DEFENCE,
    IGNORES_ABILITY,
    IGNORES_STAGES,
    OWN_DEFENCE,
    PHYSICAL,
    PLAIN,
    SLOWER,
    SPECIAL,
    STRUGGLES,
    TERA_TYPE,
    TO_USERS_HP,
    UNFORCED,
    USERS_HP,
    WEIGHT_RATIO,
    DamageMove,
)
from simul.env_worker.games.pokemon.damage.movetypes import FIRE, WATER, move_type
from simul.env_worker.games.pokemon.damage.powers import LAST_PAIRED, user_power
from simul.env_worker.games.pokemon.damage.rules import ATTACK_FIRST, STAGES, Rule
from simul.env_worker.games.pokemon.damage.state import STELLAR, chain, modify, speed, staged
from simul.env_worker.games.pokemon.damage.tables import Tables
from simul.env_worker.games.pokemon.damage.terms import MOST_WAITING, ONE, PairRule, Weapon
from simul.env_worker.games.pokemon.damage.wielders import Wielder

MOLD = ("moldbreaker", "teravolt", "turboblaze")
SCRAPPY = ("scrappy", "mindseye")
_PHYSICAL, _SPECIAL, _RETYPED = FACTS["physical"], FACTS["special"], FACTS["retyped"]
_SPEEDS = facts("slower faster")
_UNCHANGED = (ONE,) * STAGES


def weapon(tables: Tables, wielder: Wielder, name: str, move: DamageMove) -> Weapon:
    """`move`, called `name`, in these hands."""
    gen, user, around = tables.gen, wielder.user, wielder.around
    kind, retyped = move_type(gen, user, name, move, around)
    category = _category(gen, user, move, kind)
    true = wielder.facts | (move.mask & ~wielder.spared) | (_PHYSICAL if category == PHYSICAL else _SPECIAL)
    true |= type_fact(kind) | (_RETYPED if retyped else 0)
    mods, waiting = _apply(wielder.before + tables.rules["move"].get(name, ()) + wielder.after, true)
    attack, plain = _attack(gen, user, move, category, mods[ATTACK_FIRST])
    paired = move.power_kind if move.power_kind <= LAST_PAIRED else PLAIN
    compared = paired in (SLOWER, FASTER) or any([rule.mask & _SPEEDS for rule in waiting])
    return Weapon(
        facts=true & tables.asked,
        type=kind if not move.bits & STRUGGLES else 0,
        level_term=2 * user.level // 5 + 2,
        power=user_power(gen, user, move),
        power_kind=paired,
        attack=attack,
        attack_plain=plain,
        mods=mods,
        stab=_stab(gen, user, kind, move),
        weather=_weather(around, kind, name),
        special=category == SPECIAL and not move.bits & HITS_DEFENCE,
        burned=_burned(gen, user, category, name),
        fixed=move.fixed,
        amount=move.amount or user.level,
        oddity=move.oddity,
        bits=move.bits | IGNORES_STAGES if user.ability == "unaware" else move.bits,
        hp=user.stats[0] * user.hp // user.max_hp if move.fixed in (TO_USERS_HP, USERS_HP) else 0,
        weight=tables.weights.get(user.species, 0) if paired == WEIGHT_RATIO else 0,
        speed=speed(gen, user, around) if compared else 0,
        lifted=user.terastallized and kind in user.types and not move.bits & UNFORCED,
        scrappy=user.ability in SCRAPPY,
        mold=user.ability in MOLD or bool(move.bits & IGNORES_ABILITY),
        waiting=waiting,
        blows=_blows(gen, user, move),
    )


def same_in(gen: int, hands: Wielder, others: Wielder, move: DamageMove, made: Weapon) -> bool:
    """Whether `hands`, those of `others` terastallized, hold the very weapon that `others` made of the move."""
    return (
        made.type not in hands.user.types
        and move.type_kind not in (TERA_TYPE, FIRST_TYPE)
        and not move.bits & (BETTER_SIDE | STRUGGLES)
        and hands.facts == others.facts
        and made.stab == _stab(gen, hands.user, made.type, move)
    )


def _category(gen: int, user: Fighter, move: DamageMove, kind: int) -> int:
    if gen <= 3 and kind != move.type:  # the type decides, and the weather changed it
        return SPECIAL if kind in (FIRE, WATER, 12) else PHYSICAL
    if move.bits & BETTER_SIDE and (user.terastallized or move.type == 15):
        attack = staged(gen, user.stats[1], user.stages[0])
        return PHYSICAL if attack > staged(gen, user.stats[3], user.stages[2]) else move.category
    return move.category


def _apply(found: tuple[Rule, ...], true: int) -> tuple[tuple[int, ...], tuple[PairRule, ...]]:
    """Modifiers by stage, and what has to wait for the target."""
    if not found:
        return _UNCHANGED, ()
    mods = list(_UNCHANGED)
    waiting: list[PairRule] = []
    for stage, mod, mask, _ in found:
        open_facts = mask & PAIR_FACTS
        if mask & ~true != open_facts:
            continue
        if not open_facts:
            mods[stage] = chain(mods[stage], mod)
        elif len(waiting) < MOST_WAITING:
            waiting.append(PairRule(stage, open_facts, mod))
    return tuple(mods), tuple(waiting)


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


def _blows(gen: int, user: Fighter, move: DamageMove) -> tuple[float, float]:
    """Mean and variance of how often a move hits."""
    if move.few_hits and user.ability == "skilllink":
        return 5.0, 0.0
    if move.few_hits and user.item == "loadeddice":
        return 4.5, 0.25
    if user.ability == "parentalbond" and move.hits[0] == 1.0:
        return (1.25 if gen >= 7 else 1.5), 0.0
    return move.hits
