"""Counts events in a seat's protocol lines that rewards need and the state lacks, as node/follow/tally.mjs does."""

from __future__ import annotations

from typing import Any, NamedTuple

# Lines that end the effect of the last |move| line; a later failure is not counted against that move.
_OTHER_ACTIONS = frozenset({"", "cant", "drag", "switch", "turn", "upkeep"})


class Tally(NamedTuple):
    """Since the battle's start: own moves that failed or met an immunity, own voluntary switches, Pokemon fainted."""

    fails: int = 0
    switches: int = 0
    own_fainted: int = 0
    foe_fainted: int = 0


NO_TALLY = Tally()


class TallyKeeper:
    """Counts for one seat. A switch is voluntary where the seat could have moved instead.

    Args:
        role: p1 or p2.
        free_switches: this many switches in a row are not counted.
    """

    def __init__(self, role: str, free_switches: int) -> None:
        self._role = role
        self._free_switches = free_switches
        self._asked_to_move = False  # by the last request
        self._in_a_row = 0
        self._counts = [0, 0, 0, 0]

    @property
    def tally(self) -> Tally:
        """The counts so far."""
        return Tally._make(self._counts)

    def count_lines(self, lines: str, request: dict[str, Any] | None) -> None:
        """The seat's lines since its last request, and the request that follows them (None: the battle is over)."""
        counts, role = self._counts, self._role
        own_move = failed = False
        switches = 0
        for line in lines.split("\n"):
            event = line.split("|", 3)
            if len(event) < 2:
                continue
            kind, own = event[1], len(event) > 2 and event[2].startswith(role)
            if kind == "move":
                own_move, failed = own, False
            elif kind in ("-fail", "-immune"):
                counts[0] += own_move and not failed
                failed = True
            elif kind == "faint":
                counts[2 if own else 3] += 1
            elif kind in _OTHER_ACTIONS:
                own_move = False
                switches += kind == "switch" and own
        if self._asked_to_move:
            self._switched(switches)
        self._asked_to_move = request is not None and "active" in request

    def _switched(self, switches: int) -> None:
        self._in_a_row = self._in_a_row + switches if switches else 0
        self._counts[1] += min(switches, max(self._in_a_row - self._free_switches, 0))


Standing = tuple[float, float, float, float]  # own alive, foe alive, own hp sum, foe hp sum


class RewardFacts(NamedTuple):
    """Inputs of reward shaping, as the seat knows them; `tally` is all zeros where it is not counted."""

    standing: Standing
    turn: int
    tally: Tally = NO_TALLY
