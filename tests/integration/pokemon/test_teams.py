"""The real validator, and a format that is played with team files and team preview, with either encoder."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.config import PokemonConfig
from common.errors import ConfigError
from env_worker.games.pokemon.teams import check_battles
from tests.integration.pokemon.test_source import check_accounts, make_source, played

TEAMS = Path(__file__).parents[2] / "golden" / "pokemon" / "teams" / "gen9ou.txt"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"format": "gen9randombatle"}, "did you mean gen9randombattle"),
        ({"format": "gen9randomdoublesbattle"}, "doubles"),
        ({"format": "gen9ou"}, r"pokemon\.teams"),
        ({"format": "gen8ou", "teams": str(TEAMS)}, "Great Tusk"),
        ({"format": "gen9randombattle", "teams": str(TEAMS)}, "no effect"),
    ],
)
def test_what_cannot_be_played_is_one_sentence(settings, words):
    with pytest.raises(ConfigError, match=words):
        check_battles(PokemonConfig(**settings))


def games_with_teams(encoder: str) -> dict[tuple, bytes]:
    config = PokemonConfig(format="gen9ou", teams=str(TEAMS), encoder=encoder, max_turns=60)
    rows, metrics = played(make_source(config, envs=4, episodes=6))
    check_accounts(metrics)
    assert metrics["episodes"]["finished"] == 6
    assert metrics["team_previews"] == 12
    assert metrics["invalid_choices"] == metrics["bad_actions"] == 0
    return rows


def test_both_encoders_play_equal_games_with_teams():
    assert games_with_teams("python") == games_with_teams("host")
