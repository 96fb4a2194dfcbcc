"""Actions as people write them: the move or the Pokemon that an observation says they mean."""

from __future__ import annotations

from functools import cache
from typing import Any

from numpy.typing import NDArray

from simul.common.protocol.specs import GameSpec
from simul.env_worker.games.pokemon.tables.layout import MOVE_SLOTS, TEAM_SIZE
from simul.env_worker.games.pokemon.tables.vocabulary import vocabulary

GIMMICKS = ("", " + mega", " + z", " + dynamax", " + tera")  # as the actions follow each other
TARGETS = (-2, -1, 0, 1, 2)  # of doubles, see node/encoder/double_actions.mjs
FIRST_SWITCH, FIRST_MOVE = 1, 7  # of doubles
SLOTS = "ab"  # left, right


class ActionNames:
    """Names of one format's actions. `spec`: of the built-in observation.

    Singles: `switch to pikachu`, `thunderbolt + tera`. Doubles: `slot a: fakeout at foe b gengar`, and where the right
    slot decides, with what the left one has chosen: `slot a: pass; slot b: switch to pikachu`.
    """

    def __init__(self, spec: GameSpec, doubles: bool) -> None:
        self._doubles = doubles
        self._starts = {part.name: part.start for part in spec.layout}

    def name(self, action: int, row: NDArray[Any] | None) -> str:
        """`row`: [D], the built-in observation of the decision; None: not known, and slots or numbers are named."""
        if self._doubles:
            return str(action) if row is None else self._of_slots(action, row)
        if action < TEAM_SIZE:
            return self._switch(row, action)
        gimmick, slot = divmod(action - TEAM_SIZE, MOVE_SLOTS)
        return f"{self._move(row, slot)}{GIMMICKS[gimmick]}"

    def _of_slots(self, action: int, row: NDArray[Any]) -> str:
        right = int(self._number(row, "global.right"))
        mine = f"slot {SLOTS[right]}: {self._of_slot(action, row, right)}"
        return f"slot a: {self._first(row)}; {mine}" if right else mine

    def _of_slot(self, action: int, row: NDArray[Any], right: int) -> str:
        if action < FIRST_SWITCH:
            return "pass"
        if action < FIRST_MOVE:
            return self._switch(row, action - FIRST_SWITCH)
        form, target = divmod(action - FIRST_MOVE, len(TARGETS))
        gimmick, slot = divmod(form, MOVE_SLOTS)
        return f"{self._move(row, slot)}{GIMMICKS[gimmick]}{self._aim(row, right, TARGETS[target])}"

    def _first(self, row: NDArray[Any]) -> str:
        """What the left slot has chosen."""
        member = self._marked(row, "global.first.switch", TEAM_SIZE)
        target = self._marked(row, "global.first.target", len(TARGETS))
        if member is not None:
            return self._switch(row, member)
        if target is None:
            return "pass"
        gimmick = self._marked(row, "global.first.gimmick", len(GIMMICKS) - 1)
        move = self._named(row, "global.first.move", "move") or "a move"
        return f"{move}{GIMMICKS[0 if gimmick is None else gimmick + 1]}{self._aim(row, 0, TARGETS[target])}"

    def _aim(self, row: NDArray[Any], right: int, target: int) -> str:
        """Whom a move of the left or right slot is aimed at; empty where it finds its target itself."""
        if not target:
            return ""
        slot = abs(target) - 1
        if target < 0 and slot == right:
            return " at itself"
        side, words = ("foe", f" at foe {SLOTS[slot]}") if target > 0 else ("own", " at partner")
        standing = [i for i in range(TEAM_SIZE) if self._marked(row, f"{side}.{i}.slot", 2) == slot]
        species = self._named(row, f"{side}.{standing[0]}.species", "species") if standing else ""
        return f"{words} {species}".rstrip()

    def _switch(self, row: NDArray[Any] | None, member: int) -> str:
        verb = "switch to"
        if row is not None and self._number(row, "global.preview"):
            verb = "pick"
        elif row is not None and self._number(row, "global.reviving"):
            verb = "revive"
        return f"{verb} {self._named(row, f'own.{member}.species', 'species') or member + 1}"

    def _move(self, row: NDArray[Any] | None, slot: int) -> str:
        return self._named(row, f"move.{slot}.id", "move") or f"move {slot + 1}"

    def _number(self, row: NDArray[Any], part: str) -> float:
        return float(row[self._starts[part]])

    def _marked(self, row: NDArray[Any], part: str, size: int) -> int | None:
        """Which of the numbers of a slice is not 0, the first one; None: all are."""
        start = self._starts[part]
        return next((place for place, number in enumerate(row[start : start + size]) if number), None)

    def _named(self, row: NDArray[Any] | None, part: str, table: str) -> str:
        return "" if row is None else _names(table).get(int(row[self._starts[part]]), "")


@cache
def _names(table: str) -> dict[int, str]:
    """The first name of each row."""
    rows: dict[str, int] = getattr(vocabulary(), table)
    return {row: name for name, row in reversed(rows.items())}
