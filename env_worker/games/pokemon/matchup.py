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
BULK = {"furcoat": (2.0, 1.0), "icescales": (1.0, 2.0)}
Chart = tuple[tuple[float, ...], ...]  # type multiplier [attacking type id][defending type id]


class Body(NamedTuple):
    """What a Pokemon is hit in and hits with.

    Attributes:
        types: ids of its types now; base_types: those it was born with (STAB after terastallizing).
        stats: hp, atk, def, spa, spd, spe, unboosted.
        tera: type id it may still turn into, 0 for none.
    """

    types: tuple[int, ...]
    base_types: tuple[int, ...]
    level: int
    stats: tuple[float, ...]
    ability: str
    item: str
    terastallized: bool = False
    tera: int = 0


class Profile(NamedTuple):
    """A body and its known moves (None where a move has no data). guess: it may have STAB moves nobody has seen."""

    body: Body
    moves: tuple[MoveInfo | None, ...]
    guess: bool = False


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


def attack(gen: int, profile: Profile, target: Body) -> Attack:
    """Damage estimates are weighted by accuracy in `physical` and `special`, not in `blows`."""
    user = profile.body
    chart = type_chart(gen)
    immune = IMMUNITIES.get(target.ability, 0)
    blows: list[Blow] = []
    best = [0.0, 0.0]
    effectiveness = 0.0
    for move in profile.moves:
        if move is None or move.category == STATUS:
            blows.append(NO_BLOW)
            continue
        blow = _blow(chart, immune, user, target, move)
        blows.append(blow)
        if blow.damage > 0.0:
            best[move.category] = max(best[move.category], blow.damage * move.accuracy)
            effectiveness = max(effectiveness, blow.effectiveness)
    if profile.guess:
        category, damage, multiplier = _assumed(chart, immune, user, target)
        best[category] = max(best[category], damage)
        effectiveness = max(effectiveness, multiplier)
    return Attack(best[0], best[1], effectiveness, tuple(blows))


def _blow(chart: Chart, immune: int, user: Body, target: Body, move: MoveInfo) -> Blow:
    kind = user.types[0] if user.terastallized and move.row == _TERA_BLAST else move.type
    multiplier = _effectiveness(chart, immune, kind, target)
    if multiplier == 0.0:
        return NO_BLOW
    if move.fixed:
        hp = float(user.level) if move.level_damage else move.flat
        return Blow(move.fraction or hp / target.stats[0], multiplier, 0.0, 0.0)
    base = _base_damage(user, target, move)
    stab = _stab(user, kind)
    tera_damage = 0.0
    if user.tera:
        tera_kind = user.tera if move.row == _TERA_BLAST else kind
        tera_multiplier = multiplier if tera_kind == kind else _effectiveness(chart, immune, tera_kind, target)
        tera_damage = base * _tera_stab(user, tera_kind) * tera_multiplier
    return Blow(base * stab * multiplier, multiplier, stab - 1.0, tera_damage)


def _base_damage(user: Body, target: Body, move: MoveInfo) -> float:
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
    if target.item == "eviolite" or (target.item == "assaultvest" and not move.hits_defence):
        defence *= 1.5
    damage = (0.4 * user.level + 2) * power * offence / defence / 50 + 2
    return damage * AVERAGE_ROLL / target.stats[0]


def _assumed(chart: Chart, immune: int, user: Body, target: Body) -> tuple[int, float, float]:
    """The stronger STAB of an unrevealed move: (category, damage, effectiveness)."""
    category = 0 if user.stats[1] >= user.stats[3] else 1
    multiplier = max(_effectiveness(chart, immune, kind, target) for kind in user.types)
    offence, defence = user.stats[1 + 2 * category], target.stats[2 + 2 * category]
    damage = (0.4 * user.level + 2) * ASSUMED_POWER * offence / defence / 50 + 2
    return category, damage * AVERAGE_ROLL / target.stats[0] * 1.5 * multiplier, multiplier


def _effectiveness(chart: Chart, immune: int, kind: int, target: Body) -> float:
    if immune and immune == kind:
        return 0.0
    row = chart[kind]
    types = target.types
    return row[types[0]] if len(types) == 1 else row[types[0]] * row[types[1]]


def _stab(user: Body, kind: int) -> float:
    if not user.terastallized:
        return (2.0 if user.ability == "adaptability" else 1.5) if kind in user.types else 1.0
    if kind in user.types:
        return 2.0 if kind in user.base_types else 1.5
    return 1.5 if kind in user.base_types else 1.0


def _tera_stab(user: Body, kind: int) -> float:
    if kind == user.tera:
        return 2.0 if kind in user.base_types else 1.5
    return 1.5 if kind in user.base_types else 1.0
