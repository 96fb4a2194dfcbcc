"""Actions of several components, chosen one by one: observations, masks, rewards and the books of the source."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from simul.common.errors import ConfigError, EnvError
from simul.common.protocol.messages import DECISION, TERMINATED, TRUNCATED
from simul.env_worker.games.gymnasium.spaces import check_env, discrete_env, flat_observation
from tests.support.gym_envs import make_source, play, started


class Panel(gymnasium.Env):
    """Notes the actions; an episode lasts 2 steps. Every step earns 1."""

    def __init__(self, action_space, mask=None, observation_space=None, truncates=False):
        self.observation_space = observation_space or spaces.Box(0, 9, (1,), np.float32)
        self.action_space = action_space
        self.mask, self.truncates = mask, truncates
        self.taken = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._see(), self._info()

    def step(self, action):
        assert action in self.action_space
        self.taken.append(np.asarray(action).tolist())
        self.steps += 1
        over = self.steps == 2
        return self._see(), 1.0, over and not self.truncates, over and self.truncates, self._info()

    def _see(self):
        return np.full(self.observation_space.shape, self.steps, self.observation_space.dtype)

    def _info(self):
        return {} if self.mask is None else {"action_mask": self.mask}


THREE = spaces.MultiDiscrete([3, 2, 4])


def observed(env, observation):
    return flat_observation(env.observation_space, observation).tolist()


def test_components_are_asked_for_in_order_and_the_last_one_steps_the_env():
    inner = Panel(THREE)
    env = discrete_env(inner)
    observation, info = env.reset(seed=1)
    assert env.action_space == spaces.Discrete(4)
    assert observed(env, observation) == [0, 1, 0, 0, 0, 0, 0, 0, 0]  # the env's; component 0; no choice yet
    assert info["action_mask"].tolist() == [1, 1, 1, 0]
    observation, reward, terminated, truncated, info = env.step(2)
    assert observed(env, observation) == [0, 0, 1, 0, 0, 0, 1, 0, 0]
    assert info["action_mask"].tolist() == [1, 1, 0, 0]
    assert (reward, terminated, truncated, inner.taken) == (0.0, False, False, [])
    observation, *_, info = env.step(1)
    assert observed(env, observation) == [0, 0, 0, 1, 0, 0, 1, 0, 1]
    assert info["action_mask"].tolist() == [1, 1, 1, 1]
    observation, reward, *_ = env.step(3)
    assert observed(env, observation) == [1, 1, 0, 0, 0, 0, 0, 0, 0]
    assert (reward, inner.taken) == (1.0, [[2, 1, 3]])


@pytest.mark.parametrize(
    ("space", "choices", "action"),
    [
        (spaces.MultiDiscrete([2, 3], start=[5, -1]), [1, 2], [6, 1]),
        (spaces.MultiDiscrete([[2, 2], [3, 3]]), [1, 0, 2, 1], [[1, 0], [2, 1]]),
        (spaces.MultiBinary(3), [1, 0, 1], [1, 0, 1]),
        (spaces.MultiBinary((2, 1)), [0, 1], [[0], [1]]),
        (spaces.MultiDiscrete([4]), [3], [3]),
    ],
)
def test_choices_become_the_action_of_the_space(space, choices, action):
    inner = Panel(space)
    env = discrete_env(inner)
    env.reset(seed=1)
    for choice in choices:
        env.step(choice)
    assert inner.taken == [action]


def test_masks_of_the_components_lie_one_behind_the_other():
    env = discrete_env(Panel(THREE, mask=[0, 1, 1, 1, 0, 0, 0, 0, 1]))
    masks = [env.reset(seed=1)[1]["action_mask"].tolist()]
    masks += [env.step(choice)[4]["action_mask"].tolist() for choice in (1, 0, 3)]
    assert masks == [[0, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 1, 0]]


@pytest.mark.parametrize(
    ("space", "mask", "legal"),
    [
        (THREE, (np.array([0, 1, 1]), np.array([1, 0]), np.array([0, 0, 0, 1])), [0, 1, 1, 0]),
        (THREE, [[0, 1, 1], [1, 0], [0, 0, 0, 1]], [0, 1, 1, 0]),
        (spaces.MultiDiscrete([[2, 2], [3, 3]]), ((np.array([0, 1]), np.ones(2)), (np.ones(3), np.ones(3))), [0, 1, 0]),
        (spaces.MultiDiscrete([3]), (np.array([0, 1, 1]),), [0, 1, 1]),
    ],
)
def test_masks_may_be_a_sequence_as_gymnasium_samples_with(space, mask, legal):
    assert discrete_env(Panel(space, mask=mask)).reset(seed=1)[1]["action_mask"].tolist() == legal


class Duck:
    """The interface, without gymnasium.Env, and without the argument `options`."""

    def __init__(self, action_space):
        self.inner = Panel(action_space)
        self.action_space, self.observation_space = action_space, self.inner.observation_space
        self.closed = False

    def reset(self, seed=None):
        return self.inner.reset(seed=seed)

    def step(self, action):
        return self.inner.step(action)

    def close(self):
        self.closed = True


@pytest.mark.parametrize(("space", "frames"), [(THREE, 1), (THREE, 2), (spaces.Discrete(2), 2)])
def test_a_class_with_the_interface_alone_is_enough(space, frames):
    duck = Duck(space)
    source = started(lambda: discrete_env(duck, frames), episodes=1)
    assert [row.kind for row in play(source)][-1] == TERMINATED
    assert source.metrics()["returns"]["mean"] == 2.0
    source.close()
    assert duck.closed


@pytest.mark.parametrize(
    ("mask", "says"),
    [
        ([1, 1, 1], r"has shape \[3\]; expected \[9\], the masks of the components with 3, 2, 4 options"),
        ([1, 1, 1, 0, 0, 1, 1, 1, 1], "allows no option of component 1"),
        (([1, 1, 1], [1, 1], [1, 1]), r"has masks of 3, 2, 2 options; expected those .* with 3, 2, 4 options"),
        (([1, 1, 1], [1, 1]), r"has masks of 3, 2 options; expected those .* with 3, 2, 4 options"),
        ([0, 0, -np.inf, 0, 0, 0, 0, 0, 0], "holds -inf; expected 1 where an action is legal"),
    ],
)
def test_a_wrong_mask_is_an_error(mask, says):
    with pytest.raises(EnvError, match=says):
        discrete_env(Panel(THREE, mask=mask)).reset(seed=1)


@pytest.mark.parametrize("truncates", [False, True])
def test_rows_and_books_of_an_episode(truncates):
    source = started(lambda: discrete_env(Panel(THREE, truncates=truncates)), episodes=1)
    rows = play(source)
    assert [row.kind for row in rows] == [DECISION] * 6 + [TRUNCATED if truncates else TERMINATED]
    assert [row.step for row in rows] == list(range(7))
    assert [row.reward for row in rows] == [0, 0, 0, 1, 0, 0, 1]
    if truncates:
        assert rows[-1].observation.tolist()[:4] == [2, 1, 0, 0]
    metrics = source.metrics()
    assert metrics["lengths"] == {"decisions": 6, "env_steps": 2}
    assert metrics["returns"]["mean"] == 2.0


def test_a_wrong_mask_has_no_line_of_ours():
    source = make_source(lambda: discrete_env(Panel(THREE, mask=np.ones(3))))
    with pytest.raises(ConfigError, match=r'does not start: EnvError: info\["action_mask"\] has shape \[3\]'):
        source.start()


def test_an_image_stays_an_image():
    image = spaces.Box(0, 255, (3, 4, 2), np.uint8)
    spec = check_env(lambda: discrete_env(Panel(THREE, observation_space=image)), "test")
    assert (spec.observation_dtype, spec.observation_shape, spec.observation_size) == ("uint8", (3, 4, 2), 24 + 3 + 5)
