"""`simul init`: what it writes fits the game, the network and the strict configuration, and nothing is overwritten."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

from simul.common.config.learner_presets import LEARNER_PRESETS
from simul.common.config.loader import load_config
from simul.common.config.schema import NetworkConfig
from simul.common.config.trust import EVERYTHING
from simul.common.nets.build import build_network
from simul.env_worker.games.loading import game_spec
from simul.launch import cli


@pytest.fixture
def made(tmp_path, monkeypatch, capsys):
    """What `simul init first_game` printed, in the folder where it ran."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert cli.main(["init", "first_game"]) == 0
    yield capsys.readouterr().out
    for name in [name for name in sys.modules if name.partition(".")[0] == "first_game"]:
        del sys.modules[name]


def test_it_says_what_it_wrote_and_what_comes_next(made, tmp_path):
    files = sorted(path.name for path in (tmp_path / "first_game").iterdir())
    assert files == ["env.py", "first_game.yaml", "network.py"]
    assert [line.split()[:2] for line in made.splitlines()[:-1]] == [
        ["wrote", f"first_game/{name}"] for name in ("first_game.yaml", "env.py", "network.py")
    ]
    assert made.splitlines()[-1] == "Next: simul up first_game/first_game.yaml"
    for line in (tmp_path / "first_game" / "first_game.yaml").read_text().splitlines():
        assert not line or "# " in line, f"no comment: {line}"


@pytest.mark.parametrize("mode", ["default", "test"])
def test_the_configuration_shows_the_defaults_of_small_games(made, mode):
    notes: list[str] = []
    config = load_config("first_game/first_game.yaml", mode=mode, notes=notes)
    assert notes == []  # every key of the preset is written down
    preset = LEARNER_PRESETS["small games"]
    assert {key: getattr(config.learner, key) for key in preset} == preset
    run_dir = "runs/first_game" + ("-test" if mode == "test" else "")
    assert (config.game, config.run_dir) == ("first_game.env:Nim", run_dir)


def test_the_game_keeps_its_rules(made):
    from first_game.env import Nim  # type: ignore[import-not-found]

    env, rng, returns = Nim(size=4), np.random.default_rng(0), []
    for episode in range(200):
        _, info = env.reset(seed=episode)
        ended = False
        while not ended:
            before = env.piles.copy()
            assert info["action_mask"].tolist() == [int(n < pile) for pile in before for n in range(4)]
            observation, reward, ended, truncated, info = env.step(rng.choice(np.flatnonzero(info["action_mask"])))
            assert observation.reshape(3, 5).argmax(1).tolist() == env.piles.tolist()
            assert (env.piles >= 0).all()
            assert ended == (not env.piles.any()) == bool(reward)
            assert not truncated
        returns.append(reward)
    assert abs(np.mean(returns)) < 0.3  # both play at random


def test_the_network_fits_the_game(made):
    spec = game_spec(load_config("first_game/first_game.yaml"), trust=EVERYTHING)
    network = build_network(NetworkConfig("first_game.network:Network", {"hidden": 8}), spec, trust=EVERYTHING)
    state = torch.zeros(2, 8)
    logits, value, state = network(torch.zeros(2, spec.observation_size), torch.ones(2, spec.num_actions).bool(), state)
    assert (logits.shape, value.shape, state.shape) == ((2, spec.num_actions), (2,), (2, 8))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("first_game", "first_game exists already"),
        ("my-game", "cannot be the name of a Python package"),
        ("a/b", "cannot be the name of a Python package"),
        ("class", "cannot be the name of a Python package"),
        ("numpy", "is the name of an installed Python package"),
        ("cartpole", "cartpole is the name of a configuration that comes with Simul"),
        ("snake", "snake.py is a Python module beside it"),
    ],
)
def test_nothing_is_overwritten_or_hidden(made, tmp_path, capsys, name, words):
    (tmp_path / "first_game" / "env.py").write_text("mine")
    (tmp_path / "snake.py").touch()
    assert cli.main(["init", name]) == 2
    assert words in capsys.readouterr().err
    assert (tmp_path / "first_game" / "env.py").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first_game", "snake.py"]


def test_a_name_of_letters_beyond_ascii_can_be_used(made, monkeypatch):
    assert cli.main(["init", "über"]) == 0
    config = load_config("über/über.yaml")
    assert game_spec(config, trust=EVERYTHING).name == config.game == "über.env:Nim"
    monkeypatch.delitem(sys.modules, "über.env")
    monkeypatch.delitem(sys.modules, "über")
