"""The example of a user's own TurnGame is tic-tac-toe."""

from __future__ import annotations

import random

import pytest

from simul.common.config.schema import Config, OpponentsConfig, WorkersConfig
from simul.common.config.trust import EVERYTHING
from simul.env_worker.games.loading import build_source, game_spec
from simul.env_worker.games.openspiel.game import load_game
from tests.support.turn_games import any_legal, play

CONFIG = Config(
    game="examples.custom_game:TicTacToe", workers=WorkersConfig(envs=4),
    opponents=OpponentsConfig(self_play=0.5, random=0.5),
)  # fmt: skip


def test_it_is_hosted_with_opponents():
    assert game_spec(CONFIG, trust=EVERYTHING).seats == 2
    source = build_source(CONFIG, index=0, episodes=50, greedy=False, record=True, trust=EVERYTHING)
    source.start()
    play(source, any_legal(1))
    metrics = source.metrics()
    assert metrics["episodes"]["finished"] == 50
    assert set(metrics["results"]) == {"random", "self_play"}


def test_its_games_are_those_of_openspiel():
    pytest.importorskip("pyspiel", reason="the extra [openspiel] is not installed")
    from examples.custom_game import TicTacToe

    ours, theirs, choose = TicTacToe(), load_game("tic_tac_toe", {}), random.Random(1)
    for seed in range(200):
        ours.reset(seed)
        state = theirs.new_initial_state()
        while not state.is_terminal():
            assert list(ours.acting()) == [state.current_player()]
            assert ours.legal_actions(ours.turn).tolist() == state.legal_actions()
            action = choose.choice(state.legal_actions())
            ours.apply({ours.turn: action})
            state.apply_action(action)
        assert not ours.acting()
        assert list(ours.returns()) == state.returns()
