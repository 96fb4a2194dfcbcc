"""PettingZoo environments as TurnGames: AEC, where one agent acts at a time, and parallel, where all act at once."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from simul.common.errors import ConfigError, EnvError
from simul.common.protocol.specs import GameSpec
from simul.env_worker.games.base.board_text import numbered_board
from simul.env_worker.games.base.turn_game import IllegalActionError, TurnGame

MOST_PLANES = 9  # of an observation that is shown as a board
LONGEST_TEXT = 400  # numbers of an observation that is shown whole


NO_CHANCE = ("classic.chess", "classic.connect_four", "classic.go", "classic.tictactoe")


class PettingZooGame(TurnGame):
    """What both interfaces have in common. Seats are `possible_agents`, in their order.

    An agent whose observation space is a Dict with `observation` is observed through that part alone; its
    `action_mask`, there or in the agent's info, masks the actions. Without one every action is legal.

    Args:
        make_env: builds another environment like `env`, for copies of the game.
    """

    def __init__(self, env: Any, make_env: Callable[[], Any], name: str) -> None:
        self._env = env
        self._make_env = make_env
        if not getattr(self._env, "possible_agents", None):
            raise ConfigError(f"The environment {name} names no possible_agents; expected a PettingZoo environment.")
        self._agents: list[Any] = list(self._env.possible_agents)
        self._seat_of = {agent: seat for seat, agent in enumerate(self._agents)}
        self._spaces = [_observed_space(self._env.observation_space(agent)) for agent in self._agents]
        self._actions = [_discrete(self._env.action_space(agent), name) for agent in self._agents]
        self.spec = _spec(self._spaces, self._actions, name)
        self.deterministic = name.rpartition("_v")[0] in NO_CHANCE
        self._returns = [0.0] * len(self._agents)
        self._last: dict[int, NDArray[Any]] = {}  # the final observations of agents that are gone
        self._cut: set[int] = set()  # seats of agents that were truncated
        self._terminated = False  # an agent was
        self._seed: int | None = None  # of the game that runs; None before the first
        self._turns: list[dict[int, int]] = []  # the actions applied so far

    def returns(self) -> Sequence[float]:
        """[seats]."""
        return list(self._returns)

    def truncated(self) -> bool:
        """True where an agent was truncated and none has terminated."""
        return len(self._cut) > 0 and not self._terminated

    def seat_truncated(self, seat: int) -> bool:
        """True where its own agent was truncated, whatever became of the others."""
        return seat in self._cut

    def legal_actions(self, seat: int) -> NDArray[np.intp]:
        """Ids, ascending."""
        return np.flatnonzero(self.mask(seat))

    def mask(self, seat: int) -> NDArray[np.uint8]:
        """uint8 [A]; actions beyond the agent's own are illegal."""
        count, mask = int(self._actions[seat].n), np.zeros(self.spec.num_actions, np.uint8)
        given = self._given_mask(seat)
        if given is not None and np.shape(given) != (count,):
            raise EnvError(f"the action_mask of {self._agents[seat]} has shape {np.shape(given)}; expected ({count},)")
        mask[:count] = 1 if given is None else np.asarray(given) != 0
        return mask

    def observation(self, seat: int) -> NDArray[Any]:
        """Wire dtype [D]; of an agent that is gone its last one."""
        if seat in self._last:
            return self._last[seat].copy()
        observed = self._observed(seat)
        if isinstance(observed, Mapping) and "observation" in observed:
            observed = observed["observation"]
        space = self._spaces[seat]
        if not isinstance(space, spaces.Box):
            observed = spaces.flatten(space, observed)
        elif np.shape(observed) != space.shape:
            raise EnvError(f"an observation has shape {list(np.shape(observed))}; its space {list(space.shape)}")
        return np.array(observed, dtype=self.spec.dtype()).reshape(-1)

    def render(self, seat: int | None = None) -> str:
        """The environment's own text, where it was made with `render_mode: ansi`; else what the seat observes."""
        text = self._env.render() if getattr(self._env, "render_mode", None) == "ansi" else None
        if isinstance(text, str):
            return text
        acting = self.acting()
        shown = (acting[0] if acting else 0) if seat is None else seat
        return f"{self.spec.name}, {self._agents[shown]} observes:\n{self._observed_text(shown)}"

    def _observed_text(self, seat: int) -> str:
        """The observation as an array; planes of zeros and ones of a board as one board, marked by the plane."""
        shape, row = self._spaces[seat].shape, self.observation(seat)
        if shape is None:
            return str(row)
        array = row.reshape(shape)
        if array.ndim == 3 and self.spec.observation_axes == "CHW":
            array = np.moveaxis(array, 0, -1)
        if array.ndim != 3 or array.shape[-1] > MOST_PLANES or not np.isin(array, (0, 1)).all():
            return np.array2string(array, threshold=LONGEST_TEXT)
        marks = np.where(array.any(-1), array.argmax(-1) + 1, 0)
        return numbered_board([[str(mark) if mark else "." for mark in line] for line in marks.tolist()])

    def close(self) -> None:
        """Close the environment."""
        self._env.close()

    def clone(self) -> Self:
        """An independent copy: another environment, reset with the same seed, in which the same actions are taken.

        A deep copy would not do: one of an EzPickle environment is built anew from its arguments, without its state.
        Raises EnvError where the seed and the actions do not determine the game.
        """
        game = copy.copy(self)
        game._env = self._make_env()
        if self._seed is None:
            return game
        game.reset(self._seed)
        try:
            for actions in self._turns:
                game.apply(actions)
        except IllegalActionError as error:
            raise EnvError(self._not_determined(f"action {len(game._turns) + 1} is refused, {error}")) from None
        if (shown := game._shown()) != (expected := self._shown()):
            names = ("the seats that act", "their masks", "their observations", "the returns")
            parts = [name for name, one, other in zip(names, shown, expected) if one != other]
            raise EnvError(self._not_determined(f"{', '.join(parts)} differ"))
        return game

    def _shown(self) -> tuple[object, ...]:
        """What a copy must have in common with this game, comparable."""
        acting = self.acting()
        masks = [self.mask(seat).tobytes() for seat in acting]
        return tuple(acting), masks, [self.observation(seat).tobytes() for seat in acting], list(self.returns())

    def _not_determined(self, how: str) -> str:
        return (
            f"{self.spec.name} cannot be copied: played again with the seed {self._seed} and the same actions, {how}. "
            "Its reset(seed) must determine everything that is drawn"
        )

    def _begin(self, seed: int) -> None:
        self._seed, self._turns = seed, []
        self._returns = [0.0] * len(self._agents)
        self._last = {}
        self._cut = set()
        self._terminated = False

    def _end(self, agent: Any, terminated: bool) -> None:
        """An agent is gone: keep what it saw last."""
        seat = self._seat_of[agent]
        self._last[seat] = self.observation(seat)
        self._terminated |= terminated
        self._cut |= set() if terminated else {seat}

    def _check(self, actions: Mapping[int, int]) -> None:
        """Raises IllegalActionError."""
        acting = list(self.acting())
        if sorted(actions) != acting:
            raise IllegalActionError(f"expected actions of the seats {acting}, got those of {sorted(actions)}")
        for seat, action in actions.items():
            if not (0 <= action < self.spec.num_actions and self.mask(seat)[action]):
                legal = self.legal_actions(seat)[:20].tolist()
                raise IllegalActionError(f"action {action} of seat {seat} is not legal; expected one of {legal}")

    def _own_action(self, seat: int, action: int) -> int:
        return int(self._actions[seat].start) + action

    def _given_mask(self, seat: int) -> Any:
        observed = self._observed(seat)
        if isinstance(observed, Mapping) and "action_mask" in observed:
            return observed["action_mask"]
        return self._info(seat).get("action_mask")

    def _observed(self, seat: int) -> Any:
        raise NotImplementedError

    def _info(self, seat: int) -> Mapping[str, Any]:
        raise NotImplementedError


class AECGame(PettingZooGame):
    """An AEC environment. Agents that are done take their last step, with None, by themselves."""

    def reset(self, seed: int) -> None:
        """A new game."""
        self._begin(seed)
        self._env.reset(seed=seed)
        self._pass_dead_agents()

    def acting(self) -> Sequence[int]:
        """The selected agent's seat, or ()."""
        return (self._seat_of[self._env.agent_selection],) if self._env.agents else ()

    def apply(self, actions: Mapping[int, int]) -> None:
        """The selected agent's action. Raises IllegalActionError."""
        self._check(actions)
        ((seat, action),) = actions.items()
        self._bank(seat)
        self._env.step(self._own_action(seat, action))
        self._turns.append({seat: action})
        self._pass_dead_agents()

    def returns(self) -> Sequence[float]:
        """[seats]: rewards before each agent's latest step, and those that `last` would show since."""
        since = self._env._cumulative_rewards if self._env.agents else {}
        return [
            banked + float(since.get(agent, 0.0)) * (seat not in self._last)
            for seat, (agent, banked) in enumerate(zip(self._agents, self._returns))
        ]

    def _bank(self, seat: int) -> None:
        """Before an agent steps, which clears its cumulative reward."""
        self._returns[seat] += float(self._env._cumulative_rewards[self._agents[seat]])

    def _pass_dead_agents(self) -> None:
        env = self._env
        while env.agents:
            agent = env.agent_selection
            if not (env.terminations[agent] or env.truncations[agent]):
                return
            self._bank(self._seat_of[agent])
            self._end(agent, env.terminations[agent])
            env.step(None)

    def _observed(self, seat: int) -> Any:
        return self._env.observe(self._agents[seat])

    def _info(self, seat: int) -> Mapping[str, Any]:
        info: Mapping[str, Any] = self._env.infos.get(self._agents[seat], {})
        return info


class ParallelGame(PettingZooGame):
    """A parallel environment: all live agents act at once."""

    def __init__(self, env: Any, make_env: Callable[[], Any], name: str) -> None:
        super().__init__(env, make_env, name)
        self._observations: dict[Any, Any] = {}
        self._infos: dict[Any, Any] = {}

    def reset(self, seed: int) -> None:
        """A new game."""
        self._begin(seed)
        self._observations, self._infos = self._env.reset(seed=seed)

    def acting(self) -> Sequence[int]:
        """The live agents' seats."""
        return sorted(self._seat_of[agent] for agent in self._env.agents)

    def apply(self, actions: Mapping[int, int]) -> None:
        """One action of each live agent. Raises IllegalActionError."""
        self._check(actions)
        chosen = {self._agents[seat]: self._own_action(seat, action) for seat, action in actions.items()}
        self._observations, rewards, terminations, truncations, self._infos = self._env.step(chosen)
        self._turns.append(dict(actions))
        for agent, reward in rewards.items():
            self._returns[self._seat_of[agent]] += float(reward)
        for agent in chosen:
            if terminations.get(agent) or truncations.get(agent):
                self._end(agent, bool(terminations.get(agent)))

    def _observed(self, seat: int) -> Any:
        return self._observations[self._agents[seat]]

    def _info(self, seat: int) -> Mapping[str, Any]:
        info: Mapping[str, Any] = self._infos.get(self._agents[seat], {})
        return info


def _observed_space(space: spaces.Space) -> spaces.Space:
    """The part of an agent's space that it observes."""
    if isinstance(space, spaces.Dict) and "observation" in space.spaces:
        found: spaces.Space = space.spaces["observation"]
        return found
    return space


def _discrete(space: spaces.Space, name: str) -> spaces.Discrete:
    if not isinstance(space, spaces.Discrete):
        raise ConfigError(f"The environment {name} has actions {space}; expected gymnasium.spaces.Discrete.")
    return space


def _spec(observed: Sequence[spaces.Space], actions: Sequence[spaces.Discrete], name: str) -> GameSpec:
    """Raises ConfigError where agents see different things."""
    if any(space.is_np_flattenable is False for space in observed):
        raise ConfigError(f"The environment {name} has observations {observed[0]}, which cannot be flattened.")
    sizes = {spaces.flatdim(space) for space in observed}
    first = observed[0]
    if len(sizes) > 1 or (isinstance(first, spaces.Box) and any(space.shape != first.shape for space in observed)):
        raise ConfigError(
            f"The agents of {name} have observations of different sizes, {sorted(sizes)}; pad them to one size, with "
            "supersuit.pad_observations_v0, say."
        )
    image = isinstance(first, spaces.Box) and len(first.shape) == 3
    whole = isinstance(first, spaces.Box) and first.dtype == np.uint8 and (first.high == 255).all()
    shape = tuple(first.shape) if image and first.shape is not None else ()
    return GameSpec(
        name=f"pettingzoo/{name}", observation_size=sizes.pop(), num_actions=max(int(space.n) for space in actions),
        observation_dtype="uint8" if whole else "float32", seats=len(observed), observation_shape=shape,
        observation_axes=("CHW" if shape[0] < shape[-1] else "HWC") if shape else "",
    )  # fmt: skip
