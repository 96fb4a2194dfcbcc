"""What the damage formula needs of a weapon (one move in one user's hands) and of a target: integers, modifiers in
4096ths. Hashable: equal weapons on equal targets do equal damage, and are reckoned once."""

from __future__ import annotations

from typing import NamedTuple

ONE = 4096
MOST_WAITING = 3
MOST_GUARDS = 5
# What is odd about a target
WONDER_GUARD, TERA_SHELL, TAR_SHOT, STRONG_WINDS, TERASTALLIZED, UNAWARE = (1 << place for place in range(6))


class PairRule(NamedTuple):
    """What weapon or target bring that can only be told when the two meet. `mask`: facts that must hold."""

    stage: int
    mask: int
    mod: int


class Weapon(NamedTuple):
    """All that does not depend on the target.

    Attributes:
        facts: of the move, as far as any target's rules ask for them.
        attack_plain: without stages, for a target that is unaware of them.
        mods: by stage (`rules.STAGE_NAMES`).
        hp, weight, speed: the user's, 0 where nothing asks for them.
        lifted: True = a weak attack that terastallizing lifts to a power of 60.
        mold: True = the target's ability does not count.
        blows: mean and variance of how often it hits.
    """

    facts: int
    type: int
    level_term: int
    power: int
    power_kind: int
    attack: int
    attack_plain: int
    mods: tuple[int, ...]
    stab: int
    weather: int
    special: bool
    burned: bool
    fixed: int
    amount: int
    oddity: int
    bits: int
    hp: int
    weight: int
    speed: int
    lifted: bool
    scrappy: bool
    mold: bool
    waiting: tuple[PairRule, ...]
    blows: tuple[float, float]


class Target(NamedTuple):
    """All that does not depend on the weapon.

    Attributes:
        defences: physical, special; with stages. `plain_defences`: without.
        defence_mods: physical, special.
        attack, attack_plain: for foul play; with stages and without.
        hp, max_hp: as the seat is told; full_hp: in points, exact or estimated.
        odd: WONDER_GUARD and so on.
    """

    facts: int
    types: tuple[int, int]
    defences: tuple[int, int]
    plain_defences: tuple[int, int]
    defence_mods: tuple[int, int]
    attack: int
    attack_plain: int
    hp: int
    max_hp: int
    full_hp: int
    weight: int
    speed: int
    odd: int
    guards: tuple[PairRule, ...]
