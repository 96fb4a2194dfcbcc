"""The encoder's estimate of damage between two Pokemon, both ways, before stages; `damage/` has the exact formula.

It is split in two: what depends on the user alone, as far as the seat can know, and what depends on the target alone.
Stages, burn, weather and screens change from turn to turn and are applied elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import NamedTuple

from simul.env_worker.games.pokemon.damage.queries import takes_type
from simul.env_worker.games.pokemon.damage.types import Body
from simul.env_worker.games.pokemon.tables.movedex import PHYSICAL, STATUS, MoveInfo, type_chart
from simul.env_worker.games.pokemon.tables.vocabulary import vocabulary

AVERAGE_ROLL = 0.925
ASSUMED_POWER = 75.0  # of a foe's unrevealed STAB moves
TECHNICIAN_POWER = 60.0
_EVEN = (1.0, 1.0)
_TERA_BLAST = vocabulary().move["terablast"]
# Ability -> the attacking type it makes harmless (ids of PokemonType).
GROUND, WATER, ELECTRIC, FIRE, GRASS = 11, 18, 4, 7, 10
IMMUNITIES = {
    "levitate": GROUND,
    "eartheater": GROUND,
    "waterabsorb": WATER,
    "stormdrain": WATER,
    "dryskin": WATER,
    "voltabsorb": ELECTRIC,
    "motordrive": ELECTRIC,
    "lightningrod": ELECTRIC,
    "flashfire": FIRE,
    "wellbakedbody": FIRE,
    "sapsipper": GRASS,
}
ITEM_POWER = {"lifeorb": (1.3, 1.3), "choiceband": (1.5, 1.0), "choicespecs": (1.0, 1.5), "lightball": (2.0, 2.0)}
ABILITY_POWER = {"hugepower": (2.0, 1.0), "purepower": (2.0, 1.0), "gorillatactics": (1.5, 1.0), "hustle": (1.5, 1.0)}
BULK = {"furcoat": (2.0, 1.0), "icescales": (1.0, 2.0)}


class DamageProfile(NamedTuple):
    """A body and its known moves (None where a move has no data). guess: True = it may have unseen STAB moves."""

    body: Body
    moves: tuple[MoveInfo | None, ...]
    guess: bool = False


class MoveOffence(NamedTuple):
    """One damaging move of one user: everything that does not depend on the target.

    Attributes:
        type, stab: as it is now; tera_type, tera_stab: after terastallizing (type 0: not possible).
        scale: damage at neutral effectiveness times the target's defence (foul play: a share of its attack).
        defence: 0 = meets defence, 1 = meets special defence.
        flat, fraction: damage in hp or as a share of the target's; such moves know no modifiers.
    """

    type: int
    special: int
    stab: float
    scale: float
    defence: int
    accuracy: float
    foe_attack: bool
    fixed: bool
    flat: float
    fraction: float
    tera_type: int
    tera_stab: float


class Offence(NamedTuple):
    """A profile's moves: by move slot (None = no damage), and with assumed STAB moves."""

    slots: tuple[MoveOffence | None, ...]
    all: tuple[MoveOffence, ...]


class Defence(NamedTuple):
    """A body as a target. `per_hp`: average roll over full hp; `multipliers`: of each attacking type's damage."""

    multipliers: tuple[float, ...]
    defences: tuple[float, float]
    attack: float
    hp: float
    per_hp: float


def offence_of(gen: int, profile: DamageProfile, made: dict[MoveInfo, MoveOffence] | None = None) -> Offence:
    """The offence of a profile. `made`: cache of its body's moves."""
    user = profile.body
    made = {} if made is None else made
    for move in profile.moves:
        if move is not None and move.category != STATUS and move not in made:
            made[move] = _move_offence(gen, user, move)
    slots = tuple([None if move is None else made.get(move) for move in profile.moves])
    known = [move for move in slots if move is not None]
    if profile.guess:
        known += [_assumed(user, kind) for kind in user.types]
    return Offence(slots, tuple(known))


def defence_of(gen: int, body: Body) -> Defence:
    """The defence of a body."""
    physical, special = BULK.get(body.ability, _EVEN)
    if body.item == "eviolite":
        physical, special = physical * 1.5, special * 1.5
    elif body.item == "assaultvest":
        special *= 1.5
    hp, attack, defence, _, special_defence, _ = body.stats
    return Defence(
        _multipliers(gen, body.types, IMMUNITIES.get(body.ability, 0)),
        (defence * physical, special_defence * special),
        attack,
        hp,
        AVERAGE_ROLL / hp,
    )


@cache
def _multipliers(gen: int, types: tuple[int, ...], immune: int) -> tuple[float, ...]:
    """By attacking type. `immune`: the type that an ability makes harmless, 0 for none."""
    taken = [prod([row[kind] for kind in types]) for row in type_chart(gen)]
    if immune:
        taken[immune] = 0.0
    return tuple(taken)


def _move_offence(gen: int, user: Body, move: MoveInfo) -> MoveOffence:
    kind = user.types[0] if user.terastallized and move.row == _TERA_BLAST else move.type
    tera_kind = 0
    if user.tera and not user.terastallized and not move.fixed:
        tera_kind = user.tera if move.row == _TERA_BLAST else kind
    return MoveOffence(
        kind,
        0 if move.category == PHYSICAL else 1,
        1.0 if move.fixed else _stab(gen, user, kind),
        _scale(user, move),
        0 if move.hits_defence else 1,
        move.accuracy,
        move.foe_attack,
        move.fixed,
        float(user.level) if move.level_damage else move.flat,
        move.fraction,
        tera_kind,
        _tera_stab(user, tera_kind) if tera_kind else 1.0,
    )


def _scale(user: Body, move: MoveInfo) -> float:
    slot = 0 if move.category == PHYSICAL else 1
    power = move.power
    if user.ability == "technician" and power <= TECHNICIAN_POWER:
        power *= 1.5
    power *= ITEM_POWER.get(user.item, _EVEN)[slot] * ABILITY_POWER.get(user.ability, _EVEN)[slot]
    if move.foe_attack:
        offence = 1.0
    else:
        offence = user.stats[2 if move.own_defence else 3 if slot else 1]
    return (0.4 * user.level + 2) * power * offence / 50


def _assumed(user: Body, kind: int) -> MoveOffence:
    """An assumed STAB move of the better attacking category."""
    special = 0 if user.stats[1] >= user.stats[3] else 1
    scale = (0.4 * user.level + 2) * ASSUMED_POWER * user.stats[3 if special else 1] / 50
    return MoveOffence(kind, special, 1.5, scale, special, 1.0, False, False, 0.0, 0.0, 0, 1.0)


def _stab(gen: int, user: Body, kind: int) -> float:
    if takes_type(gen, user.ability, user.types, user.base_types, user.terastallized):
        return 1.5
    if not user.terastallized:
        return (2.0 if user.ability == "adaptability" else 1.5) if kind in user.types else 1.0
    if kind in user.types:
        return 2.0 if kind in user.base_types else 1.5
    return 1.5 if kind in user.base_types else 1.0


def _tera_stab(user: Body, kind: int) -> float:
    if kind == user.tera:
        return 2.0 if kind in user.base_types else 1.5
    return 1.5 if kind in user.base_types else 1.0


# The best of one's moves against a target: physical and special, as fractions of full hp weighted by accuracy, before
# stages; and the largest effectiveness.
BestDamage = tuple[float, float, float]


class MoveDamage(NamedTuple):
    """One move against one target: fraction of full hp it takes if it hits, before stages."""

    damage: float
    effectiveness: float
    stab: float
    tera_damage: float


NO_DAMAGE = MoveDamage(0.0, 0.0, 0.0, 0.0)


def best_damage(moves: tuple[MoveOffence, ...], target: Defence) -> BestDamage:
    """The best of all moves on a target."""
    physical = special = effectiveness = 0.0
    taken, defences, attack, hp, per_hp = target
    for kind, is_special, stab, scale, defence, accuracy, foe_attack, fixed, flat, fraction, _, _ in moves:
        multiplier = taken[kind]
        if multiplier == 0.0:
            continue
        if fixed:
            damage = (fraction or flat / hp) * accuracy
        else:  # `_damage` inlined: this runs for every pair of a battle
            power = scale * attack if foe_attack else scale
            damage = (power / defences[defence] + 2) * (stab * multiplier) * per_hp * accuracy
        if is_special:
            if damage > special:
                special = damage
        elif damage > physical:
            physical = damage
        if multiplier > effectiveness:
            effectiveness = multiplier
    return physical, special, effectiveness


def move_damage(move: MoveOffence | None, target: Defence) -> MoveDamage:
    """One move on a target in detail."""
    if move is None:
        return NO_DAMAGE
    multiplier = target.multipliers[move.type]
    tera_damage = 0.0
    if move.tera_type:
        tera_multiplier = target.multipliers[move.tera_type]
        tera_damage = _damage(move, target, move.tera_stab * tera_multiplier) if tera_multiplier else 0.0
    if multiplier == 0.0:
        return MoveDamage(0.0, 0.0, 0.0, tera_damage)
    return MoveDamage(_damage(move, target, move.stab * multiplier), multiplier, move.stab - 1.0, tera_damage)


def exchange_numbers(
    deals: BestDamage, takes: BestDamage, own: Sequence[float], other: Sequence[float]
) -> tuple[float, float, float, float]:
    """`layout.POKEMON` from `deals` to `takes_effectiveness`; `own`, `other`: as `field_state.Strength`."""
    deals_physical, deals_special, dealt_type = deals
    takes_physical, takes_special, taken_type = takes
    physical_dealt, special_dealt, physical_taken, special_taken = own
    foe_physical_dealt, foe_special_dealt, foe_physical_taken, foe_special_taken = other
    physical = deals_physical * physical_dealt * foe_physical_taken
    special = deals_special * special_dealt * foe_special_taken
    dealt = physical if physical > special else special
    physical = takes_physical * foe_physical_dealt * physical_taken
    special = takes_special * foe_special_dealt * special_taken
    taken = physical if physical > special else special
    return (
        dealt if dealt < 1.0 else 1.0,
        dealt_type / 4,
        taken if taken < 1.0 else 1.0,
        taken_type / 4,
    )


def _damage(move: MoveOffence, target: Defence, factor: float) -> float:
    if move.fixed:
        return move.fraction or move.flat / target.hp
    scale = move.scale * target.attack if move.foe_attack else move.scale
    return (scale / target.defences[move.defence] + 2) * factor * target.per_hp
