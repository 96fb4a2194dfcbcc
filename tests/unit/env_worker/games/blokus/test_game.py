"""From the configuration to the source, its games and its opponents."""

from __future__ import annotations

import pytest

from simul.common.config.loader import load_config
from simul.common.config.matchups import Contestant, Pairing
from simul.common.config.schema import Config
from simul.common.config.trust import EVERYTHING
from simul.common.errors import ConfigError
from simul.env_worker.games.blokus.game import game_builder, players
from simul.env_worker.games.loading import build_source, game_spec


def configured(*overrides: str) -> Config:
    return load_config("blokus", overrides)


@pytest.mark.parametrize(
    ("overrides", "name", "seats", "actions"),
    [
        ([], "blokus/duo", 2, 13_730),
        (["blokus.variant=classic"], "blokus/classic", 4, 30_434),
        (["blokus.variant=classic", "blokus.players=2"], "blokus/classic", 2, 30_434),
        (["blokus.variant=classic", "blokus.players=3"], "blokus/classic", 3, 30_434),
    ],
)
def test_the_spec_of_each_variant(overrides, name, seats, actions):
    config = configured(*overrides)
    spec = game_spec(config)
    assert (spec.name, spec.seats, spec.num_actions) == (name, seats, actions)
    assert config.game_section.seats() == seats
    assert game_builder(config)().spec == spec


def test_every_scripted_opponent_of_the_description_has_a_player():
    config = configured()
    assert {"random", *players(config)} == set(config.blokus.description.scripted)


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("blokus.players=3", "Duo is for two players, got 3"),
        ("blokus.variant=trio", "expected one of"),
        ("blokus.mcts_rollouts=0", "blokus.mcts_rollouts"),
        ("blokus.best_first_strength=4", "best_first_strength=4: expected one of 1, 2, 3, got 4"),
        ("blokus.best_first_strength=strong", "best_first_strength=strong: expected one of 1, 2, 3"),
    ],
)
def test_impossible_settings_are_one_sentence(override, sentence):
    with pytest.raises(ConfigError, match=sentence):
        configured(override)


def test_an_engine_that_is_not_there_is_found_before_a_game_starts():
    with pytest.raises(ConfigError, match=r"Set blokus\.gtp to its path and arguments"):
        game_spec(configured("opponents.self_play=0.5", "opponents.largest_piece=0", "opponents.gtp=0.5"))
    pairing = Pairing(Contestant("random", bot="random"), Contestant("gtp", bot="gtp"), 2)
    with pytest.raises(ConfigError, match="There is no program 'missing'"):
        source_of(configured("blokus.gtp=missing --level 1"), pairing)


def source_of(config: Config, pairing: Pairing):
    return build_source(
        config, index=0, episodes=pairing.battles, greedy=True, record=False, pairings=[pairing], trust=EVERYTHING
    )


@pytest.mark.parametrize("bots", [("largest_piece", "mcts"), ("best_first", "mcts")])
def test_bots_play_each_other(bots):
    first, second = (Contestant(bot, bot=bot) for bot in bots)
    settings = ["blokus.mcts_rollouts=5", "blokus.best_first_strength=1", "workers.envs=2"]
    source = source_of(configured(*settings), Pairing(first, second, 2))
    source.start()
    while not source.idle():
        assert source.poll() == []
    figures = source.metrics()
    assert figures["episodes"]["finished"] == 2
    source.close()
