"""How two Pokemon stand against each other: expected damage both ways, as far as the seat can know.

The estimate is the game's formula with average rolls and the modifiers that matter most; stages, burn,
weather and screens change from turn to turn and are applied by the encoder.
"""

from __future__ import annotations

from typing import NamedTuple

from env_worker.games.pokemon.movedex import PHYSICAL, STATUS, MoveInfo, type_chart
from env_worker.games.pokemon.vocabulary import vocabulary

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
BULK = {"furcoat": (2.0, 1.0), "icescales": (1.0, 2.0), "multiscale": (1.0, 1.0)}


class Profile(NamedTuple):
    """What the damage estimate needs of one Pokemon; equal profiles share their matchups.

    Attributes:
        types: ids of its types now; base_types: those it was born with (STAB after terastallizing).
        stats: hp, atk, def, spa, spd, spe, unboosted.
        moves: known moves; None where a slot's move has no data.
        guess: True = it may have STAB moves that nobody has seen.
        tera: type id it may still turn into, 0 for none.
    """

    types: tuple[int, ...]
    base_types: tuple[int, ...]
    level: int
    stats: tuple[float, ...]
    ability: str
    item: str
    moves: tuple[MoveInfo | None, ...]
    terastallized: bool = False
    guess: bool = False
    tera: int = 0


class Blow(NamedTuple):
    """One move against one target: fraction of full hp it takes, before stages."""

    damage: float
    effectiveness: float
    stab: float
    tera_damage: float


class Attack(NamedTuple):
    """All of one Pokemon's moves against another: the best physical and special one, and each move by slot."""

    physical: float
    special: float
    effectiveness: float
    blows: tuple[Blow, ...]


NO_BLOW = Blow(0.0, 0.0, 0.0, 0.0)


def attack(gen: int, user: Profile, target: Profile) -> Attack:
    """Damage estimates are weighted by accuracy in `physical` and `special`, not in `blows`."""
    blows: list[Blow] = []
    best = [0.0, 0.0]
    effectiveness = 0.0
    for move in user.moves:
        blow = NO_BLOW if move is None or move.category == STATUS else _blow(gen, user, target, move)
        blows.append(blow)
        if move is not None and blow.damage > 0.0:
            best[move.category] = max(best[move.category], blow.damage * move.accuracy)
            effectiveness = max(effectiveness, blow.effectiveness)
    if user.guess:
        category, damage, multiplier = _assumed(gen, user, target)
        best[category] = max(best[category], damage)
        effectiveness = max(effectiveness, multiplier)
    return Attack(best[0], best[1], effectiveness, tuple(blows))


def _blow(gen: int, user: Profile, target: Profile, move: MoveInfo) -> Blow:
    kind = user.types[0] if user.terastallized and move.row == _TERA_BLAST else move.type
    multiplier = _effectiveness(gen, kind, target)
    if multiplier == 0.0:
        return NO_BLOW
    if move.level_damage or move.flat or move.fraction:
        hp = float(user.level) if move.level_damage else move.flat
        damage = move.fraction or hp / target.stats[0]
        return Blow(damage, multiplier, 0.0, 0.0)
    base = _base_damage(user, target, move)
    stab = _stab(user, kind)
    tera_damage = 0.0
    if user.tera:
        tera_kind = user.tera if move.row == _TERA_BLAST else kind
        tera_stab = _tera_stab(user, tera_kind)
        tera_damage = base * tera_stab * _effectiveness(gen, tera_kind, target)
    return Blow(base * stab * multiplier, multiplier, stab - 1.0, tera_damage)


def _base_damage(user: Profile, target: Profile, move: MoveInfo) -> float:
    """Fraction of the target's full hp at neutral effectiveness without STAB."""
    physical = move.category == PHYSICAL
    if move.own_defence:
        offence = user.stats[2]
    elif move.foe_attack:
        offence = target.stats[1]
    else:
        offence = user.stats[1 if physical else 3]
    defence = target.stats[2 if move.hits_defence else 4]
    power = move.power
    if user.ability == "technician" and power <= TECHNICIAN_POWER:
        power *= 1.5
    slot = 0 if physical else 1
    power *= ITEM_POWER.get(user.item, _EVEN)[slot] * ABILITY_POWER.get(user.ability, _EVEN)[slot]
    defence *= BULK.get(target.ability, _EVEN)[0 if move.hits_defence else 1]
    if (target.item == "assaultvest" and not move.hits_defence) or target.item == "eviolite":
        defence *= 1.5
    damage = (0.4 * user.level + 2) * power * offence / defence / 50 + 2
    return damage * AVERAGE_ROLL / target.stats[0]


def _assumed(gen: int, user: Profile, target: Profile) -> tuple[int, float, float]:
    """The stronger STAB of an unrevealed move: (category, damage, effectiveness)."""
    category = 0 if user.stats[1] >= user.stats[3] else 1
    multiplier = max(_effectiveness(gen, kind, target) for kind in user.types)
    offence, defence = user.stats[1 + 2 * category], target.stats[2 + 2 * category]
    damage = (0.4 * user.level + 2) * ASSUMED_POWER * offence / defence / 50 + 2
    return category, damage * AVERAGE_ROLL / target.stats[0] * 1.5 * multiplier, multiplier


def _effectiveness(gen: int, kind: int, target: Profile) -> float:
    if IMMUNITIES.get(target.ability) == kind:
        return 0.0
    row = type_chart(gen)[kind]
    multiplier = 1.0
    for defender in target.types:
        multiplier *= row[defender]
    return multiplier


def _stab(user: Profile, kind: int) -> float:
    if not user.terastallized:
        return (2.0 if user.ability == "adaptability" else 1.5) if kind in user.types else 1.0
    if kind in user.types:
        return 2.0 if kind in user.base_types else 1.5
    return 1.5 if kind in user.base_types else 1.0


def _tera_stab(user: Profile, kind: int) -> float:
    if kind == user.tera:
        return 2.0 if kind in user.base_types else 1.5
    return 1.5 if kind in user.base_types else 1.0
