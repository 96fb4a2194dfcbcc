"""Facts that rules of damage ask for, as bits: of the move, of its user, of the target, of both, of the field."""

from __future__ import annotations

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
