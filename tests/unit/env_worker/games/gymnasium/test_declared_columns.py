"""Ids and sequences as declared columns: what lies where, and what is refused."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from simul.common.errors import ConfigError, EnvError
from simul.common.protocol.specs import EntityGroup
from simul.env_worker.games.gymnasium.declared_columns import DeclaredColumns
from simul.env_worker.games.gymnasium.spaces import check_env, discrete_env, gymnasium_spec
from tests.support.layouts import check_cover

UNIT = spaces.Dict(kind=spaces.Discrete(4, start=1), place=spaces.Box(-2, 2, (2,), np.float32))
SPACE = spaces.Dict(
    gold=spaces.Box(0, np.inf, (1,), np.float32), turn=spaces.MultiDiscrete([2, 3]), units=spaces.Sequence(UNIT)
)


class Shows(gymnasium.Env):
    """Shows one observation for ever."""

    def __init__(self, space, observation=None, actions=None):
        self.observation_space, self.action_space = space, actions or spaces.Discrete(2)
        self._observation = observation

    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample() if self._observation is None else self._observation, {}

    def step(self, action):
        return self.reset()[0], 0.0, False, False, {}


def unit(kind, x, y):
    return {"kind": kind, "place": np.array([x, y], np.float32)}


def test_a_dict_of_numbers_ids_and_a_sequence_is_declared_part_by_part():
    shown = {"gold": np.array([7.0], np.float32), "turn": np.array([1, 2]), "units": (unit(4, -2, 1), unit(1, 0.5, 0))}
    env = discrete_env(Shows(SPACE, shown), ids="columns", max_entities=3)
    spec = check_env(lambda: env, "game")
    check_cover(spec.layout, spec.observation_size)
    assert spec.entities == (EntityGroup("units", 3, "present"),)
    assert env.reset()[0].tolist() == [7, 1, 2, 3, -2, 1, 1, 0, 0.5, 0, 1, 0, 0, 0, 0]
    kinds = [spec.slice(f"units.{i}.kind") for i in range(3)]
    assert {(part.kind, part.vocabulary, part.high, part.table) for part in kinds} == {("id", 4, 3.0, "units.kind")}
    turns = [spec.slice(f"turn.{i}") for i in range(2)]
    assert [(part.vocabulary, part.table) for part in turns] == [(2, "turn.0"), (3, "turn.1")]
    assert (spec.slice("units.0.place").low, spec.slice("gold").low) == (-2.0, -1.0)


def test_ids_are_one_hot_unless_asked_for_and_layouts_of_other_envs_stay_empty():
    env = discrete_env(Shows(spaces.Sequence(spaces.Discrete(3)), (2,)), max_entities=2)
    spec = gymnasium_spec(env, "game")
    assert env.reset()[0].tolist() == [0, 0, 1, 1, 0, 0, 0, 0]
    assert all(part.kind == "number" for part in spec.layout)
    for space, size in ((spaces.Discrete(5), 5), (spaces.Box(0, 1, (2,), np.float32), 2)):
        plain = gymnasium_spec(discrete_env(Shows(space)), "game")
        assert (plain.layout, plain.observation_size) == ((), size)
    numbers = discrete_env(Shows(spaces.Box(0, 1, (2,), np.float32)), ids="columns")
    assert not isinstance(numbers, DeclaredColumns), "nothing to declare"
    assert (
        gymnasium_spec(discrete_env(Shows(spaces.Discrete(5, start=3), 6), ids="columns"), "game").layout[0].size == 1
    )


def test_bytes_of_an_image_are_scaled_and_bytes_of_a_vector_are_not():
    space = spaces.Dict(
        image=spaces.Box(0, 255, (1, 2, 1), np.uint8),
        kind=spaces.Discrete(3),
        vector=spaces.Box(0, 255, (2,), np.uint8),
    )
    shown = {"image": np.array([[[0], [255]]], np.uint8), "kind": 2, "vector": np.array([0, 255], np.uint8)}
    env = discrete_env(Shows(space, shown), ids="columns")
    assert env.reset()[0].tolist() == [0, 1, 2, 0, 255]
    assert [part.high for part in gymnasium_spec(env, "game").layout] == [1, 2, 255]


def test_components_of_an_action_are_asked_for_behind_declared_columns():
    env = discrete_env(Shows(SPACE, actions=spaces.MultiDiscrete([2, 3])), ids="columns", max_entities=100)
    spec = check_env(lambda: env, "game")
    assert (spec.num_actions, spec.layout[-1].size) == (3, 4)
    assert spec.entities[0].name == "0.units"


@pytest.mark.parametrize(
    ("space", "limit", "says"),
    [
        (SPACE, 0, "units of the observations is a Sequence.* Set gymnasium.max_entities"),
        (spaces.Sequence(spaces.Sequence(spaces.Discrete(2))), 2, "expected a Sequence of a Box, a Discrete or a Dict"),
        (spaces.Sequence(spaces.Dict(present=spaces.Discrete(2))), 2, "has a part 'present', which Simul adds itself"),
        (
            spaces.Dict(a=spaces.Discrete(2), g=spaces.Graph(spaces.Discrete(2), None)),
            2,
            "g of the observations does not",
        ),
        (
            spaces.Dict({"a.b": spaces.Discrete(3), "a": spaces.Dict(b=spaces.Discrete(4))}),
            2,
            "Two parts of the observations are called a.b; rename a key that has a dot",
        ),
        (
            spaces.Dict({"u.0.k": spaces.Discrete(3), "u": spaces.Sequence(spaces.Dict(k=spaces.Discrete(3)))}),
            2,
            "Two parts of the observations are called u.0.k",
        ),
        (
            spaces.Dict({"u.0.k": spaces.Discrete(3), "u": spaces.Sequence(spaces.Discrete(3))}),
            2,
            "u.0.k of the observations is called as a part of the Sequence u; rename its key",
        ),
        (spaces.Dict(u=spaces.Sequence(spaces.Dict())), 2, r"An entity of u is Dict\(\), which has no numbers"),
        (spaces.Discrete(2**25), 2, "has 33554432 values; expected at most 16777216 ids"),
    ],
)
def test_what_cannot_be_declared_is_refused_with_a_sentence(space, limit, says):
    with pytest.raises(ConfigError, match=says):
        discrete_env(Shows(space), ids="columns", max_entities=limit)


def test_stacked_frames_of_sequences_are_refused():
    with pytest.raises(ConfigError, match=r"gymnasium\.frame_stack: observations with a Sequence are not stacked"):
        discrete_env(Shows(SPACE), frame_stack=2, max_entities=2)


@pytest.mark.parametrize(
    ("units", "says"),
    [
        ((unit(1, 0, 0),) * 3, "units has 3 entities; gymnasium.max_entities allows 2"),
        ((unit(0, 0, 0),), r"\['units'\]\[0\]\['kind'\] is 0, which its space .* does not contain"),
        ((unit(1, np.nan, 0),), "not finite"),
    ],
)
def test_entities_that_break_the_declaration_are_the_envs_fault(units, says):
    shown = {"gold": np.zeros(1, np.float32), "turn": np.zeros(2, np.int64), "units": units}
    env = discrete_env(Shows(SPACE, shown), ids="columns", max_entities=2)
    with pytest.raises((EnvError, ConfigError), match=says):
        check_env(lambda: env, "game")
