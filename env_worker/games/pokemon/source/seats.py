"""The seats of a battle.

`PolicySeat`: a policy's, its decisions encoded by the simulator host. `ScriptedSeat`: a scripted player's, which reads
the battle in this process. `OwnPlayerSeat`: a player of the user's own, in a process of its own. `HostedBotSeat`: a
bot's, played by the simulator host.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from simul.common.protocol.decisions import Decision
from simul.common.protocol.messages import ABORTED, NO_LABEL, RECORD, TERMINATED, TRUNCATED
from simul.env_worker.games.pokemon.host.backend import BattleBackend, Play
from simul.env_worker.games.pokemon.host.host_messages import BattleEnd, SeatRecord, SeatRow
from simul.env_worker.games.pokemon.opponents.player_keeper import PlayerAnswer, PlayerKeeper
from simul.env_worker.games.pokemon.opponents.random_choice import Request, random_choice
from simul.env_worker.games.pokemon.opponents.scripted import ScriptedChoice, ScriptedPlayer
from simul.env_worker.games.pokemon.opponents.stock_battle import StockReader
from simul.env_worker.games.pokemon.source.own_seat import OwnSeat
from simul.env_worker.games.pokemon.source.rewards import PARTS, RewardMeter, RewardWeights


class PolicySeat:
    """A policy's: each row of the host is a complete decision. `seat` is 0 (p1) or 1 (p2).

    With an observation or a reward of the user's (`own`) each row is preceded by its lines and request, which `own` has
    read; what its code raises is an OwnCodeError.

    Attributes:
        waiting: True = the action of (step, attempt) is awaited.
        step: number of the current decision, -1 before the first.
        turn: the latest turn that it knows of.
        redo: True = the simulator refused the last action; the next decision repeats its step.
        request_number: the simulator's number of the open request.
    """

    def __init__(
        self, env: int, seat: int, episode: int, policy: str, flags: int, weights: RewardWeights,
        own: OwnSeat | None = None, labels: int = 0,
    ) -> None:  # fmt: skip
        """`labels`: how many the game's spec declares; decisions have them where the session is recorded."""
        self.env, self.seat, self.episode = env, seat, episode
        self.policy, self.flags = policy, flags
        self.rewards = RewardMeter(weights)
        self.own = own
        self.waiting = False
        self.redo = False
        self.step = -1
        self.turn = 0
        self.request_number = 0
        self._attempt = 0
        self._row: SeatRow | None = None
        self._observation: NDArray[Any] | None = None  # of the row
        self._paid = False  # True = the last row's reward was in a decision that was withdrawn
        self._labels = labels if flags & RECORD else 0
        self._withdrawn_label: tuple[int, ...] = ()

    @property
    def row(self) -> NDArray[Any] | None:
        """float16 [D], the built-in observation of the current decision; None before the first."""
        return None if self._row is None else self._row.observation

    @property
    def paid(self) -> float:
        """All rewards so far."""
        return sum(self.rewards.parts) + (0.0 if self.own is None else self.own.paid)

    def reward_figures(self) -> dict[str, float]:
        """With a reward of the user's: each part that paid anything, and that one, for the curves."""
        if self.own is None or not self.own.reward_name:
            return {}
        parts = {name: value for name, value in zip(PARTS, self.rewards.parts) if value}
        return {f"reward_{name}": value for name, value in (*parts.items(), (self.own.reward_name, self.own.paid))}

    def answers(self, step: int, attempt: int) -> bool:
        """Whether (step, attempt) is the one that is awaited."""
        return self.waiting and self.step == step and self._attempt == attempt

    def decide(self, row: SeatRow) -> Decision:
        """The decision that a row asks for."""
        self._row = row
        self._observation = row.observation if self.own is None else self.own.observe(row.observation)
        self.turn = row.turn
        self.request_number = row.request_number
        reward = 0.0
        label: tuple[int, ...] = ()
        if self.redo:
            self._attempt += 1
        else:
            self.step += 1
            self._attempt = 0
            reward = self._advance(row)
            label = self._label(row.label)
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
            observation=self._observation,
            mask=row.mask,
            policy=self.policy,
            label=label,
        )

    def answer(self, backend: BattleBackend, battle: int, action: int) -> bool:
        """Send an action to the simulator; False if it is not among the legal ones."""
        if self._row is None or not 0 <= action < len(self._row.mask) or not self._row.mask[action]:
            return False
        self.waiting = False
        backend.act(battle, self.seat, self.request_number, action)
        return True

    def terminated(self, outcome: int, end: BattleEnd) -> Decision | None:
        """The end of a battle that was played out; outcome: 1 won, 0 tied, -1 lost."""
        if self.step < 0:
            return None
        before = list(self.rewards.parts)
        reward = self.rewards.finish(outcome, end.facts(self.seat))
        if self.own is not None:
            reward += self.own.finish(outcome, self.rewards.gained(before))
        return self._end(TERMINATED, reward, self._label(end.labels[self.seat]), outcome)

    def aborted(self) -> Decision | None:
        """The end of an aborted battle; None before the first step."""
        return self._end(ABORTED, 0.0) if self.step >= 0 else None

    def truncated(self) -> Decision | None:
        """The end at the turn limit, with the final observation; replaces a decision made from the same row."""
        row = self._row
        if self.step < 0 or row is None:
            return None
        reward = 0.0 if self._paid else self.rewards.advance(row.facts)
        end = self._end(TRUNCATED, reward, self._withdrawn_label)
        end.observation, end.mask = self._observation, row.mask
        return end

    def withdraw(self, decision: Decision) -> float:
        """Take back a decision that was made but not sent; returns the reward it carried."""
        self.waiting = False
        self._withdrawn_label = decision.label
        if decision.attempt == 0:
            self.step -= 1
            self._paid = True
        return decision.reward

    def _advance(self, row: SeatRow) -> float:
        """What the seat has earned since its last decision."""
        if self.own is None:
            return self.rewards.advance(row.facts)
        before = list(self.rewards.parts)
        reward = self.rewards.advance(row.facts)
        if self.step > 0:
            return reward + self.own.reward(self.rewards.gained(before))
        self.own.begin()
        return reward

    def _label(self, told: Sequence[int]) -> tuple[int, ...]:
        """For the server: what the opponent did at the last step; empty where nothing is known."""
        label = tuple(told[: self._labels])
        return label if any(each != NO_LABEL for each in label) else ()

    def _end(self, kind: int, reward: float, label: tuple[int, ...] = (), outcome: int | None = None) -> Decision:
        self.waiting = False
        return Decision(
            env=self.env,
            seat=self.seat,
            episode=self.episode,
            step=self.step + 1,
            kind=kind,
            reward=reward,
            policy=self.policy,
            label=label,
            outcome=outcome,
        )


class HostedBotSeat:
    """A seat that a bot plays inside the simulator host: only the end of the battle is reported.

    Attributes:
        play: the bot's name there, and the seed of what it draws.
    """

    turn = 0

    def __init__(self, seat: int, play: Play) -> None:
        self.seat = seat
        self.play = play


class OwnPlayerSeat:
    """A seat that a player of the user's own answers, from its process.

    Attributes:
        choice: the last one, in the simulator's words.
        parse_errors: of its battle, by event.
    """

    def __init__(self, seat: int, keeper: PlayerKeeper, seed: int) -> None:
        self.seat = seat
        self.keeper = keeper
        self.turn = 0
        self.choice = ""
        self.parse_errors: dict[str, int] = {}
        self._seed = seed
        self._asked = 0

    def ask(self, record: SeatRecord) -> None:
        """Pass on a request; the keeper's `poll` returns the answer."""
        self._asked += 1
        self.keeper.ask(record, self._seed + self._asked)

    def take(self, answer: PlayerAnswer) -> None:
        """The answer has come."""
        self.turn, self.choice = answer.turn, answer.choice
        self.parse_errors = answer.parse_errors


class ScriptedSeat:
    """A seat that a scripted player answers, inside this process."""

    def __init__(self, seat: int, battle: StockReader, player: ScriptedPlayer, seed: int) -> None:
        self.seat = seat
        self.battle = battle
        self.request_number = 0
        self.turn = 0
        self._player = player
        self._seed = seed
        self._answers = 0
        self._request: Request = {}
        self._replaced = False  # True = the open request has been answered by a random choice

    def answer(self, request_number: int, lines: str, request: Request) -> ScriptedChoice:
        """The player's choice, after the lines before the request."""
        self.request_number, self._request = request_number, request
        self.battle.feed(lines)
        self._answers += 1
        choice = self._player.choose(self.battle, request, self._seed + self._answers)
        self.turn = self.battle._turn
        self._replaced = bool(choice.failure)
        return choice

    def answer_again(self) -> ScriptedChoice:
        """In place of a choice that the simulator called invalid: a random legal one; the second time `default`."""
        if self._replaced:
            return ScriptedChoice("default", defaulted=True)
        self._replaced = True
        return ScriptedChoice(random_choice(self._request, random.Random(self._seed + self._answers)))
