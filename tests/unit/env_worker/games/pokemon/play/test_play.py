"""Which runs `simul play` does not take."""

import pytest

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.config.schema import Config
from simul.common.config.trust import NOTHING
from simul.common.errors import ConfigError
from simul.common.role.run_directory import RunDir
from simul.env_worker.games.pokemon.play.play import _config


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (Config(), "plays gymnasium; only Pokémon"),
        (
            Config(game="pokemon", pokemon=PokemonConfig(format="gen9championsvgc2026regmbbo3")),
            "a best of three; .* train in gen9championsvgc2026regmb\\.",
        ),
    ],
)
def test_what_is_not_played_is_a_sentence(tmp_path, config, words):
    run_dir = RunDir(tmp_path)
    run_dir.write_config(config)
    with pytest.raises(ConfigError, match=words):
        _config(run_dir, NOTHING)


def test_doubles_are_played(tmp_path):
    run_dir = RunDir(tmp_path)
    config = Config(game="pokemon", pokemon=PokemonConfig(format="gen9randomdoublesbattle"))
    run_dir.write_config(config)
    assert _config(run_dir)[0].pokemon == config.pokemon
