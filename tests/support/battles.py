"""A PokemonSource played by random legal actions, every decision held against the contract."""

import random
import select
import time
from collections import Counter

import numpy as np

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.config.schema import OpponentsConfig
from simul.common.protocol.decisions import Action, Decision
from simul.common.protocol.messages import DECISION, START
from simul.env_worker.games.pokemon.source.source import PokemonSource


def make_source(config: PokemonConfig | None = None, opponents: OpponentsConfig | None = None, **more) -> PokemonSource:
    options = {"envs": 8, "seed": 5, "index": 0, **more}
    return PokemonSource(config or PokemonConfig(), opponents or OpponentsConfig(), **options)


class Table:
    """Plays random legal actions and checks the contract of every decision it is given."""

    def __init__(self, source: PokemonSource) -> None:
        self.source = source
        self.open: dict[tuple[int, int, int], Decision] = {}
        self.ends: dict[tuple[int, int, int], Decision] = {}
        self.starts: list[Decision] = []
        self.rewards: Counter = Counter()
        self.decisions = 0

    def turn(self, answer: bool = True) -> list[Decision]:
        decisions = self.source.poll()
        actions = [action for decision in decisions if (action := self.take(decision)) is not None]
        if answer:
            self.source.act(actions)
        if not decisions:
            select.select(self.source.files(), [], [], 0.05)
        return decisions

    def take(self, decision: Decision) -> Action | None:
        key = (decision.env, decision.seat, decision.episode)
        last = self.open.get(key)
        assert key not in self.ends, "nothing follows an end"
        self.rewards[key] += decision.reward
        if decision.kind != DECISION:
            assert last is not None
            assert decision.step == last.step + 1
            assert decision.attempt == 0
            self.ends[key] = decision
            return None
        self.decisions += 1
        if decision.attempt:
            assert (decision.step, decision.attempt) == (last.step, last.attempt + 1)
            assert decision.reward == 0.0
        else:
            assert decision.step == (last.step + 1 if last is not None else 0)
        assert bool(decision.flags & START) == (decision.step == 0)
        if decision.step == 0 and decision.attempt == 0:
            self.starts.append(decision)
        assert decision.observation.shape == (self.source.spec.observation_size,)
        assert decision.mask.shape == (self.source.spec.num_actions,)
        assert np.isfinite(decision.observation).all()
        legal = np.flatnonzero(decision.mask)
        self.open[key] = decision
        rng = random.Random(repr((key, decision.step, decision.attempt)))
        action = int(rng.choice(list(legal)))
        return Action(*key, decision.step, decision.attempt, action, 0.0, 0.0, 0)

    def play(self, seconds: float = 250.0) -> None:
        deadline = time.monotonic() + seconds
        while not self.source.idle():
            assert time.monotonic() < deadline
            self.turn()


def check_accounts(metrics: dict) -> None:
    episodes = metrics["episodes"]
    assert episodes["started"] == episodes["finished"] + sum(episodes["aborted"].values()) + episodes["alive"]


def seated(source: PokemonSource) -> tuple[Table, dict]:
    """Who sat at a source that plays its episodes to the end, and its metrics."""
    source.start()
    try:
        table = Table(source)
        table.play()
        return table, source.metrics()
    finally:
        source.close()


def played(source: PokemonSource) -> tuple[dict[tuple, bytes], dict]:
    """Every observation of a source that plays its episodes to the end, and its metrics."""
    source.start()
    rows = {}
    try:
        table = Table(source)
        while not source.idle():
            for decision in table.turn():
                if decision.observation is not None:
                    key = (decision.env, decision.seat, decision.episode, decision.step, decision.attempt)
                    rows[key] = decision.observation.tobytes()
        metrics = source.metrics()
    finally:
        source.close()
    return rows, metrics
