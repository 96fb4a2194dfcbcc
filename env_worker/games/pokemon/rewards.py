"""Rewards of one seat: the outcome, and optional shaping that leaves the optimum where it is.

Shaping is the difference of a potential, Phi(s') - Phi(s), with Phi = 0 before the first decision and after a
real end (Ng, Harada, Russell 1999, "Policy invariance under reward transformations"; the discount, close to
1, is left out). A truncated game ends at its final state's Phi, because its value bootstraps there.
"""

from __future__ import annotations

from typing import NamedTuple

Standing = tuple[float, float, float, float]  # own alive, foe alive, own hp sum, foe hp sum


class RewardWeights(NamedTuple):
    """What a win, a Pokemon ahead and a full bar of hp ahead are worth."""

    win: float
    faint: float = 0.0
    hp: float = 0.0


class RewardMeter:
    """Rewards of one seat through one battle.

    Attributes:
        parts: reward handed out so far by part: win, faint, hp.
    """

    __slots__ = ("_faint", "_hp", "_weights", "parts")

    def __init__(self, weights: RewardWeights) -> None:
        self._weights = weights
        self._faint = 0.0
        self._hp = 0.0
        self.parts = [0.0, 0.0, 0.0]

    def advance(self, standing: Standing) -> float:
        """Shaping earned since the last call."""
        weights = self._weights
        if not (weights.faint or weights.hp):
            return 0.0
        own_alive, foe_alive, own_hp, foe_hp = standing
        return self._move_to(weights.faint * (own_alive - foe_alive), weights.hp * (own_hp - foe_hp))

    def finish(self, outcome: int) -> float:
        """The last reward of a battle that really ended; outcome: 1 won, 0 tied, -1 lost."""
        win = self._weights.win * outcome
        self.parts[0] += win
        return win + self._move_to(0.0, 0.0)

    def _move_to(self, faint: float, hp: float) -> float:
        gained_faint, gained_hp = faint - self._faint, hp - self._hp
        self._faint, self._hp = faint, hp
        self.parts[1] += gained_faint
        self.parts[2] += gained_hp
        return gained_faint + gained_hp
