"""How well a policy's value predicts who wins: what was expected at each decision beside the outcome, in bins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from simul.common.protocol.decisions import Action, Decision
from simul.common.protocol.messages import DECISION, LEARNER_POLICY, START, TERMINATED

BINS = 10  # of the expected return, from -1 to 1
MOST_APART = 0.25  # of return and outcome, where rewards are the outcome and shaping by a potential


class ValueCalibration:
    """Counts the sessions of one policy that end by the rules of the game; those cut short have no outcome.

    At a decision the expected return is what the session has earned so far and the value of the answer. Shaping by a
    potential F = discount x Phi(s') - Phi(s) cancels in that sum but for (1 - discount) x Phi of the states so far.
    """

    def __init__(self) -> None:
        self._earned: dict[tuple[int, int, int], float] = {}  # by (env, seat, episode)
        self._expected: dict[tuple[int, int, int], list[float]] = {}
        self._count, self._sum_expected, self._sum_won = ([0.0] * BINS for _ in range(3))
        self._other_returns = 0

    def take_decisions(self, decisions: Iterable[Decision]) -> None:
        """What is sent: rewards, and ends."""
        for decision in decisions:
            key = (decision.env, decision.seat, decision.episode)
            if decision.kind == DECISION and decision.flags & START and decision.policy == LEARNER_POLICY:
                self._earned[key], self._expected[key] = 0.0, []
            if key not in self._earned:
                continue
            self._earned[key] += decision.reward
            if decision.kind != DECISION:
                self._end(key, decision.outcome if decision.kind == TERMINATED else None)

    def take_actions(self, actions: Iterable[Action]) -> None:
        """What was answered. An end is acknowledged with action -1."""
        for action in actions:
            key = (action.env, action.seat, action.episode)
            if action.action >= 0 and not action.attempt and key in self._earned:
                self._expected[key].append(self._earned[key] + action.value)

    def figures(self) -> Mapping[str, Any]:
        """By bin: `decisions`, the sum of `expected` returns, and how many of the decisions' games were `won`.

        A tie is half a game won. `other_returns`: sessions whose returns were not about their outcomes.
        """
        columns = {"decisions": self._count, "expected": self._sum_expected, "won": self._sum_won}
        by_bin = {name: {str(number): value for number, value in enumerate(sums)} for name, sums in columns.items()}
        return {**by_bin, "other_returns": self._other_returns}

    def _end(self, key: tuple[int, int, int], outcome: int | None) -> None:
        final, expected = self._earned.pop(key), self._expected.pop(key)
        if outcome is None:
            return
        self._other_returns += abs(final - outcome) > MOST_APART
        for value in expected:
            number = min(max(int((1.0 + value) / 2.0 * BINS), 0), BINS - 1)
            self._count[number] += 1
            self._sum_expected[number] += value
            self._sum_won[number] += (1 + outcome) / 2
