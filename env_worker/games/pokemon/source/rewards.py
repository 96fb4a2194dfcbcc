"""Rewards of one seat: the outcome, and optional shaping.

Plain shaping is paid as things happen and kept. Potential-based shaping (Ng, Harada, Russell 1999, "Policy invariance
under reward transformations") is F = discount x Phi(s') - Phi(s), Phi being what plain shaping would have paid since
turn 1, and 0 after a real end: what was paid is taken back there, and the optimal policy does not
change. A truncated game ends at its final state's Phi, because its value bootstraps there.
"""

from __future__ import annotations

from typing import NamedTuple

from simul.common.config.games.pokemon import RewardsConfig
from simul.env_worker.games.pokemon.host.tally import RewardFacts

PARTS = ("win_loss", "knockout", "pokemon_count", "hp_delta", "fail_immune", "switch_penalty", "turn_penalty")
_POKEMON_COUNT = 1  # index in PARTS[1:]


class RewardWeights(NamedTuple):
    """What each part is worth; penalties are subtracted. `discount`: the learner's, for potential-based shaping."""

    win_loss: float = 1.0
    knockout: float = 0.0
    pokemon_count: float = 0.0
    hp_delta: float = 0.0
    fail_immune: float = 0.0
    switch_penalty: float = 0.0
    turn_penalty: float = 0.0
    free_switches: int = 0
    potential_based: bool = True
    discount: float = 1.0

    @property
    def shaping(self) -> tuple[float, ...]:
        """Weights of PARTS[1:]."""
        return self[1 : len(PARTS)]

    @property
    def tally(self) -> int | None:
        """None where no seat's lines need to be counted: no part reads them, nor where a battle ended; else
        `free_switches`."""
        counted = self.knockout or self.fail_immune or self.switch_penalty
        return self.free_switches if counted or (not self.potential_based and any(self.shaping)) else None


def reward_weights(config: RewardsConfig, discount: float) -> RewardWeights:
    """The configured weights."""
    parts = {name: getattr(config, name) for name in PARTS}
    return RewardWeights(
        **parts, free_switches=config.free_switches, potential_based=config.potential_based, discount=discount
    )


class RewardMeter:
    """Rewards of one seat through one battle.

    Attributes:
        parts: reward handed out so far, by PARTS.
    """

    __slots__ = ("_counted", "_discount", "_paid", "_potential_based", "_start", "_win_loss", "parts")

    def __init__(self, weights: RewardWeights) -> None:
        self._win_loss = weights.win_loss
        self._counted = [(part, weight) for part, weight in enumerate(weights.shaping) if weight]  # part of PARTS[1:]
        self._potential_based = weights.potential_based
        self._discount = weights.discount if weights.potential_based else 1.0
        self._start: tuple[float, ...] | None = None
        self._paid = [0.0] * len(self._counted)  # Phi of the last state
        self.parts = [0.0] * len(PARTS)

    def gained(self, before: list[float]) -> dict[str, float]:
        """What each part has paid since `parts` was as `before`."""
        return {name: now - then for name, now, then in zip(PARTS, self.parts, before)}

    def advance(self, facts: RewardFacts) -> float:
        """Shaping earned since the last call; the first one in turn 1 or later sets the start."""
        if not self._counted or facts.turn < 1:  # before it, teams and leads are not settled
            return 0.0
        return self._move_to(self._value(facts, ended=False), self._discount)

    def finish(self, outcome: int, final: RewardFacts | None = None) -> float:
        """The last reward of a battle that really ended.

        Args:
            outcome: 1 won, 0 tied, -1 lost.
            final: what plain shaping ends with; None: where the last decision stood.
        """
        win_loss = self._win_loss * outcome
        self.parts[0] += win_loss
        if not self._counted:
            return win_loss
        if self._potential_based:
            return win_loss + self._move_to([0.0] * len(self._counted), self._discount)
        return win_loss + (self._move_to(self._value(final, ended=True), 1.0) if final is not None else 0.0)

    def _value(self, facts: RewardFacts, *, ended: bool) -> list[float]:
        """What plain shaping has paid by now, by `_counted`; the count of Pokemon is paid at the end only."""
        amounts = _amounts(facts)
        start = self._start = self._start or amounts
        unpaid = -1 if ended or self._potential_based else _POKEMON_COUNT
        return [0.0 if part == unpaid else weight * (amounts[part] - start[part]) for part, weight in self._counted]

    def _move_to(self, value: list[float], discount: float) -> float:
        total = 0.0
        for (part, _), now, then in zip(self._counted, value, self._paid):
            gained = discount * now - then
            self.parts[part + 1] += gained
            total += gained
        self._paid = value
        return total


def _amounts(facts: RewardFacts) -> tuple[float, ...]:
    """By PARTS[1:], in Pokemon, Pokemon, full bars of hp, moves, switches, turns; penalties are negative."""
    own_alive, foe_alive, own_hp, foe_hp = facts.standing
    fails, switches, own_fainted, foe_fainted = facts.tally
    return foe_fainted - own_fainted, own_alive - foe_alive, own_hp - foe_hp, -fails, -switches, -facts.turn
