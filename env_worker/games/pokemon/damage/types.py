"""What the damage formula reads: facts as bits, fighters, the field, and what is made of an attacker's move and of a
target before the two meet. Plain integers (modifiers in 4096ths), hashable: equal inputs are computed once.
"""

from __future__ import annotations

from typing import NamedTuple

from poke_env.battle.pokemon_type import PokemonType

_MOVE = "physical special contact punch bite sound slicing pulse bullet recoil secondary wind early meets_screens"
_USER = "user_pinched user_weak user_status user_burned user_poisoned user_grounded retyped"
_TARGET = (
    "target_full target_half target_status target_poisoned target_asleep target_paralyzed target_grounded target_item"
)
_PAIR = "super_effective resisted slower faster technical"  # slower: the user, than the target
_FIELD = "sun rain sand snow electric_terrain grassy_terrain misty_terrain psychic_terrain"
FIRST_NAMED = 20  # the types, with ids 1 to 20, come first


def type_fact(kind: int) -> int:
    """The bit of a type's id; 0 for no type."""
    return (1 << kind) >> 1


NAMES = " ".join((_MOVE, _USER, _TARGET, _PAIR, _FIELD)).split()
FACTS = {name: 1 << (FIRST_NAMED + place) for place, name in enumerate(NAMES)} | {
    kind.name.lower(): type_fact(kind.value) for kind in PokemonType
}
PAIR_FACTS = sum(FACTS[name] for name in (_TARGET + " " + _PAIR).split())
LOW_BITS = 31  # the host keeps two words


def facts(names: str) -> int:
    """The bits of space-separated names; KeyError where one is unknown."""
    mask = 0
    for name in names.split():
        mask |= FACTS[name]
    return mask


def words(mask: int) -> tuple[int, int]:
    """A mask as the host's two words of 31 bits."""
    return mask & ((1 << LOW_BITS) - 1), mask >> LOW_BITS


PREPARING = "PREPARING"  # the effect of having begun a move that takes two turns
SUPPRESSED = ""  # an ability or item that is unknown, gone or without effect


class Body(NamedTuple):
    """What a Pokemon's damage, dealt and taken, depends on.

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


class Fighter(NamedTuple):
    """One Pokemon at one moment, as far as it is known.

    Attributes:
        stats: hp, atk, def, spa, spd, spe without stages.
        types: ids of its types now; base_types: without terastallization.
        tera: type it may turn into, or has turned into; 0 where none is known.
        hp, max_hp: as the seat is told (a foe's in hundredths or 48ths).
        status: `BRN` and so on, empty for none.
        stages: atk, def, spa, spd, spe.
        effects: names of the effects in `rules` that it is under, sorted.
        down: number of fainted team mates.

    Unknown values are empty and have no effect.
    """

    species: str
    level: int
    stats: tuple[int, ...]
    types: tuple[int, ...]
    base_types: tuple[int, ...]
    ability: str = SUPPRESSED
    item: str = SUPPRESSED
    tera: int = 0
    terastallized: bool = False
    hp: int = 100
    max_hp: int = 100
    status: str = ""
    stages: tuple[int, ...] = (0, 0, 0, 0, 0)
    effects: tuple[str, ...] = ()
    down: int = 0


class Surroundings(NamedTuple):
    """`facts`: weather and terrain, as bits; `harsh`: 1 = desolate land, 2 = primordial sea, 3 = strong winds."""

    facts: int = 0
    harsh: int = 0
    gravity: bool = False


NO_SURROUNDINGS = Surroundings()


ONE = 4096
MOST_WAITING = 3
MOST_GUARDS = 5
# Flags of a target with special rules
WONDER_GUARD, TERA_SHELL, TAR_SHOT, STRONG_WINDS, TERASTALLIZED, UNAWARE = (1 << place for place in range(6))


class PairRule(NamedTuple):
    """A rule of user or target that depends on both. `mask`: facts that must hold."""

    stage: int
    mask: int
    mod: int


class AttackerMove(NamedTuple):
    """One move of one user: everything that does not depend on the target.

    Attributes:
        facts: of the move, as far as any target's rules ask for them.
        attack_plain: without stages, for a target with Unaware.
        mods: by stage (`rules.STAGE_NAMES`).
        hp, weight, speed: the user's, 0 where nothing asks for them.
        lifted: True = a weak attack that terastallizing lifts to a power of 60.
        mold: True = the target's ability is ignored.
        hit_counts: mean and variance of how often it hits.
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
    hit_counts: tuple[float, float]


class Target(NamedTuple):
    """One Pokemon as a target: everything that does not depend on the attacker's move.

    Attributes:
        types: three, 0 for none.
        defences: physical, special; with stages. `plain_defences`: without.
        defence_mods: physical, special.
        attack, attack_plain: for foul play; with stages and without.
        hp, max_hp: as the seat is told; full_hp: in points, exact or estimated.
        odd: WONDER_GUARD and so on.
    """

    facts: int
    types: tuple[int, ...]
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
