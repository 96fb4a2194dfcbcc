"""A Pokemon and the field as the damage formula sees them. Hashable: tables remember what they made of them."""

from __future__ import annotations

from typing import NamedTuple

SUPPRESSED = ""  # an ability or item that is unknown, gone or without effect


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
        down: team mates that have fainted.

    What is unknown is left empty and changes nothing.
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
