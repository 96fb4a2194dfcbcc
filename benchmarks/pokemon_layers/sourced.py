"""Layers that encode: the worker's own source; random actions in the server's place."""

from __future__ import annotations

import random
import select

from simul.common.config.schema import OpponentsConfig, PokemonConfig
from simul.common.protocol.decisions import Action, Decision
from simul.common.protocol.messages import DECISION
from simul.env_worker.games.pokemon.source.source import PokemonSource

WAIT_SEC = 0.2
SELF_PLAY = OpponentsConfig(self_play=1.0)


class SourcedBattles:
    """A source of self-play, or of `opponents`, whose decisions are answered at random within the mask."""

    def __init__(self, config: PokemonConfig, *, envs: int, seed: int, opponents: OpponentsConfig = SELF_PLAY) -> None:
        self.decisions = 0
        self._rng = random.Random(seed)
        self._source = PokemonSource(config, opponents, envs=envs, seed=seed, index=0)
        self._source.start()

    @property
    def pids(self) -> list[int]:
        return list(self._source.metrics()["host_pids"])

    def turn(self) -> None:
        """Once around the worker's loop."""
        decisions = self.poll()
        if decisions:
            self.answer(decisions)
        else:
            select.select(self.files(), [], [], WAIT_SEC)

    def poll(self) -> list[Decision]:
        """What is to be decided, and ends."""
        return self._source.poll()

    def files(self) -> list[int]:
        """Readable when there is more."""
        return self._source.files()

    def answer(self, decisions: list[Decision]) -> int:
        """Answer them all; returns how many asked for it."""
        actions = [self._action(decision) for decision in decisions if decision.kind == DECISION]
        self.decisions += len(actions)
        self._source.act(actions)
        return len(actions)

    def close(self) -> None:
        self._source.close()

    def _action(self, decision: Decision) -> Action:
        assert decision.mask is not None
        legal = decision.mask.nonzero()[0]
        return Action(
            decision.env, decision.seat, decision.episode, decision.step, decision.attempt,
            action=int(legal[int(self._rng.random() * len(legal))]), log_prob=0.0, value=0.0, policy_version=0,
        )  # fmt: skip
