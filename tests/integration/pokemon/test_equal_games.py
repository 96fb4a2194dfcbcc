"""Equal seeds play equal games, whoever encodes."""

from functools import cache

import pytest

from simul.common.config.games.pokemon import PokemonConfig
from tests.support.battles import make_source, played


@cache
def first_rows(seed: int, encoder: str = "host") -> dict[tuple, bytes]:
    rows, _ = played(make_source(PokemonConfig(encoder=encoder), envs=3, seed=seed, episodes=3))
    return rows


def test_equal_seeds_play_equal_games():
    assert first_rows(1) == first_rows.__wrapped__(1)
    assert first_rows(1) != first_rows(2)


@pytest.mark.slow  # test_reward_parts.py and test_teams.py: the same battles with either encoder
def test_both_encoders_play_equal_games():
    assert first_rows(1, "python") == first_rows(1, "host")
