"""Stable ids for everything that has a name: row numbers of the embedding tables.

Built from poke-env's static data of the newest generation (a superset of the older ones), sorted by name.
Row 0 is "unknown or none"; items have a row of their own for "known to hold nothing". Every table stays
below 2048 rows because float16 carries larger integers inexactly.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

from poke_env.battle.pokemon_type import PokemonType
from poke_env.data import GenData, to_id_str

NEWEST_GEN = 9
ITEMS_FILE = Path(__file__).parent / "items.txt"  # Dex.items.all() of the pinned simulator, one id a line
NO_ITEM = "noitem"
PSEUDO_MOVES = ("fight", "recharge")  # requests offer them, the move data does not know them


class Vocabulary(NamedTuple):
    """Name -> row. `sizes` counts row 0 too."""

    species: dict[str, int]
    ability: dict[str, int]
    item: dict[str, int]
    move: dict[str, int]
    sizes: dict[str, int]


@cache
def vocabulary() -> Vocabulary:
    """The tables; read from disk once."""
    data = GenData.from_gen(NEWEST_GEN)
    species = _species_rows(data)
    ability = _rows({to_id_str(name) for entry in data.pokedex.values() for name in entry["abilities"].values()})
    item = _rows({NO_ITEM, *ITEMS_FILE.read_text(encoding="ascii").split()})
    move = _rows({*data.moves, *PSEUDO_MOVES})
    sizes = {
        "species": max(species.values()) + 1,
        "ability": len(ability) + 1,
        "item": len(item) + 1,
        "move": len(move) + 1,
        "type": max(kind.value for kind in PokemonType) + 1,
    }
    return Vocabulary(species, ability, item, move, sizes)


def _rows(names: set[str]) -> dict[str, int]:
    return {name: row for row, name in enumerate(sorted(names - {""}), start=1)}


def _species_rows(data: GenData) -> dict[str, int]:
    """Cosmetic formes share one dex entry and therefore one row."""
    row_of_entry: dict[int, int] = {}
    rows: dict[str, int] = {}
    for name in sorted(data.pokedex):
        rows[name] = row_of_entry.setdefault(id(data.pokedex[name]), len(row_of_entry) + 1)
    return rows
