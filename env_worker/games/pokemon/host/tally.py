"""What rewards are made of, as the host tells it: the standing, and counts of events (node/follow/tally.mjs)."""

from __future__ import annotations

from typing import NamedTuple


class Tally(NamedTuple):
    """Since the battle's start: own moves that failed or met an immunity, own voluntary switches, Pokemon fainted."""

    fails: int = 0
    switches: int = 0
    own_fainted: int = 0
    foe_fainted: int = 0


NO_TALLY = Tally()


Standing = tuple[float, float, float, float]  # own alive, foe alive, own hp sum, foe hp sum


class RewardFacts(NamedTuple):
    """Inputs of reward shaping, as the seat knows them; `tally` is all zeros where it is not counted."""

    standing: Standing
    turn: int
    tally: Tally = NO_TALLY
