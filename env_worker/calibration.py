"""How well a policy's value predicts the final return: what was expected at each decision beside what came, in bins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from simul.common.protocol.decisions import Action, Decision
from simul.common.protocol.messages import DECISION, START, TERMINATED

BINS = 10  # of the expected return, from -1 to 1


class ValueCalibration:
    """Counts the sessions of one policy that end by the rules of the game; those cut short tell no final return.

    At a decision the expected return is what the session has earned so far and the value of the answer. Where rewards
    shape by a potential, both sums are free of it.
    """

    def __init__(self, policy: str = "learner") -> None:
        self._policy = policy
        self._earned: dict[tuple[int, int, int], float] = {}  # by (env, seat, episode)
        self._expected: dict[tuple[int, int, int], list[float]] = {}
        self._count, self._sum_expected, self._sum_final = ([0.0] * BINS for _ in range(3))

    def take_decisions(self, decisions: Iterable[Decision]) -> None:
        """What is sent: rewards, and ends."""
        for decision in decisions:
            key = (decision.env, decision.seat, decision.episode)
            if decision.kind == DECISION and decision.flags & START and decision.policy == self._policy:
                self._earned[key], self._expected[key] = 0.0, []
            if key not in self._earned:
                continue
            self._earned[key] += decision.reward
            if decision.kind != DECISION:
                self._end(key, counts=decision.kind == TERMINATED)

    def take_actions(self, actions: Iterable[Action]) -> None:
        """What was answered. An end is acknowledged with action -1."""
        for action in actions:
            key = (action.env, action.seat, action.episode)
            if action.action >= 0 and not action.attempt and key in self._earned:
                self._expected[key].append(self._earned[key] + action.value)

    def figures(self) -> Mapping[str, Mapping[str, float]]:
        """`decisions`, and the sums of `expected` and `final` returns, by bin."""
        columns = {"decisions": self._count, "expected": self._sum_expected, "final": self._sum_final}
        return {name: {str(number): value for number, value in enumerate(sums)} for name, sums in columns.items()}

    def _end(self, key: tuple[int, int, int], *, counts: bool) -> None:
        final, expected = self._earned.pop(key), self._expected.pop(key)
        for value in expected if counts else ():
            number = min(max(int((1.0 + value) / 2.0 * BINS), 0), BINS - 1)
            self._count[number] += 1
            self._sum_expected[number] += value
            self._sum_final[number] += final
