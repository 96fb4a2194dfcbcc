"""From the configuration to a source: names, options, errors, seeds."""

from __future__ import annotations

import sys
import types
from functools import partial
from pathlib import Path

import gymnasium
import pytest

from simul.common.config.game_description import Game
from simul.common.config.games.gymnasium import GymnasiumConfig
from simul.common.config.schema import Config, LearnerConfig, WorkersConfig
from simul.common.config.trust import EVERYTHING
from simul.common.errors import ConfigError
from simul.common.protocol.decisions import Action
from simul.common.protocol.specs import GameSpec
from simul.env_worker.games.gymnasium.source import GymnasiumSource
from simul.env_worker.games.loading import SOURCE_METHODS, build_source, game_spec, worker_seed
from simul.env_worker.games.pokemon.install import folder
from simul.env_worker.games.pokemon.tables import random_sets  # noqa: F401 - before a test moves its folder
from tests.support.small_games import TicTacToe

ROOT = Path(__file__).parents[4]
MEMORY = "simul.env_worker.games.gymnasium.memory:MemoryEnv"
ENVS = WorkersConfig(envs=3)


class Cards(TicTacToe):
    """A game that hides something."""

    hidden_information = True


class Drawing(TicTacToe):
    """A game that draws by itself."""

    draws_in_apply = True


def test_search_refuses_a_game_that_draws_where_no_event_of_chance_says_so():
    config = Config(game=f"{__name__}:Drawing", learner=LearnerConfig(algorithm="alphazero"))
    with pytest.raises(ConfigError, match="draws when an action is applied, and a search would see what comes"):
        game_spec(config, EVERYTHING)


def test_search_refuses_a_game_of_ones_own_that_hides_something():
    config = Config(game=f"{__name__}:Cards", learner=LearnerConfig(algorithm="alphazero"))
    with pytest.raises(ConfigError, match="has hidden information, which a search would see"):
        game_spec(config, trust=EVERYTHING)
    assert game_spec(Config(game=config.game), trust=EVERYTHING).seats == 2


class OwnSource:
    """Offers by itself all that a worker calls."""

    def __init__(self, **options):
        self.spec = GameSpec(name="own", observation_size=1, num_actions=2)
        self.options = options
        self.envs = options["envs"]
        self.calls = []

    def __getattr__(self, name):
        if name not in SOURCE_METHODS:
            raise AttributeError(name)
        return lambda *arguments: self.calls.append(name)

    def poll(self):
        return []

    def act(self, actions):
        pass


class HalfSource:
    """Forgets most of it."""

    def __init__(self, **options):
        self.envs = 1

    def poll(self):
        return []

    def act(self, actions):
        pass


class UntypedSource(OwnSource):
    """Its spec is no GameSpec."""

    def __init__(self, **options):
        super().__init__(**options)
        self.spec = {"observation_size": 1}


@pytest.fixture(autouse=True)
def _modules(monkeypatch):
    module = types.ModuleType("a_users_module")
    vars(module).update(OwnSource=OwnSource, HalfSource=HalfSource, UntypedSource=UntypedSource, number=3)
    monkeypatch.setitem(sys.modules, "a_users_module", module)
    monkeypatch.syspath_prepend(str(ROOT))


def build(config, **options):
    given = {"index": 0, "episodes": None, "greedy": False, "record": True}
    return build_source(config, **{**given, **options}, trust=EVERYTHING)


def gym(env_id, **kwargs):
    return Config(game="gymnasium", gymnasium=GymnasiumConfig(id=env_id, kwargs=kwargs), workers=ENVS)


def test_a_registered_id():
    source = build(gym("CartPole-v1"))
    assert isinstance(source, GymnasiumSource)
    assert source.envs == 3
    assert source.spec == game_spec(gym("CartPole-v1"), trust=EVERYTHING)
    assert source.spec.name == "gymnasium/CartPole-v1"


def test_keyword_arguments_and_reward_scale_reach_the_env():
    config = Config(
        game="gymnasium", workers=WorkersConfig(envs=1),
        gymnasium=GymnasiumConfig(id="CartPole-v1", kwargs={"max_episode_steps": 1}, reward_scale=0.1),
    )  # fmt: skip
    corridor = Config(
        game="examples.custom_env:Corridor", gymnasium=GymnasiumConfig(reward_scale=0.5), workers=WorkersConfig(envs=1)
    )
    for chosen, reward, ends in ((config, 0.1, True), (corridor, -0.005, False)):
        source = build(chosen, episodes=1)
        source.start()
        source.poll()
        source.act([Action(0, 0, 0, 0, 0, 1, 0.0, 0.0, 1)])
        assert [row.reward for row in source.poll()] == pytest.approx([reward])
        assert source.idle() == ends


def test_the_example_of_a_users_env():
    config = Config(game="examples.custom_env:Corridor", game_options={"length": 3}, workers=WorkersConfig(envs=1))
    assert game_spec(config, trust=EVERYTHING).name == "examples.custom_env:Corridor"
    source = build(config, episodes=1)
    source.start()
    masks = []
    while not source.idle():
        for row in source.poll():
            if row.mask is not None:
                masks.append(row.mask.tolist())
                source.act([Action(row.env, 0, row.episode, row.step, 0, 1, 0.0, 0.0, 1)])
    assert masks == [[0, 1], [1, 1], [1, 1]]
    assert source.metrics()["returns"]["mean"] == pytest.approx(0.98)


@pytest.mark.parametrize(
    ("game", "name"), [("gymnasium", "gymnasium/benchmarks.learn_envs:SeekEnv"), ("benchmarks.learn_envs:SeekEnv",) * 2]
)
def test_frames_are_stacked_and_images_stay_bytes(game, name):
    config = Config(
        game=game, gymnasium=GymnasiumConfig(id="benchmarks.learn_envs:SeekEnv", frame_stack=3), workers=ENVS
    )
    spec = GameSpec(name, 216, 4, "uint8", observation_shape=(3, 6, 6, 2), observation_axes="NHWC")
    assert game_spec(config, trust=EVERYTHING) == build(config).spec == spec


@pytest.mark.parametrize(
    ("game", "kind"), [("a_users_module:OwnSource", "an EnvSource"), ("examples.custom_game:TicTacToe", "a TurnGame")]
)
@pytest.mark.parametrize("given", [{"frame_stack": 2}, {"reward_scale": 0.5}, {"ids": "columns"}])
def test_settings_of_gymnasium_envs_are_refused_for_other_games(game, kind, given):
    config = Config(game=game, gymnasium=GymnasiumConfig(**given), workers=ENVS)
    for make in (build, partial(game_spec, trust=EVERYTHING)):
        with pytest.raises(ConfigError, match=f"{next(iter(given))} is for Gymnasium environments; {game} is {kind}"):
            make(config)


def test_components_are_chosen_one_by_one():
    config = gym("benchmarks.learn_envs:ChordEnv")
    spec = game_spec(config, trust=EVERYTHING)
    assert (spec.observation_size, spec.num_actions) == (13, 4)
    source = build(config)
    source.start()
    assert [row.mask.sum() for row in source.poll()] == [1, 1, 1]  # the first tone is given


def test_a_function_that_wraps_continuous_actions():
    def pendulum(bins):
        return gymnasium.wrappers.DiscretizeAction(gymnasium.make("Pendulum-v1"), bins=bins, multidiscrete=True)

    sys.modules["a_users_module"].pendulum = pendulum
    config = Config(game="a_users_module:pendulum", game_options={"bins": 7}, workers=ENVS)
    assert game_spec(config, trust=EVERYTHING) == build(config).spec
    assert game_spec(config, trust=EVERYTHING).num_actions == 7


def test_a_class_that_is_a_source_itself():
    config = Config(game="a_users_module:OwnSource", game_options={"size": 4}, workers=ENVS)
    source = build(config, index=2, episodes=5)
    assert source.options == {
        "size": 4, "index": 2, "envs": 3, "seed": worker_seed(1, 2, evaluation=True),
        "record": True, "greedy": False, "episodes": 5,
    }  # fmt: skip
    assert game_spec(config, trust=EVERYTHING).name == "own"


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (Config(game="chess"), "Unknown game 'chess'; expected pokemon, gymnasium, .*or module:Class"),
        (gym("CartPole-v9"), "; did you mean CartPole-v"),
        (gym("no_such_module:Thing"), "'no_such_module' of 'no_such_module:Thing' cannot be imported"),
        (
            gym(MEMORY.replace("Env", "Enw")),
            "has no class 'MemoryEnw'; did you mean MemoryEnv",
        ),
        (gym("CartPole-v1", colour="red"), "does not work: .*TypeError"),
        (Config(game="examples.custom_env:Corridor", game_options={"width": 3}), "does not work: TypeError"),
        (Config(game="simul.common:config"), r"is a module; expected .* simul\.common\.config:NAME"),
        (Config(game="a_users_module:number"), "has no class 'number'"),
        (Config(game="a_users_module:HalfSource"), "lacks start, episode, abort, set_policies, .* of an EnvSource"),
        (Config(game="a_users_module:UntypedSource"), r"expected a simul\.GameSpec"),
        (gym("Pendulum-v1"), "expected gymnasium.spaces.Discrete"),
    ],
)
def test_errors_are_sentences(config, says):
    with pytest.raises(ConfigError, match=says):
        build(config)
    with pytest.raises(ConfigError, match=says):
        game_spec(config, trust=EVERYTHING)


def test_replays_of_a_game_that_writes_none(tmp_path, monkeypatch):
    monkeypatch.setattr("simul.env_worker.games.loading.game_called", lambda name: Game())
    with pytest.raises(ConfigError, match=r"The game gymnasium writes no replays\. Leave --replays out"):
        build(gym("CartPole-v1"), replays=tmp_path)


def test_worker_seeds_do_not_overlap():
    seeds = [
        worker_seed(seed, index, evaluation=evaluation)
        for seed in range(50) for index in range(50) for evaluation in (False, True)
    ]  # fmt: skip
    assert len(set(seeds)) == len(seeds)
    assert max(seeds) < 2**48


def test_missing_npm_packages_are_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "HOST_FOLDER", tmp_path)
    with pytest.raises(ConfigError, match=r"npm packages are missing\. Run `make setup`"):
        game_spec(Config(game="pokemon"), trust=EVERYTHING)


def test_a_bad_simul_node_is_said_with_the_spec(tmp_path, monkeypatch):
    package = tmp_path / "node_modules" / "pokemon-showdown" / "package.json"
    package.parent.mkdir(parents=True)
    package.touch()
    monkeypatch.setattr(folder, "HOST_FOLDER", tmp_path)
    monkeypatch.setenv("SIMUL_NODE", str(tmp_path / "absent"))
    with pytest.raises(ConfigError, match=r"SIMUL_NODE=.*absent"):
        game_spec(Config(game="pokemon"), trust=EVERYTHING)
