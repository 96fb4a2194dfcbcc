"""Decisions of a recorded seat of singles, read by the names of the layout."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simul.env_worker.games.pokemon.battle_view.seat_battle import Request
from simul.env_worker.games.pokemon.encoding.actions import Choices
from simul.env_worker.games.pokemon.tables import layout
from tests.support.pokemon.recorded import RecordedSeat, encoded

SLICES = {part.name: part for part in layout.slices()}
TERA = 22


class Seen(NamedTuple):
    request: Request
    choices: Choices
    row: np.ndarray

    def read(self, name: str) -> list[float]:
        part = SLICES[name]
        return self.row[part.start : part.start + part.size].tolist()

    def one(self, name: str) -> float:
        (value,) = self.read(name)
        return value

    @property
    def legal(self) -> list[int]:
        """Actions, all but those with a terastallization."""
        return [action for action, allowed in enumerate(self.choices.mask[:TERA]) if allowed]

    @property
    def out(self) -> list[int]:
        return [i for i in range(6) if self.one(f"own.{i}.active")]

    @property
    def foe_out(self) -> list[int]:
        return [i for i in range(6) if self.one(f"foe.{i}.active")]


def seen_by(seat: RecordedSeat) -> list[Seen]:
    """One for each request that is no team preview."""
    return [Seen(one.request, one.choices, one.row) for one in encoded(seat)]
