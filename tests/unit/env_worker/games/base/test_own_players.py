"""Opponents of a user's own in a TurnGame."""

from __future__ import annotations

import pytest

from simul.common.config.loader import config_from_tree
from simul.common.config.schema import Config
from simul.common.config.trust import EVERYTHING
from simul.common.errors import ConfigError
from simul.env_worker.games.loading import build_source, game_spec
from tests.support.turn_games import any_legal, play

HERE = __name__


class First:
    """Takes the first legal action."""

    def choose(self, game, seat, draw):
        return game.legal_actions(seat)[0]


class Careless(First):
    """Now and then raises or chooses what is illegal."""

    def choose(self, game, seat, draw):
        luck = draw.random()
        if luck < 0.1:
            raise ValueError("careless")
        return 9 if luck > 0.9 else super().choose(game, seat, draw)


class NeedsPath(First):
    def __init__(self, path):
        """Not without."""


class Without:
    """Does not choose."""


def config(player: str, **more: object) -> Config:
    opponents = {f"{HERE}:{player}": 1.0, "self_play": 0.0}
    return config_from_tree({"game": "tests.support.turn_games:HighCard", "opponents": opponents, **more}, "the test")


def played(player: str, episodes: int) -> dict:
    own = config(player, workers={"max_failed_share": 1.0})
    source = build_source(own, index=0, episodes=episodes, greedy=False, record=True, trust=EVERYTHING)
    source.start()
    play(source, any_legal(1))
    return source.metrics()


def test_it_plays_under_its_name():
    assert sum(played("First", 6)["results"][f"{HERE}:First"].values()) == 6


def test_its_errors_abort_its_games_and_are_named():
    metrics = played("Careless", 40)
    assert metrics["episodes"]["aborted"].keys() == {"opponent_error"}
    said = " ".join(metrics["events"])
    assert "test_own_players.py:" in said
    assert f"{HERE}:Careless chose 9; expected one of " in said


@pytest.mark.parametrize(
    ("player", "sentence"),
    [
        ("Missing", "has no player 'Missing'"),
        ("Without", r"Without has no choose\(game, seat, draw\)"),
        ("NeedsPath", "NeedsPath cannot be made: TypeError"),
    ],
)
def test_one_that_cannot_be_made_is_refused_before_the_run(player, sentence):
    with pytest.raises(ConfigError, match=sentence):
        game_spec(config(player), EVERYTHING)
    evaluated = config("First", evaluation={"opponents": [f"{HERE}:{player}"]})
    with pytest.raises(ConfigError, match=sentence):
        game_spec(evaluated, EVERYTHING)
