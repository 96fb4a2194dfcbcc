"""A seat that a policy answers: its view of the battle, its open decision, its rewards."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.decisions import Decision
from common.messages import ABORTED, TERMINATED, TRUNCATED
from env_worker.games.pokemon.actions import Choices, legal_choices
from env_worker.games.pokemon.encoder import SeatEncoder
from env_worker.games.pokemon.rewards import RewardMeter, RewardWeights
from env_worker.games.pokemon.seat_battle import Request, SeatBattle


class PolicySeat:
    """Turns records into decisions and actions into commands. `seat` is 0 (p1) or 1 (p2).

    Attributes:
        waiting: True = an action is owed for (step, attempt).
        step: number of the current decision, -1 before the first.
        redo: True = the simulator refused the last action; the next decision repeats its step.
        request_number: the simulator's number of the open request.
    """

    scripted = False

    def __init__(
        self, env: int, seat: int, episode: int, gen: int, policy: str, flags: int, weights: RewardWeights
    ) -> None:
        self.env, self.seat, self.episode = env, seat, episode
        self.policy, self.flags = policy, flags
        self.battle = SeatBattle(f"p{seat + 1}", gen)
        self.rewards = RewardMeter(weights)
        self.waiting = False
        self.redo = False
        self.step = -1
        self.request_number = 0
        self._attempt = 0
        self._encoder = SeatEncoder(self.battle, gen)
        self._request: Request = {}
        self._choices = Choices()
        self._action = -1

    def decide(self, request_number: int, request: Request) -> Decision:
        """The decision that a request asks for; the seat's lines have been fed before."""
        self.battle.sync(request)
        self.request_number = request_number
        self._request = request
        self._choices = legal_choices(request, self.battle.position)
        return self._decision()

    def refuse(self) -> Decision | None:
        """The simulator calls the last action invalid and the request stays open: ask again without it.

        None if nothing else is legal.
        """
        self.redo = True
        self._choices.mask[self._action] = 0
        return self._decision() if any(self._choices.mask) else None

    def command(self, action: int) -> str | None:
        """The simulator's words for an action, None if it is not among the legal ones."""
        if not 0 <= action < len(self._choices.mask) or not self._choices.mask[action]:
            return None
        self.waiting = False
        self._action = action
        return self._choices.command(action)

    def answers(self, step: int, attempt: int) -> bool:
        """Whether an action of (step, attempt) is the one that is owed."""
        return self.waiting and self.step == step and self._attempt == attempt

    def terminated(self, outcome: int) -> Decision | None:
        """The end of a battle that was played out; outcome: 1 won, 0 tied, -1 lost."""
        return self._end(TERMINATED, self.rewards.finish(outcome)) if self.step >= 0 else None

    def aborted(self) -> Decision | None:
        """The end of a battle that teaches nothing."""
        return self._end(ABORTED, 0.0) if self.step >= 0 else None

    def truncated(self) -> Decision | None:
        """The end at the turn limit, with the final observation; replaces an open decision of this very moment."""
        if self.step < 0 or not self._request:
            return None
        observation = self._encoder.encode(self._request, self._choices)
        end = self._end(TRUNCATED, self.rewards.advance(self._encoder.standing))
        end.observation = observation
        end.mask = np.frombuffer(bytes(self._choices.mask), dtype=np.uint8)
        return end

    def withdraw(self, decision: Decision) -> float:
        """Take back a decision that was made but not sent; returns the reward it carried."""
        self.waiting = False
        if decision.attempt == 0:
            self.step -= 1
        return decision.reward

    def _decision(self) -> Decision:
        observation = self._encoder.encode(self._request, self._choices)
        reward = 0.0
        if self.redo:
            self._attempt += 1
        else:
            self.step += 1
            self._attempt = 0
            reward = self.rewards.advance(self._encoder.standing)
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
            mask=np.frombuffer(bytes(self._choices.mask), dtype=np.uint8),
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


class ScriptedSeat:
    """A seat that one of poke-env's players answers, inside this process."""

    scripted = True

    def __init__(self, seat: int, gen: int, player: Any, seed: int) -> None:
        self.seat = seat
        self.battle = SeatBattle(f"p{seat + 1}", gen)
        self.request_number = 0
        self._player = player
        self._seed = seed
        self._answers = 0

    def answer(self, request_number: int, request: Request) -> tuple[str, bool]:
        """(the command, True if the player fell back on `default`)."""
        self.request_number = request_number
        self.battle.parse_request(request)
        self._answers += 1
        choice = self._player.choose(self.battle, request, self._seed + self._answers)
        return choice.command, choice.defaulted
