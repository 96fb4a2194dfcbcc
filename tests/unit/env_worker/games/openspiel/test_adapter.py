"""OpenSpiel's games, state by state as OpenSpiel itself plays them; what cannot be hosted is refused by name."""

from __future__ import annotations

import random

import numpy as np
import pytest

from simul.common.config.games.openspiel import OpenSpielConfig
from simul.common.config.schema import Config, OpponentsConfig
from simul.common.errors import ConfigError
from simul.env_worker.games.base.turn_game import CHANCE
from simul.env_worker.games.loading import build_source, game_spec
from tests.support.turn_games import any_legal, play

pyspiel = pytest.importorskip("pyspiel", reason="the extra [openspiel] is not installed")

GAMES = {
    "tic_tac_toe": {}, "connect_four": {}, "leduc_poker": {"players": 3}, "kuhn_poker": {}, "hex": {"board_size": 5},
    "backgammon": {}, "breakthrough": {"rows": 6, "columns": 6},
}  # fmt: skip


def config(name: str, parameters=None, **more) -> Config:
    return Config(game="openspiel", openspiel=OpenSpielConfig(name=name, parameters=parameters or {}), **more)


def make(name: str, parameters=None):
    from simul.env_worker.games.openspiel.adapter import OpenSpielGame
    from simul.env_worker.games.openspiel.game import load_game

    return OpenSpielGame(load_game(name, parameters or {}), name)


def tensor(state, game, seat):
    kind = game.get_type()
    read = state.information_state_tensor if kind.provides_information_state_tensor else state.observation_tensor
    return np.array(read(seat), np.float32)


@pytest.mark.parametrize("name", GAMES)
def test_games_are_those_of_the_library(name):
    """Play both by the same random events and actions; every state must be the same."""
    ours, theirs, draw = make(name, GAMES[name]), pyspiel.load_game(name, GAMES[name]), random.Random(1)
    for seed in range(3 if name == "backgammon" else 30):
        ours.reset(seed)
        state = theirs.new_initial_state()
        while not state.is_terminal():
            assert ours.acting() == ((CHANCE,) if state.is_chance_node() else (state.current_player(),))
            if state.is_chance_node():
                events, chances = ours.chance_outcomes()
                assert list(zip(events.tolist(), chances.tolist())) == list(state.chance_outcomes())
                action = ours.draw_chance(draw)
            else:
                seat = state.current_player()
                assert np.flatnonzero(ours.mask(seat)).tolist() == state.legal_actions()
                action = draw.choice(state.legal_actions())
                assert (ours.observation(seat) == tensor(state, theirs, seat)).all()
            ours.apply({ours.acting()[0]: action})
            state.apply_action(action)
            assert list(ours.returns()) == state.returns()
        assert ours.acting() == ()
        for seat in range(theirs.num_players()):
            assert (ours.observation(seat) == tensor(state, theirs, seat)).all()


def test_specs_have_the_librarys_sizes():
    spec = game_spec(config("leduc_poker", {"players": 3}))
    assert (spec.name, spec.seats, spec.observation_size, spec.num_actions) == ("openspiel/leduc_poker", 3, 47, 3)
    spec = game_spec(config("tic_tac_toe"))
    assert (spec.observation_shape, spec.observation_axes, spec.seats) == ((3, 3, 3), "CHW", 2)


@pytest.mark.parametrize(
    ("name", "parameters", "says"),
    [
        ("tic_tac_to", {}, "knows no game 'tic_tac_to'; did you mean tic_tac_toe"),
        ("goofspiel", {}, "The OpenSpiel game goofspiel has simultaneous moves; expected a sequential game"),
        ("mfg_garnet", {}, "The OpenSpiel game mfg_garnet has a mean field"),
        ("cribbage", {}, "cribbage offers no tensor"),
        ("hex", {"bord_size": 3}, "openspiel.parameters do not fit the game hex: .*bord_size"),
    ],
)
def test_what_cannot_be_hosted_is_one_sentence(name, parameters, says):
    with pytest.raises(ConfigError, match=says):
        game_spec(config(name, parameters))


def test_one_seat_has_a_spec_whatever_is_configured_but_a_worker_plays_it_without_opponents():
    shares = config("catch", opponents=OpponentsConfig(self_play=0.5, random=0.5))
    assert game_spec(shares).seats == 1
    with pytest.raises(ConfigError, match=r"openspiel/catch has one seat and no opponents; leave out opponents.random"):
        build_source(shares, index=0, episodes=5, greedy=False, record=True)
    source = build_source(config("catch"), index=0, episodes=5, greedy=False, record=True)
    source.start()
    play(source, any_legal(1))
    assert source.metrics()["episodes"]["finished"] == 5


def test_a_game_that_draws_its_own_chance_events_follows_the_seed():
    def cards(seed: int) -> list[float]:
        game = make("bridge_uncontested_bidding")
        game.reset(seed)
        while game.acting() == (CHANCE,):
            game.apply({CHANCE: game.draw_chance(random.Random(0))})
        return game.observation(0).tolist()

    assert cards(1) == cards(1)
    assert len({tuple(cards(seed)) for seed in range(5)}) == 5


def test_a_world_shows_its_seat_the_same_and_draws_the_others_cards():
    game, draw = make("leduc_poker"), random.Random(1)
    for _ in range(2):
        game.apply({CHANCE: game.draw_chance(draw)})
    worlds = [game.determinize(0, draw) for _ in range(200)]
    assert all((world.observation(0) == game.observation(0)).all() for world in worlds)
    assert len({world.observation(1).tobytes() for world in worlds}) == 5, "of six cards one is seat 0's"
    dice = make("backgammon")
    dice.apply({CHANCE: 0})
    assert str(dice.determinize(0, draw)._state) == str(dice._state), "nothing is hidden"
    with pytest.raises(NotImplementedError, match="openspiel/liars_dice cannot draw anew what a seat does not know"):
        make("liars_dice").determinize(0, draw)


def test_people_see_the_board_and_nothing_that_is_hidden_from_their_seat():
    game = make("tic_tac_toe")
    game.apply({0: 4})
    assert game.render(1) == game.render() == "  0 1 2\n0 . . .\n1 . x .\n2 . . .\nx: seat 0, o: seat 1"
    assert game.shown_action(1, 0) == "o(0,0)"
    assert game.parse_action(1, "0,0") == 0
    dice = make("backgammon")
    event = dice.draw_chance(random.Random(1))
    assert "roll" in dice.shown_action(CHANCE, event)
    poker = make("kuhn_poker")
    poker.apply({CHANCE: 2})
    poker.apply({CHANCE: 1})
    assert poker.shown_action(CHANCE, 0) == poker.shown_action(0, 0) == ""
    assert poker.render(0) != poker.render(1)


def test_what_openspiel_itself_writes_of_a_parameter_is_printable(capfd):
    with pytest.raises(ConfigError, match="do not fit"):
        make("tic_tac_toe", {"\x1b]52;c;ZXZpbA==\x07\u202e": 1})
    assert capfd.readouterr().err.strip("\n").isprintable()
