"""PettingZoo environments for tests: agents that leave early, simultaneous ends, masks in info."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.utils import EzPickle
from pettingzoo import AECEnv, ParallelEnv


class Leaving(ParallelEnv):
    """Agent i leaves after i + 1 steps and earns 1 a step. `cut`: from this agent on they are truncated, not ended."""

    metadata: dict[str, Any] = {"name": "leaving_v0"}

    def __init__(self, count: int = 3, cut: int = 99) -> None:
        self.possible_agents = [f"agent_{i}" for i in range(count)]
        self.cut = cut

    def observation_space(self, agent: str) -> spaces.Space:
        return spaces.Box(0, 100, (2,), np.float32)

    def action_space(self, agent: str) -> spaces.Space:
        return spaces.Discrete(2 + int(agent[-1]), start=1)

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[dict, dict]:
        self.agents, self.steps = list(self.possible_agents), 0
        return self.seen(), self.infos()

    def step(self, actions: dict) -> tuple[dict, dict, dict, dict, dict]:
        assert set(actions) == set(self.agents)
        assert all(self.action_space(agent).contains(action) for agent, action in actions.items())
        self.steps += 1
        gone = {agent: int(agent[-1]) < self.steps for agent in self.agents}
        cut = {agent: left and int(agent[-1]) >= self.cut for agent, left in gone.items()}
        ended = {agent: left and not cut[agent] for agent, left in gone.items()}
        seen, infos = self.seen(), self.infos()
        rewards = dict.fromkeys(self.agents, 1.0)
        self.agents = [agent for agent in self.agents if not gone[agent]]
        return seen, rewards, ended, cut, infos

    def seen(self) -> dict:
        return {agent: np.array([self.steps, int(agent[-1])], np.float32) for agent in self.agents}

    def infos(self) -> dict:
        return {agent: {"action_mask": np.array([1] + [0] * (1 + int(agent[-1])))} for agent in self.agents}


class Turns(AECEnv):
    """Three agents in turn; the middle one terminates after its first step, the others after their third.

    An agent that acts pays 1 to each other agent that is still there.
    """

    metadata: dict[str, Any] = {"name": "turns_v0"}

    def __init__(self, actions: Any = None) -> None:
        super().__init__()
        self.possible_agents = ["a", "b", "c"]
        self.actions = actions or spaces.Discrete(2)

    def observation_space(self, agent: str) -> spaces.Space:
        return spaces.Dict({"observation": spaces.Box(0, 9, (3,), np.float32), "action_mask": spaces.MultiBinary(2)})

    def action_space(self, agent: str) -> spaces.Space:
        return self.actions

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {} for agent in self.agents}
        self.steps = dict.fromkeys(self.agents, 0)
        self.agent_selection = "a"

    def observe(self, agent: str) -> dict:
        steps = np.array([self.steps[each] for each in self.possible_agents], np.float32)
        return {"observation": steps, "action_mask": np.array([1, self.steps[agent] % 2], np.int8)}

    def step(self, action: Any) -> None:
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[agent] = 0
        self.steps[agent] += 1
        self.rewards = {each: float(each != agent and not self.terminations[each]) for each in self.agents}
        if self.steps[agent] == (1 if agent == "b" else 3):
            self.terminations[agent] = True
        living = [each for each in self.agents if not self.terminations[each]]
        later = [each for each in living if each > agent]
        self.agent_selection = (later or living or [agent])[0]
        self._accumulate_rewards()
        self._deads_step_first()


class Dice(ParallelEnv, EzPickle):
    """Two agents see a die each round, for three rounds. A deep copy of it is built anew, as of most environments.

    `seeded`: reset's seed determines the dice; else no two environments throw alike.
    """

    metadata: dict[str, Any] = {"name": "dice_v0"}
    possible_agents = ["a", "b"]
    built = itertools.count()

    def __init__(self, seeded: bool = True) -> None:
        EzPickle.__init__(self, seeded)
        self.seeded, self.number = seeded, next(self.built)

    def observation_space(self, agent: str) -> spaces.Space:
        return spaces.Box(0, 1, (1,), np.float64)

    def action_space(self, agent: str) -> spaces.Space:
        return spaces.Discrete(3)

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[dict, dict]:
        self.agents, self.rounds = list(self.possible_agents), 0
        self.draw = np.random.default_rng(seed if self.seeded else self.number)
        return self.seen(), {agent: {} for agent in self.agents}

    def step(self, actions: dict) -> tuple[dict, dict, dict, dict, dict]:
        self.rounds += 1
        seen, never, over = self.seen(), dict.fromkeys(self.agents, False), self.rounds == 3
        rewards = {agent: float(action) for agent, action in actions.items()}
        ends, infos = dict.fromkeys(self.agents, over), {agent: {} for agent in self.agents}
        self.agents = [] if over else self.agents
        return seen, rewards, ends, never, infos

    def seen(self) -> dict:
        return {agent: self.draw.random(1) for agent in self.agents}
