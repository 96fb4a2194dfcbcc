"""What is missing for Pokémon is said in a sentence, before anything starts."""

from __future__ import annotations

import pytest

from simul.common.config.schema import Config
from simul.common.protocol.errors import ConfigError
from simul.env_worker.games import loading


def test_missing_npm_packages_are_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "SIM_HOST", tmp_path)
    with pytest.raises(ConfigError, match=r"npm packages are missing\. Run `make setup`"):
        loading.game_spec(Config(game="pokemon"))


def test_a_bad_simul_node_is_said_with_the_spec(tmp_path, monkeypatch):
    package = tmp_path / "node_modules" / "pokemon-showdown" / "package.json"
    package.parent.mkdir(parents=True)
    package.touch()
    monkeypatch.setattr(loading, "SIM_HOST", tmp_path)
    monkeypatch.setenv("SIMUL_NODE", str(tmp_path / "absent"))
    with pytest.raises(ConfigError, match=r"SIMUL_NODE=.*absent"):
        loading.game_spec(Config(game="pokemon"))
