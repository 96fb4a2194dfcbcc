"""What the name of a format says."""

import pytest

from simul.common.errors import ConfigError
from simul.env_worker.games.pokemon.formats.spec import generation


def test_generation_of_a_format():
    assert generation("gen4randombattle") == 4
    with pytest.raises(ConfigError, match="gen9randombattle"):
        generation("randombattle")
