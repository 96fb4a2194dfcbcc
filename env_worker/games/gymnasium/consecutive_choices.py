"""MultiDiscrete and MultiBinary actions as consecutive decisions: each component is one discrete choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from simul.common.errors import EnvError


class ConsecutiveChoices(gymnasium.Wrapper):
    """An env with Discrete actions around one whose actions have K components of n_0, ..., n_{K-1} options.

    `step(option)` chooses component 0, then 1, and so on. The choice of component K - 1 steps the env; before it, the
    reward is 0, and the env's own observation stays what it was.

    Observation: (the env's, int8 [K + n_0 + ... + n_{K-2}]): the component that is asked for, one-hot, then the
    choices made so far, one-hot each, zeros where none is made yet.
    info["action_mask"]: uint8 [max n], the legal options of the component that is asked for. The env may mask its own
    actions with info["action_mask"]: the masks of its components one behind the other, [n_0 + ... + n_{K-1}], or
    a sequence of them, nested as the space, which is the mask that the space's `sample` takes.
    """

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        self.options = component_options(env.action_space)
        self.action_space = spaces.Discrete(max(self.options))
        self.observation_space = spaces.Tuple(
            (env.observation_space, spaces.MultiBinary(len(self.options) + sum(self.options[:-1])))
        )
        self._choices: list[int] = []
        self._observation: Any = None
        self._masks: list[NDArray[np.uint8]] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """As `gymnasium.Env.reset`; component 0 is asked for."""
        self._observation, info = self.env.reset(seed=seed, options=options)
        return self._ask(info)

    def step(self, action: int) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Choose an option of the component that is asked for; the last choice steps the env."""
        self._choices.append(int(action))
        if len(self._choices) < len(self.options):
            return self._observed(), 0.0, False, False, self._info()
        self._observation, reward, terminated, truncated, info = self.env.step(self._whole_action())
        observation, info = self._ask(info, over=terminated or truncated)
        return observation, reward, terminated, truncated, info

    def _ask(self, info: dict[str, Any], over: bool = False) -> tuple[Any, dict[str, Any]]:
        """Begin a new action."""
        self._choices = []
        if not over:
            self._masks = self._component_masks(given_mask(info))
        return self._observed(), {**info, **self._info()}

    def _whole_action(self) -> Any:
        space = self.env.action_space
        start = space.start if isinstance(space, spaces.MultiDiscrete) else 0
        return (np.array(self._choices).reshape(space.shape) + start).astype(space.dtype)

    def _observed(self) -> tuple[Any, NDArray[np.int8]]:
        asked = len(self._choices)
        chosen = np.zeros(sum(self.options[:-1]), np.int8)
        begin = 0
        for choice, options in zip(self._choices, self.options):
            chosen[begin + choice] = 1
            begin += options
        return self._observation, np.concatenate((np.arange(len(self.options)) == asked, chosen)).astype(np.int8)

    def _info(self) -> dict[str, Any]:
        mask = np.zeros(max(self.options), np.uint8)
        legal = self._masks[len(self._choices)]
        mask[: len(legal)] = legal
        return {"action_mask": mask}

    def _component_masks(self, given: Any) -> list[NDArray[np.uint8]]:
        """uint8 [n_i] of each component, 1 = legal. Raises EnvError."""
        total = sum(self.options)
        mask = np.ones(total, np.uint8) if given is None else self._joined(given)
        if mask.shape != (total,):
            raise EnvError(
                f'info["action_mask"] has shape {list(mask.shape)}; expected [{total}], the masks of the components '
                f"with {', '.join(map(str, self.options))} options one behind the other"
            )
        masks = np.split(legal_actions(mask), np.cumsum(self.options)[:-1])
        for number, part in enumerate(masks):
            if not part.any():
                raise EnvError(f'info["action_mask"] allows no option of component {number}')
        return masks

    def _joined(self, given: Any) -> NDArray[Any]:
        """A mask as one array; raises EnvError where it is a sequence of masks of other sizes."""
        parts = _parts(given)
        if len(parts) == 1:
            return parts[0]
        if [part.shape for part in parts] != [(options,) for options in self.options]:
            raise EnvError(
                f'info["action_mask"] has masks of {", ".join(str(part.size) for part in parts)} options; expected '
                f"those of the components with {', '.join(map(str, self.options))} options"
            )
        return np.concatenate(parts)


def _parts(mask: Any) -> list[NDArray[Any]]:
    """The arrays in a nesting of sequences; one where `mask` is an array, or a sequence of numbers."""
    if isinstance(mask, tuple | list) and any(isinstance(part, tuple | list | np.ndarray) for part in mask):
        return [array for part in mask for array in _parts(part)]
    return [np.asarray(mask)]


def given_mask(info: Any) -> Any:
    """info["action_mask"], None where there is none. Raises EnvError where `info` is no dict."""
    if not isinstance(info, Mapping):
        raise EnvError(f"info is a {type(info).__name__}; expected a dict")
    return info.get("action_mask")


def legal_actions(mask: NDArray[Any]) -> NDArray[np.uint8]:
    """A mask of zeros and ones, or of booleans, as uint8. Raises EnvError for other values, such as logits."""
    legal: NDArray[np.bool_] = mask == 1
    if np.count_nonzero(mask) != np.count_nonzero(legal):
        other = mask[(mask != 0) & ~legal].flat[0]
        raise EnvError(f'info["action_mask"] holds {other}; expected 1 where an action is legal, 0 where it is not')
    return legal.view(np.uint8)


def component_options(actions: Any) -> tuple[int, ...]:
    """Options of each component of a MultiDiscrete or MultiBinary space; empty for any other space."""
    if isinstance(actions, spaces.MultiDiscrete):
        return tuple(int(n) for n in actions.nvec.reshape(-1))
    return (2,) * int(np.prod(actions.shape)) if isinstance(actions, spaces.MultiBinary) else ()
