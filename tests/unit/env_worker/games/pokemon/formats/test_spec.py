"""What the name of a format says."""

import pytest

from simul.common.errors import ConfigError
from simul.env_worker.games.pokemon.formats.spec import generation, is_doubles


def test_generation_of_a_format():
    assert generation("gen4randombattle") == 4
    with pytest.raises(ConfigError, match="gen9randombattle"):
        generation("randombattle")


def test_doubles_are_in_the_name_not_in_custom_rules():
    assert is_doubles("gen9randomdoublesbattle")
    assert not is_doubles("gen9customgame@@@+Doubles Team")
