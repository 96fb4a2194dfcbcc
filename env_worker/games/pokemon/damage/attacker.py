"""One user and its moves: all of the damage formula that does not depend on the target."""

from __future__ import annotations

from typing import NamedTuple

from simul.env_worker.games.pokemon.damage.moves import (
    BETTER_SIDE,
    BOOSTS,
    CRITS,
    FALLEN,
    FASTER,
    FIRE,
    FIRST_TYPE,
    FOE_ATTACK,
    HITS_DEFENCE,
    IGNORES_ABILITY,
    IGNORES_STAGES,
    NO_ITEM,
    OWN_DEFENCE,
    PHYSICAL,
    PINCH,
    PLAIN,
    RISES,
    SLOWER,
    SPECIAL,
    STRUGGLES,
    TARGET_HP,
    TERA_TYPE,
    TO_USERS_HP,
    UNFORCED,
    USER_HP,
    USERS_HP,
    WATER,
    WEIGHT_RATIO,
    DamageMove,
    move_type,
)
from simul.env_worker.games.pokemon.damage.queries import (
    STELLAR,
    apply_modifier,
    at_stage,
    chain_modifiers,
    effective_item,
    grounded,
    speed,
    takes_type,
    with_simple_stages,
)
from simul.env_worker.games.pokemon.damage.rules import ATTACK_FIRST, STAGES, DamageTables, Rule
from simul.env_worker.games.pokemon.damage.types import (
    FACTS,
    MOST_WAITING,
    ONE,
    PAIR_FACTS,
    PREPARING,
    AttackerMove,
    Fighter,
    PairRule,
    Surroundings,
    facts,
    type_fact,
)

_SETTLED = facts(
    "user_pinched user_weak user_status user_burned user_poisoned user_grounded "
    "sun rain sand snow electric_terrain grassy_terrain misty_terrain psychic_terrain"
)


class AttackerState(NamedTuple):
    """A user as it is now: what all its moves have in common.

    Attributes:
        facts: of user and field; `spared`: facts of a move that its ability removes.
        before, after: rules that may apply, in the order the modifiers are chained; the move's come between.
    """

    user: Fighter
    around: Surroundings
    facts: int
    spared: int
    before: tuple[Rule, ...]
    after: tuple[Rule, ...]


def attacker_state(tables: DamageTables, user: Fighter, around: Surroundings) -> AttackerState:
    """`user` on this field."""
    gen, user = tables.gen, with_simple_stages(tables.gen, user)
    known, item = tables.rules, effective_item(user)
    found = known["field"].get("any", ()) if around.facts else ()
    if not (item.startswith("choice") and "DYNAMAX" in user.effects):
        found += tuple(
            [r for r in known["user_item"].get(item, ()) if not r.species or user.species.startswith(r.species)]
        )
    for effect in user.effects:
        found += known["user_effect"].get(effect, ())
    true = around.facts | _user_facts(gen, user, around)
    first = known["user_ability"].get(user.ability, ())
    return AttackerState(
        user, around, true, _ignored_facts(gen, user.ability), _applicable(first, true), _applicable(found, true)
    )


def terastallized(tables: DamageTables, state: AttackerState) -> AttackerState:
    """The same user after terastallizing; a stellar one keeps its types."""
    gen, user, around = tables.gen, state.user, state.around
    types = user.types if user.tera == STELLAR else (user.tera,)
    user = user._replace(types=types, terastallized=True)
    if grounded(gen, user, around) == bool(state.facts & FACTS["user_grounded"]):
        return state._replace(user=user)
    return attacker_state(tables, user, around)


def _ignored_facts(gen: int, ability: str) -> int:
    if ability == "infiltrator" and gen >= 5:
        return FACTS["meets_screens"]
    return FACTS["secondary"] if ability == "sheerforce" and gen <= 4 else 0


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


def _applicable(found: tuple[Rule, ...], true: int) -> tuple[Rule, ...]:
    """The rules whose facts of user and field hold."""
    return tuple([rule for rule in found if not rule.mask & _SETTLED & ~true])


LAST_PAIRED = TARGET_HP  # the kinds of power from WEIGHT on need user and target
MOLD_BREAKERS = ("moldbreaker", "teravolt", "turboblaze")
SCRAPPY = ("scrappy", "mindseye")
_RISE = {"contrary": -1, "simple": 2}  # stages that a move of RISES adds, otherwise 1
_PHYSICAL, _SPECIAL, _RETYPED = FACTS["physical"], FACTS["special"], FACTS["retyped"]
_SPEEDS = facts("slower faster")
_UNCHANGED = (ONE,) * STAGES


def attacker_move(tables: DamageTables, state: AttackerState, name: str, move: DamageMove) -> AttackerMove:
    """`move`, called `name`, as this user has it."""
    gen, user, around = tables.gen, state.user, state.around
    kind, retyped = move_type(gen, user, name, move, around)
    category = _category(gen, user, move, kind)
    true = state.facts | (move.mask & ~state.spared) | (_PHYSICAL if category == PHYSICAL else _SPECIAL)
    true |= type_fact(kind) | (_RETYPED if retyped else 0)
    mods, waiting = _apply(state.before + tables.rules["move"].get(name, ()) + state.after, true)
    attack, plain = _attack(gen, user, move, category, mods[ATTACK_FIRST])
    paired = move.power_kind if move.power_kind <= LAST_PAIRED else PLAIN
    compared = paired in (SLOWER, FASTER) or any([rule.mask & _SPEEDS for rule in waiting])
    return AttackerMove(
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
        mold=user.ability in MOLD_BREAKERS or bool(move.bits & IGNORES_ABILITY),
        waiting=waiting,
        hit_counts=_hit_counts(gen, user, move),
    )


def same_after_tera(
    gen: int, state: AttackerState, others: AttackerState, move: DamageMove, made: AttackerMove
) -> bool:
    """Whether `state`, which is `others` terastallized, makes the same of the move as `others` made of it."""
    return (
        made.type not in state.user.types
        and move.type_kind not in (TERA_TYPE, FIRST_TYPE)
        and not move.bits & (BETTER_SIDE | STRUGGLES)
        and state.facts == others.facts
        and made.stab == _stab(gen, state.user, made.type, move)
    )


def _category(gen: int, user: Fighter, move: DamageMove, kind: int) -> int:
    if gen <= 3 and kind != move.type:  # the type decides, and the weather changed it
        return SPECIAL if kind in (FIRE, WATER, 12) else PHYSICAL
    if move.bits & BETTER_SIDE and (user.terastallized or move.type == 15):
        attack = at_stage(gen, user.stats[1], user.stages[0])
        return PHYSICAL if attack > at_stage(gen, user.stats[3], user.stages[2]) else move.category
    return move.category


def _apply(found: tuple[Rule, ...], true: int) -> tuple[tuple[int, ...], tuple[PairRule, ...]]:
    """Modifiers by stage, and rules that can only be decided with the target."""
    if not found:
        return _UNCHANGED, ()
    mods = list(_UNCHANGED)
    waiting: list[PairRule] = []
    for stage, mod, mask, _ in found:
        open_facts = mask & PAIR_FACTS
        if mask & ~true != open_facts:
            continue
        if not open_facts:
            mods[stage] = chain_modifiers(mods[stage], mod)
        elif len(waiting) < MOST_WAITING:
            waiting.append(PairRule(stage, open_facts, mod))
    return tuple(mods), tuple(waiting)


def _attack(gen: int, user: Fighter, move: DamageMove, category: int, first: int) -> tuple[int, int]:
    """The attack with stages and without; 0 where the target's attack is used."""
    if move.bits & FOE_ATTACK:
        return 0, 0
    place = 1 if move.bits & OWN_DEFENCE else 0 if category == PHYSICAL else 2
    stat, stage = user.stats[place + 1], user.stages[place]
    if move.bits & RISES and PREPARING not in user.effects:
        stage = max(-6, min(6, stage + _RISE.get(user.ability, 1)))
    if move.bits & CRITS:
        stage = max(stage, 0)
    boosted, plain = at_stage(gen, stat, stage), at_stage(gen, stat, 0)
    if gen <= 2 and place == 0 and user.status == "BRN":
        boosted = max(boosted // 2, 1)
    return (boosted, plain) if first == ONE else (apply_modifier(boosted, first), apply_modifier(plain, first))


def _stab(gen: int, user: Fighter, kind: int, move: DamageMove) -> int:
    if move.bits & STRUGGLES or kind == 19:
        return ONE
    if takes_type(gen, user.ability, user.types, user.base_types, user.terastallized):
        return 6144
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


def _hit_counts(gen: int, user: Fighter, move: DamageMove) -> tuple[float, float]:
    """Mean and variance of how often a move hits."""
    if move.few_hits and user.ability == "skilllink":
        return 5.0, 0.0
    if move.few_hits and user.item == "loadeddice":
        return 4.5, 0.25
    if user.ability == "parentalbond" and move.hits[0] == 1.0:
        return (1.25 if gen >= 7 else 1.5), 0.0
    return move.hits


def user_power(gen: int, user: Fighter, move: DamageMove) -> int:
    """Power before modifiers, as far as it follows from the user alone."""
    kind, power = move.power_kind, move.power
    if kind == USER_HP:
        return max(power * user.hp // user.max_hp, 1)
    if kind == PINCH:
        return _pinch(gen, user)
    if kind == BOOSTS:
        return power + 20 * sum(stage for stage in user.stages if stage > 0)
    if kind == NO_ITEM:
        return power if user.item and not user.item.endswith("gem") else 2 * power
    if kind == FALLEN:
        return power + 50 * user.down
    return 100 if move.type_kind == TERA_TYPE and user.terastallized and user.tera == STELLAR else power


def _pinch(gen: int, user: Fighter) -> int:
    """Flail and reversal."""
    steps, parts = ((2, 6, 13, 22, 43), 64) if gen == 4 else ((2, 5, 10, 17, 33), 48)
    share = max(user.hp * parts // user.max_hp, 1)
    for bound, power in zip(steps, (200, 150, 100, 80, 40)):
        if share < bound:
            return power
    return 20
