"""A policy's seat in a battle: its steps, its rewards, its end."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simul.common.protocol.decisions import Decision
from simul.common.protocol.messages import ABORTED, TERMINATED, TRUNCATED
from simul.env_worker.games.pokemon.simulator.battle_host import BattleHost
from simul.env_worker.games.pokemon.simulator.host_messages import SimEnd
from simul.env_worker.games.pokemon.source.rewards import Facts, RewardMeter, RewardWeights

Sight = tuple[NDArray[np.float16], NDArray[np.uint8], Facts]


class PolicySeat:
    """What every policy's seat has: its steps, its rewards, its end. `seat` is 0 (p1) or 1 (p2).

    Attributes:
        waiting: True = an action is owed for (step, attempt).
        step: number of the current decision, -1 before the first.
        turn: the latest turn it has heard of.
        redo: True = the simulator refused the last action; the next decision repeats its step.
        request_number: the simulator's number of the open request.
    """

    scripted = False

    def __init__(self, env: int, seat: int, episode: int, policy: str, flags: int, weights: RewardWeights) -> None:
        self.env, self.seat, self.episode = env, seat, episode
        self.policy, self.flags = policy, flags
        self.rewards = RewardMeter(weights)
        self.waiting = False
        self.redo = False
        self.step = -1
        self.turn = 0
        self.request_number = 0
        self._attempt = 0
        self._paid = False  # True = the reward of the last sight went with a decision that was taken back

    def answers(self, step: int, attempt: int) -> bool:
        """Whether an action of (step, attempt) is the one that is owed."""
        return self.waiting and self.step == step and self._attempt == attempt

    def answer(self, host: BattleHost, battle: int, action: int) -> bool:
        """Send an action to the simulator; False if it is not among the legal ones."""
        raise NotImplementedError

    def follow_up(self) -> Decision | None:
        """The next decision of the same request, where one answer is not all that it asks for."""
        return None

    def terminated(self, outcome: int, end: SimEnd) -> Decision | None:
        """The end of a battle that was played out; outcome: 1 won, 0 tied, -1 lost."""
        return self._end(TERMINATED, self.rewards.finish(outcome, self._final(end))) if self.step >= 0 else None

    def aborted(self) -> Decision | None:
        """The end of a battle that teaches nothing."""
        return self._end(ABORTED, 0.0) if self.step >= 0 else None

    def truncated(self) -> Decision | None:
        """The end at the turn limit, with the final observation; replaces an open decision of this very moment."""
        seen = self._last_sight()
        if self.step < 0 or seen is None:
            return None
        observation, mask, facts = seen
        end = self._end(TRUNCATED, 0.0 if self._paid else self.rewards.advance(facts))
        end.observation, end.mask = observation, mask
        return end

    def withdraw(self, decision: Decision) -> float:
        """Take back a decision that was made but not sent; returns the reward it carried."""
        self.waiting = False
        if decision.attempt == 0:
            self.step -= 1
            self._paid = True
        return decision.reward

    def _last_sight(self) -> Sight | None:
        """Observation, mask and facts at the last request; None before the first."""
        raise NotImplementedError

    def _final(self, end: SimEnd) -> Facts | None:
        """Where the battle ended for this seat, None where nobody counts."""
        raise NotImplementedError

    def _decision(self, observation: NDArray[np.float16], mask: NDArray[np.uint8], facts: Facts) -> Decision:
        reward = 0.0
        if self.redo:
            self._attempt += 1
        else:
            self.step += 1
            self._attempt = 0
            reward = self.rewards.advance(facts)
        self.redo = False
        self.waiting = True
        return Decision(
            env=self.env,
            seat=self.seat,
            episode=self.episode,
            step=self.step,
            attempt=self._attempt,
            flags=self.flags if self.step == 0 else 0,
            reward=reward,
            observation=observation,
            mask=mask,
            policy=self.policy,
        )

    def _end(self, kind: int, reward: float) -> Decision:
        self.waiting = False
        return Decision(
            env=self.env,
            seat=self.seat,
            episode=self.episode,
            step=self.step + 1,
            kind=kind,
            reward=reward,
            policy=self.policy,
        )
