"""Actions as people write them: the move or the Pokemon that an observation says they mean."""

from __future__ import annotations

from functools import cache
from typing import Any

from numpy.typing import NDArray

from simul.common.protocol.specs import GameSpec
from simul.env_worker.games.pokemon.tables.layout import MOVE_SLOTS, TEAM_SIZE
from simul.env_worker.games.pokemon.tables.vocabulary import vocabulary

GIMMICKS = ("", " + mega", " + z", " + dynamax", " + tera")  # as the actions follow each other


class ActionNames:
    """Of singles: switches to own.i, then move.k with each gimmick. Actions of doubles are named by their numbers."""

    def __init__(self, spec: GameSpec, doubles: bool) -> None:
        self._doubles = doubles
        self._starts = {part.name: part.start for part in spec.layout}

    def name(self, action: int, observation: NDArray[Any] | None) -> str:
        """`observation`: [D] of the decision; None: not known, and slots are named."""
        if self._doubles:
            return str(action)
        if action < TEAM_SIZE:
            return f"switch to {self._named(observation, f'own.{action}.species', 'species') or action + 1}"
        gimmick, slot = divmod(action - TEAM_SIZE, MOVE_SLOTS)
        move = self._named(observation, f"move.{slot}.id", "move") or f"move {slot + 1}"
        return f"{move}{GIMMICKS[gimmick]}"

    def _named(self, observation: NDArray[Any] | None, part: str, table: str) -> str:
        if observation is None or part not in self._starts:
            return ""
        return _names(table).get(int(observation[self._starts[part]]), "")


@cache
def _names(table: str) -> dict[int, str]:
    """The first name of each row."""
    rows: dict[str, int] = getattr(vocabulary(), table)
    return {row: name for name, row in reversed(rows.items())}
