"""Which type multiplier a weapon has on a target, as a power of two, and whether it does anything at all."""

from __future__ import annotations

from simul.env_worker.games.pokemon.damage import terms
from simul.env_worker.games.pokemon.damage.facts import FACTS
from simul.env_worker.games.pokemon.damage.moves import FLYING_PRESS, FREEZE_DRY, STRUGGLES, THOUSAND_ARROWS
from simul.env_worker.games.pokemon.damage.movetypes import FIGHTING, FIRE, WATER
from simul.env_worker.games.pokemon.damage.state import FLYING, GHOST, GROUND, NORMAL, STELLAR
from simul.env_worker.games.pokemon.damage.tables import Tables
from simul.env_worker.games.pokemon.damage.terms import Target, Weapon

_ON_GROUND = FACTS["target_grounded"]
_CHANGING = terms.WONDER_GUARD | terms.TERA_SHELL | terms.TAR_SHOT | terms.STRONG_WINDS


def effectiveness(tables: Tables, weapon: Weapon, target: Target) -> int | None:
    """log2 of the type multiplier; None where the target is immune."""
    kind = weapon.type
    if weapon.oddity or weapon.scrappy or target.odd & _CHANGING or kind == STELLAR:
        return _strange(tables, weapon, target)
    first, second = target.types
    immune = tables.immune[kind]
    if not target.facts & _ON_GROUND if kind == GROUND else immune[first] or immune[second]:
        return None
    exponents = tables.exponents[kind]
    return exponents[first] + exponents[second]


def _strange(tables: Tables, weapon: Weapon, target: Target) -> int | None:
    """The same, with everything that changes the type chart."""
    kind, oddity, odd, (first, second) = weapon.type, weapon.oddity, target.odd, target.types
    afloat = not target.facts & _ON_GROUND
    effect = _against(tables, weapon, target, first) + _against(tables, weapon, target, second)
    if odd & terms.TAR_SHOT and kind == FIRE:
        effect += 1
    if kind == STELLAR and odd & terms.TERASTALLIZED:
        effect = 1
    if odd & terms.TERA_SHELL and effect >= 0:
        effect = -1
    if kind == GROUND:
        immune = afloat and oddity != THOUSAND_ARROWS
    else:
        immune = _barred(tables, weapon, first) or _barred(tables, weapon, second)
    if immune or (odd & terms.WONDER_GUARD and effect <= 0 and not weapon.bits & STRUGGLES):
        return None
    return 0 if oddity == THOUSAND_ARROWS and afloat and FLYING in (first, second) else effect


def _against(tables: Tables, weapon: Weapon, target: Target, kind: int) -> int:
    """The exponent against one of the target's types, for moves and winds that change it."""
    value = tables.exponents[weapon.type][kind]
    if weapon.oddity == FREEZE_DRY and kind == WATER:
        value = 1
    elif weapon.oddity == FLYING_PRESS:
        value += tables.exponents[FLYING][kind]
    return 0 if target.odd & terms.STRONG_WINDS and kind == FLYING and value > 0 else value


def _barred(tables: Tables, weapon: Weapon, kind: int) -> bool:
    if weapon.scrappy and kind == GHOST and weapon.type in (NORMAL, FIGHTING):
        return False
    return tables.immune[weapon.type][kind]
