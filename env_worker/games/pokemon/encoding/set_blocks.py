"""The blocks `set.*`: what each foe may still have. Written only when something they depend on has changed."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from poke_env.battle.pokemon import Pokemon

from simul.env_worker.games.pokemon.battle_view.set_knowledge import possibilities
from simul.env_worker.games.pokemon.encoding import layout
from simul.env_worker.games.pokemon.encoding.pokemon_features import HALF
from simul.env_worker.games.pokemon.encoding.vocabulary import vocabulary

WIDTH = layout.width(layout.POSSIBLE)
_BLOCK = struct.Struct(f"<{WIDTH}e")
_NOBODY = (0.0,) * WIDTH


class SetBlocks:
    """Of one seat; `start`: where they begin in its buffer, in numbers."""

    def __init__(self, buffer: bytearray, gen: int, start: int) -> None:
        self._buffer = buffer
        self._gen = gen
        self._start = start
        self._written: list[tuple[Any, ...]] = [()] * layout.TEAM_SIZE

    def write(self, foes: Sequence[Pokemon]) -> None:
        """`foes` in the order of `foe.*`."""
        abilities = vocabulary().ability
        for index in range(layout.TEAM_SIZE):
            key: tuple[Any, ...] = ()
            if index < len(foes):
                mon = foes[index]
                tera = mon._terastallized_type
                key = (
                    mon._species,
                    mon._level,
                    tuple(mon._moves._base_moves),
                    abilities.get(mon._ability or "", 0),
                    tera._value_ if tera else 0,
                )
            if key == self._written[index]:
                continue
            self._written[index] = key
            numbers = possibilities(self._gen, key[0], mon.base_species, *key[1:]) if key else _NOBODY
            _BLOCK.pack_into(self._buffer, (self._start + index * WIDTH) * HALF, *numbers)
