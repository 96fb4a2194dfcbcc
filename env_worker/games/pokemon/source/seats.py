"""The seats of a battle.

`HostedSeat`: a policy's, its decisions encoded by the simulator host. `ReadingSeat`: a policy's that reads the battle
in this process. `ScriptedSeat`: a scripted player's.
"""

from __future__ import annotations

import random

import numpy as np
from numpy.typing import NDArray

from simul.common.protocol.decisions import Decision
from simul.common.protocol.messages import ABORTED, TERMINATED, TRUNCATED
from simul.common.runtime.metrics import Stages
from simul.env_worker.games.pokemon.battle_view.seat_battle import Request, SeatBattle, SeatView
from simul.env_worker.games.pokemon.encoding.encoder import SeatEncoder
from simul.env_worker.games.pokemon.host.backend import BattleBackend
from simul.env_worker.games.pokemon.host.host_messages import BattleEnd, SeatRow
from simul.env_worker.games.pokemon.host.tally import NO_TALLY, RewardFacts, Standing, TallyKeeper
from simul.env_worker.games.pokemon.opponents.players import SeatPlayer
from simul.env_worker.games.pokemon.opponents.random_choice import random_choice
from simul.env_worker.games.pokemon.opponents.scripted import ScriptedChoice
from simul.env_worker.games.pokemon.opponents.stock_battle import StockReader
from simul.env_worker.games.pokemon.source.request_steps import PreviewSteps, RequestSteps, SingleStep
from simul.env_worker.games.pokemon.source.rewards import RewardMeter, RewardWeights
from simul.env_worker.games.pokemon.tables.layout import PLAIN, Extras

Snapshot = tuple[NDArray[np.float16], NDArray[np.uint8], RewardFacts]


class PolicySeat:
    """Common part of a policy's seats: steps, rewards, end. `seat` is 0 (p1) or 1 (p2).

    Attributes:
        waiting: True = the action of (step, attempt) is awaited.
        step: number of the current decision, -1 before the first.
        turn: the latest turn that it knows of.
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
        self._paid = False  # True = the last snapshot's reward was in a decision that was withdrawn

    def answers(self, step: int, attempt: int) -> bool:
        """Whether (step, attempt) is the one that is awaited."""
        return self.waiting and self.step == step and self._attempt == attempt

    def answer(self, backend: BattleBackend, battle: int, action: int) -> bool:
        """Send an action to the simulator; False if it is not among the legal ones."""
        raise NotImplementedError

    def follow_up(self) -> Decision | None:
        """The next decision of the same request, where it takes several; else None."""
        return None

    def terminated(self, outcome: int, end: BattleEnd) -> Decision | None:
        """The end of a battle that was played out; outcome: 1 won, 0 tied, -1 lost."""
        return self._end(TERMINATED, self.rewards.finish(outcome, self._final(end))) if self.step >= 0 else None

    def aborted(self) -> Decision | None:
        """The end of an aborted battle; None before the first step."""
        return self._end(ABORTED, 0.0) if self.step >= 0 else None

    def truncated(self) -> Decision | None:
        """The end at the turn limit, with the final observation; replaces a decision made from the same snapshot."""
        seen = self._last_snapshot()
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

    def _last_snapshot(self) -> Snapshot | None:
        """Observation, mask and facts at the last request; None before the first."""
        raise NotImplementedError

    def _final(self, end: BattleEnd) -> RewardFacts | None:
        """Where the battle ended for this seat, None where rewards do not need it."""
        raise NotImplementedError

    def _decision(self, observation: NDArray[np.float16], mask: NDArray[np.uint8], facts: RewardFacts) -> Decision:
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


class HostedSeat(PolicySeat):
    """Encoded by the simulator host: each row is a complete decision."""

    def __init__(self, env: int, seat: int, episode: int, policy: str, flags: int, weights: RewardWeights) -> None:
        super().__init__(env, seat, episode, policy, flags, weights)
        self._row: SeatRow | None = None

    def decide(self, row: SeatRow) -> Decision:
        """The decision that a row asks for."""
        self._row = row
        self.turn = row.turn
        self.request_number = row.request_number
        return self._decision(row.observation, row.mask, row.facts)

    def answer(self, backend: BattleBackend, battle: int, action: int) -> bool:
        if self._row is None or not 0 <= action < len(self._row.mask) or not self._row.mask[action]:
            return False
        self.waiting = False
        backend.act(battle, self.seat, self.request_number, action)
        return True

    def _last_snapshot(self) -> Snapshot | None:
        row = self._row
        return None if row is None else (row.observation, row.mask, row.facts)

    def _final(self, end: BattleEnd) -> RewardFacts | None:
        return end.facts(self.seat)


class ReadingSeat(PolicySeat):
    """Reads the battle itself: poke-env's state and the Python encoder."""

    def __init__(
        self,
        env: int,
        seat: int,
        episode: int,
        gen: int,
        policy: str,
        flags: int,
        weights: RewardWeights,
        extras: Extras = PLAIN,
        encoding: Stages | None = None,
    ) -> None:
        """`encoding`: its stage `encode` gets the time that observations take."""
        super().__init__(env, seat, episode, policy, flags, weights)
        self._encoding = encoding or Stages(("encode",))
        self._gen = gen
        self._extras = extras
        self.battle: SeatView = self._make_battle(f"p{seat + 1}")
        self._steps: RequestSteps | None = None
        self._action = -1
        free_switches = weights.tally
        self._tally = None if free_switches is None else TallyKeeper(f"p{seat + 1}", free_switches)

    def read_lines(self, lines: str, request: Request | None) -> None:
        """Read the lines before a request; `request` None: the battle is over."""
        if self._tally is not None:
            self._tally.count_lines(lines, request)
        elif request is None:
            return  # rewards do not need the final state
        self.battle.feed(lines)

    def decide(self, request_number: int, request: Request) -> Decision:
        """The first decision that a request asks for; its lines must have been read before."""
        self.request_number = request_number
        self._steps = self._steps_for(request)
        self.turn = self.battle._turn
        return self._encoded()

    def follow_up(self) -> Decision | None:
        """The next one, where a request takes several."""
        if self._steps is None or self.waiting or self._steps.complete:
            return None
        return self._encoded()

    def refuse(self) -> Decision | None:
        """Ask again without the last action, which the simulator called invalid; the request stays open.

        None if nothing else is legal.
        """
        assert self._steps is not None
        self.redo = True
        self._steps.refuse()
        self._steps.choices.mask[self._action] = 0
        return self._encoded() if any(self._steps.choices.mask) else None

    def answer(self, backend: BattleBackend, battle: int, action: int) -> bool:
        mask = self._steps.choices.mask if self._steps is not None else b""
        if self._steps is None or not 0 <= action < len(mask) or not mask[action]:
            return False
        self.waiting = False
        self._action = action
        command = self._steps.pick(action)
        if command is not None:
            backend.choose(battle, self.seat, self.request_number, command)
        return True

    def _encoded(self) -> Decision:
        """The open decision."""
        assert self._steps is not None
        return self._decision(*self._look(self._steps))

    def _look(self, steps: RequestSteps) -> Snapshot:
        """Observation, mask and facts as they are now."""
        self._encoding.start()
        observation, standing = steps.encode()
        self._encoding.lap("encode")
        return observation, np.frombuffer(bytes(steps.choices.mask), dtype=np.uint8), self._facts(standing)

    def _facts(self, standing: Standing) -> RewardFacts:
        tally = NO_TALLY if self._tally is None else self._tally.tally
        return RewardFacts(standing, self.turn, tally)

    def _final(self, end: BattleEnd) -> RewardFacts | None:
        if self._tally is None:
            return None
        return self._facts(self._survey())._replace(turn=end.turns + 1)

    def _last_snapshot(self) -> Snapshot | None:
        return self._look(self._steps) if self._steps is not None else None

    def _make_battle(self, role: str) -> SeatView:
        battle = SeatBattle(role, self._gen)
        self._encoder = SeatEncoder(battle, self._gen, self._extras)
        return battle

    def _steps_for(self, request: Request) -> RequestSteps:
        if "teamPreview" in request:
            return PreviewSteps(self.battle, self._gen, request, self._extras)
        self.battle.sync(request)
        return SingleStep(request, self.battle, self._encoder)

    def _survey(self) -> Standing:
        """The standing without an observation."""
        self._encoder.survey()
        return self._encoder.standing


class ScriptedSeat:
    """A seat that a scripted player answers, inside this process."""

    scripted = True

    def __init__(self, seat: int, battle: SeatView | StockReader, player: SeatPlayer, seed: int) -> None:
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
