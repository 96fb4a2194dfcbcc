"""Observation and reward of one's own: what may be declared, and the sentence for what may not."""

from __future__ import annotations

import numpy as np
import pytest

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.config.trust import EVERYTHING, NOTHING
from simul.common.errors import ConfigError
from simul.env_worker.games.pokemon.formats.spec import pokemon_spec
from simul.env_worker.games.pokemon.opponents.stock_battle import stock_battle
from simul.env_worker.games.pokemon.source.own_code import OwnCodeError, OwnReward, observed_spec, own_code

BATTLE = stock_battle("p1", 9, doubles=False)
MODULE = """
import numpy as np


class Pair:
    size = 2
    names = ("turn", "own")

    def embed_battle(self, battle):
        return [battle.turn, len(battle.team)]


class Unnamed(Pair):
    names = None


class NoSize:
    def embed_battle(self, battle):
        return [0.0]


class NoMethod:
    size = 2


class WrongNames(Pair):
    names = ("turn", "turn")


class Broken(Pair):
    def __init__(self):
        raise ValueError("no weights")


class Longer(Pair):
    def embed_battle(self, battle):
        return [0.0, 0.0, 0.0]


class NotANumber(Pair):
    def embed_battle(self, battle):
        return [0.0, np.nan]


class TooLarge(Pair):
    def embed_battle(self, battle):
        return [0.0, 1e300]


class Raises(Pair):
    def embed_battle(self, battle):
        return [battle.no_such_thing, 0.0]


class NoTuple(Pair):
    names = 12


class AsksForMore(Pair):
    def embed_battle(self, battle, extra):
        return [0.0, 0.0]


class Words(Pair):
    def embed_battle(self, battle):
        return ["a", "b"]


class Leaves(Pair):
    def embed_battle(self, battle):
        raise SystemExit(3)


def win_loss(battle):
    return 0.0


def by_place(battle, /):
    return 0.0


def all_of_it(battle, before, seat, parts):
    return battle.turn + before.turn + seat + parts["win_loss"]


def turn_only(battle):
    return battle.turn


def of_seat(seat, scale=2.0):
    return seat * scale


def infinite(battle):
    return float("inf")


def nothing(battle):
    return None


def reads_more(battle, observation):
    return 0.0
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("own")
    (path / "own_of_test.py").write_text(MODULE)
    return path


@pytest.fixture(autouse=True)
def _in_its_folder(folder, monkeypatch):
    monkeypatch.chdir(folder)


def config(observation: str = "", **settings) -> PokemonConfig:
    return PokemonConfig(observation=f"own_of_test:{observation}" if observation else "", **settings)


def test_the_vector_follows_the_built_in_row_or_stands_alone():
    builtin = pokemon_spec(PokemonConfig())
    beside = observed_spec(config("Pair"), EVERYTHING)
    alone = observed_spec(config("Unnamed", builtin_observation=False), EVERYTHING)
    assert beside.observation_size == builtin.observation_size + 2
    assert [part.name for part in beside.layout[-2:]] == ["user.turn", "user.own"]
    assert beside.layout[: len(builtin.layout)] == builtin.layout
    assert (alone.observation_size, [part.name for part in alone.layout]) == (2, ["user"])
    assert {beside.observation_dtype, alone.observation_dtype} == {"float32"}
    row = np.arange(builtin.observation_size).astype(np.float16)
    for name, settings, expected in [("Pair", {}, [*row, 0, 0]), ("Pair", {"builtin_observation": False}, [0, 0])]:
        own = own_code(config(name, **settings), EVERYTHING)
        observed = own.observation.observe(row, BATTLE)
        assert observed.dtype == np.float32
        assert observed.tolist() == expected


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("NoSize", r"NoSize.size is None \(own_of_test.py:\d+\); expected how many numbers embed_battle returns"),
        ("NoMethod", r"NoMethod has no embed_battle \(own_of_test.py:\d+\); expected `def embed_battle"),
        ("WrongNames", "WrongNames.names has 2 entries .*; expected 2 different names"),
        ("Broken", r"Broken failed: own_of_test.py:\d+: ValueError: no weights"),
        ("NoTuple", r"NoTuple failed: own_of_test.py:\d+: TypeError: 'int' object is not iterable"),
        (
            "AsksForMore",
            r"AsksForMore.embed_battle\(battle, extra\) \(own_of_test.py:\d+\): missing .*'extra'; expected",
        ),
        ("turn_only", "turn_only is a function; expected a class with `size` and `embed_battle"),
        ("Pear", "The module 'own_of_test' has no class 'Pear'; did you mean Pair?"),
    ],
)
def test_a_class_that_is_no_observation_is_refused(name, said):
    with pytest.raises(ConfigError, match=said):
        observed_spec(config(name), EVERYTHING)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Longer", r"own_of_test.py:\d+: embed_battle returned the shape \(3,\); expected \(2,\), the `size` of"),
        ("NotANumber", r"own_of_test.py:\d+: .*observation\[1\] is nan; expected finite numbers.*\(own\)"),
        ("TooLarge", r"observation\[1\] is inf"),
        ("Words", r"own_of_test.py:\d+: embed_battle returned \['a', 'b'\]; expected 2 numbers"),
        ("Leaves", r"own_of_test.py:\d+: SystemExit: 3"),
        ("Raises", r"own_of_test.py:\d+: AttributeError: .*no_such_thing"),
    ],
)
def test_what_embed_battle_may_not_return_names_its_line(name, said):
    own = own_code(config(name), EVERYTHING)
    with pytest.raises(OwnCodeError, match=said):
        own.observation.observe(np.zeros(3, np.float16), BATTLE)


@pytest.mark.parametrize(("name", "paid"), [("all_of_it", 1.5), ("turn_only", 0.0), ("of_seat", 2.0)])
def test_a_reward_gets_what_it_asks_for_by_name(name, paid):
    reward = OwnReward(f"own_of_test:{name}", EVERYTHING)
    assert reward.name == name
    assert reward.wants_before == (name == "all_of_it")
    assert reward.pay(BATTLE, BATTLE, 1, {"win_loss": 0.5}) == paid


def test_a_reward_that_cannot_be_paid_is_said():
    for name, said in [
        ("infinite", r"own_of_test.py:\d+: infinite returned inf"),
        ("nothing", r"own_of_test.py:\d+: nothing returned None; expected a number"),
    ]:
        reward = OwnReward(f"own_of_test:{name}", EVERYTHING)
        with pytest.raises(OwnCodeError, match=said):
            reward.pay(BATTLE, None, 0, {})
    with pytest.raises(ConfigError, match=r"reads_more asks for observation .*; expected any of battle, before, seat"):
        OwnReward("own_of_test:reads_more", EVERYTHING)
    for name, said in [("win_loss", "is named as a part of pokemon.rewards"), ("by_place", "cannot be given by name")]:
        with pytest.raises(ConfigError, match=said):
            OwnReward(f"own_of_test:{name}", EVERYTHING)
    with pytest.raises(ConfigError, match=r"own_of_test:Pair is a class; expected a function such as `def pair\("):
        OwnReward("own_of_test:Pair", EVERYTHING)


def test_code_that_nobody_trusts_is_not_imported():
    for named in (config("Pair"), config(reward="own_of_test:turn_only")):
        with pytest.raises(ConfigError, match="if you trust it, say so with --trust"):
            own_code(named, NOTHING)
