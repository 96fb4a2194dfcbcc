"""Spaces as flat rows, and what is said about envs that do not fit."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from simul.common.errors import ConfigError, EnvError
from simul.env_worker.games.gymnasium.spaces import (
    action_mask,
    check_env,
    discrete_env,
    flat_observation,
    gymnasium_spec,
)


class Fixed(gymnasium.Env):
    """Shows samples of a space."""

    def __init__(self, observation_space, action_space=None):
        self.observation_space = observation_space
        self.action_space = action_space or spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, False, False, {}


SPACES = [
    (spaces.Box(-1, 1, (2, 3), np.float64), 6),
    (spaces.Box(0, 9, (2, 2), np.uint8), 4),
    (spaces.Box(0, 255, (4,), np.uint8), 4),
    (spaces.Discrete(5, start=2), 5),
    (spaces.MultiBinary(3), 3),
    (spaces.MultiDiscrete([2, 4]), 6),
    (spaces.Dict(a=spaces.Discrete(2), b=spaces.Box(0, 1, (2,), np.float32)), 4),
    (spaces.Tuple((spaces.Discrete(3), spaces.MultiBinary(2))), 5),
]


@pytest.mark.parametrize(("space", "size"), SPACES)
def test_spaces_flatten(space, size):
    assert check_env(lambda: Fixed(space), "test").observation_size == size
    flat = flat_observation(space, space.sample())
    assert flat.dtype == np.float32
    assert flat.shape == (size,)


def test_discrete_is_one_hot():
    assert flat_observation(spaces.Discrete(4, start=10), 12).tolist() == [0, 0, 1, 0]


def test_the_observation_is_a_copy():
    buffer = np.zeros(2, np.float32)
    flat = flat_observation(spaces.Box(0, 1, (2,), np.float32), buffer)
    buffer[0] = 1.0
    assert flat[0] == 0.0


class Parallel:
    """The interface of a PettingZoo parallel env."""

    possible_agents = ("a", "b")

    def observation_space(self, agent):
        return spaces.Discrete(2)

    def action_space(self, agent):
        return spaces.Discrete(2)


class Turns(Parallel):
    """The interface of a PettingZoo AEC env, one agent after the other."""

    def agent_iter(self):
        return iter(self.possible_agents)


@pytest.mark.parametrize(("env", "kind"), [(Parallel, "parallel env"), (Turns, "AEC env")])
def test_a_pettingzoo_env_is_named(env, kind):
    with pytest.raises(ConfigError, match=rf"^mine is a PettingZoo env \({kind}\); Simul takes Gymnasium envs"):
        check_env(env, "mine")


@pytest.mark.parametrize(("base", "kind"), [("ParallelEnv", "parallel env"), ("AECEnv", "AEC env")])
def test_envs_of_the_package_pettingzoo_are_named(base, kind):
    bases = pytest.importorskip("pettingzoo.utils.env")
    own = type("Own", (getattr(bases, base),), {"possible_agents": ["a", "b"]})
    with pytest.raises(ConfigError, match=rf"^mine is a PettingZoo env \({kind}\)"):
        check_env(own, "mine")


@pytest.mark.parametrize(
    ("env", "says"),
    [
        (Fixed(spaces.Discrete(2), spaces.Box(0, 1, (1,))), r"continuous actions.*wrappers.DiscretizeAction\(env"),
        (Fixed(spaces.Discrete(2), spaces.Text(3)), "expected gymnasium.spaces.Discrete, MultiDiscrete or MultiBinary"),
        (Fixed(spaces.Sequence(spaces.Discrete(2))), "do not flatten"),
        (Fixed(spaces.Box(0, 1, (0,))), "empty observation space"),
        (object(), "action space None"),
    ],
)
def test_spaces_that_do_not_fit(env, says):
    with pytest.raises(ConfigError, match=says):
        gymnasium_spec(env, "test")


def test_masks():
    assert action_mask({}, 3).tolist() == [1, 1, 1]
    assert action_mask({"action_mask": np.array([True, False])}, 2).tolist() == [1, 0]
    with pytest.raises(EnvError, match=r"shape \[2\]; expected \[3\]"):
        action_mask({"action_mask": [1, 1]}, 3)
    with pytest.raises(EnvError, match="seat 0 must act, and no action is legal"):
        action_mask({"action_mask": [0, 0]}, 2)
    for mask, held in (([0.0, -np.inf], "-inf"), ([1, -1], "-1"), ([1.0, np.nan], "nan"), ([2, 1], "2")):
        with pytest.raises(EnvError, match=f"holds {held}; expected 1 where an action is legal, 0 where it is not"):
            action_mask({"action_mask": np.array(mask)}, 2)
    with pytest.raises(EnvError, match="info is a NoneType; expected a dict"):
        action_mask(None, 2)


@pytest.mark.parametrize(
    ("info", "says"), [(None, "info is a NoneType"), ({"action_mask": [1, 1, 1]}, r"shape \[3\]; expected \[2\]")]
)
def test_the_info_of_the_first_step_is_checked_too(info, says):
    class Careless(Fixed):
        over = False

        def step(self, action):
            return self.observation_space.sample(), 0.0, self.over, False, info

    env = Careless(spaces.Box(0, 1, (3,), np.float32))
    with pytest.raises(ConfigError, match=says):
        check_env(lambda: env, "mine")
    env.over = True  # nothing reads the info of an end
    check_env(lambda: env, "mine")


def test_a_pettingzoo_env_with_stacked_frames_is_named():
    with pytest.raises(ConfigError, match="is a PettingZoo env"):
        check_env(lambda: discrete_env(Parallel(), frame_stack=2), "mine")


@pytest.mark.parametrize(
    ("method", "says"),
    [
        ("reset", r"does not work: .*test_spaces\.py:\d+: KeyError: 'north'\. Expected a Gymnasium env"),
        ("step", r"does not work: .*test_spaces\.py:\d+: KeyError: 'north'\."),
        ("close", r"does not work: closing it raised .*test_spaces\.py:\d+: KeyError: 'north'\.$"),
    ],
)
def test_an_env_that_raises_is_refused_with_its_line(method, says):
    class Raising(Fixed):
        def __init__(self):
            super().__init__(spaces.Box(0, 1, (3,), np.float32))
            setattr(self, method, self.look)

        def look(self, *arguments, **more):
            return {}["north"]

    with pytest.raises(ConfigError, match=says):
        check_env(Raising, "mine")


def test_an_env_of_the_old_interface_is_refused():
    class Old(Fixed):
        def reset(self):
            return 0

    with pytest.raises(ConfigError, match=r"TypeError.*Expected a Gymnasium env"):
        check_env(lambda: Old(spaces.Discrete(2)), "old")


UPRIGHT = spaces.Box(0, 1, (2, 3), np.float32)


@pytest.mark.parametrize(
    ("space", "observation", "says"),
    [
        (UPRIGHT, np.zeros((3, 2)), r"an observation has shape \[3, 2\]; its space declares \[2, 3\]"),
        (UPRIGHT, np.zeros(6), r"has shape \[6\]; its space declares \[2, 3\]"),
        (spaces.Box(0, 1, (3,), np.float32), np.zeros((3, 1)), r"\[3, 1\]; its space declares \[3\]"),
        (spaces.Dict(a=UPRIGHT), {"a": np.zeros((3, 2))}, r"an observation\['a'\] has shape \[3, 2\]"),
        (spaces.Dict(a=UPRIGHT), {}, "an observation lacks 'a', which its space declares"),
        (spaces.Tuple((UPRIGHT, UPRIGHT)), (np.zeros((2, 3)), np.zeros((3, 2))), r"an observation\[1\] has shape"),
        (spaces.Tuple((UPRIGHT, UPRIGHT)), (np.zeros((2, 3)),), "has 1 parts; its space declares 2"),
        (spaces.MultiBinary((2, 2)), np.zeros(4, np.int8), r"\[4\]; its space declares \[2, 2\]"),
        (spaces.MultiDiscrete([[2, 2], [2, 2]]), np.zeros((1, 4), np.int64), r"\[1, 4\]; its space declares \[2, 2\]"),
        (spaces.MultiDiscrete([3, 3]), np.array([0.5, 1]), r"dtype float64; its space MultiDiscrete.* whole numbers"),
        (spaces.MultiDiscrete([3, 3]), np.array([0, 3]), r"is \[0, 3\], which its space MultiDiscrete.* not contain"),
        (spaces.Discrete(3), 1.0, r"dtype float64; its space Discrete\(3\) declares whole numbers"),
        (spaces.Discrete(3), -1, r"is -1, which its space Discrete\(3\) does not contain"),
    ],
)
def test_as_many_numbers_in_another_shape_are_not_an_observation(space, observation, says) -> None:
    with pytest.raises(EnvError, match=says):
        flat_observation(space, observation)


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((84, 84), "HW"),
        ((84, 84, 3), "HWC"),
        ((5, 5, 5), "HWC"),
        ((3, 64, 96), "CHW"),
        ((4, 64, 96, 3), "NHWC"),
        ((4, 3, 64, 96), "NCHW"),
    ],
)
def test_images_stay_bytes_and_their_axes_are_told_apart_by_size(shape, axes):
    space = spaces.Box(0, 255, shape, np.uint8)
    for observed, rest in ((space, 0), (spaces.Tuple((space, spaces.MultiBinary(3))), 3)):
        spec = check_env(lambda observed=observed: Fixed(observed), "test")
        assert (spec.observation_dtype, spec.observation_size) == ("uint8", np.prod(shape) + rest)
        assert (spec.observation_shape, spec.observation_axes) == (shape, axes)
        sample = observed.sample()
        flat = flat_observation(observed, sample, "uint8")
        image, others = (sample[0], sample[1]) if rest else (sample, [])
        assert flat.dtype == np.uint8
        assert flat.tolist() == [*image.reshape(-1).tolist(), *others]


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(0, 1, (4, 4), np.float32),
        spaces.Box(1, 255, (4, 4), np.uint8),
        spaces.Tuple((spaces.Box(0, 255, (4, 4), np.uint8), spaces.Box(0, 1, (1,), np.float32))),
    ],
)
def test_everything_else_is_a_vector_of_floats(space):
    spec = gymnasium_spec(Fixed(space), "test")
    assert (spec.observation_dtype, spec.observation_shape, spec.observation_axes) == ("float32", (), "")


def test_an_image_of_another_dtype_must_be_of_bytes():
    space = spaces.Box(0, 255, (1, 2), np.uint8)
    assert flat_observation(space, np.array([[7, 255]], np.int64), "uint8").tolist() == [7, 255]
    for image in ([[0.5, 1.0]], [[0, 256]], [[-1, 0]]):
        with pytest.raises(EnvError, match="values that are not whole numbers from 0 to 255"):
            flat_observation(space, np.array(image), "uint8")


class Filming(gymnasium.Env):
    """Image of one pixel that shows the number of the step, in a buffer that is used again."""

    observation_space = spaces.Box(0, 255, (1, 1), np.uint8)
    action_space = spaces.Discrete(2)

    def __init__(self):
        self.frame = np.zeros((1, 1), np.uint8)

    def reset(self, *, seed=None, options=None):
        self.frame[:] = 1
        return self.frame, {}

    def step(self, action):
        self.frame += 1
        return self.frame, 0.0, False, False, {}


def test_stacked_frames_are_the_newest_ones_the_oldest_first():
    env = discrete_env(Filming(), frame_stack=3)
    spec = gymnasium_spec(env, "film")
    assert (spec.observation_shape, spec.observation_size) == ((3, 1, 1), 3)
    shown = [env.reset()[0], *(env.step(0)[0] for _ in range(3))]
    assert [flat_observation(env.observation_space, frames, "uint8").tolist() for frames in shown] == [
        [1, 1, 1], [1, 1, 2], [1, 2, 3], [2, 3, 4],
    ]  # fmt: skip


def test_vectors_are_stacked_too():
    env = discrete_env(Fixed(spaces.Box(0, 1, (3,), np.float32)), frame_stack=2)
    assert check_env(lambda: env, "test").observation_size == 6
