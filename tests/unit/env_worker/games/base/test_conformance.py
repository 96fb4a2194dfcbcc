"""What every game promises in `games/base/turn_game.py`: seed and actions determine it, a copy plays on alone."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from simul.common.config.loader import load_game
from simul.common.config.trust import EVERYTHING
from simul.env_worker.games.base.turn_game import CHANCE, IllegalActionError, TurnGame
from simul.env_worker.games.loading import turn_game
from tests.support.turn_games import played_on, take_any

pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries

ZOO = "pettingzoo:tests.support.zoo_envs"
GAMES = [
    "blokus:duo", "blokus:classic blokus.players=2", "blokus:classic blokus.players=3", "blokus:classic",
    "ofc", "ofc ofc.players=2", "ofc ofc.jokers=1 ofc.progressive=true", "ofc ofc.players=2 ofc.jokers=2 ofc.hands=3",
    "ofc ofc.stay=full_house_too ofc.hands=2", "ofc ofc.fantasyland=false", "ofc ofc.button=last",
    "openspiel:tic_tac_toe", "openspiel:backgammon", "openspiel:leduc_poker openspiel.parameters.players=3",
    "pettingzoo:classic.tictactoe_v3", "pettingzoo:classic.connect_four_v3", f"{ZOO}:Dice", f"{ZOO}:Turns",
]  # fmt: skip
EVERY_GAME = pytest.mark.parametrize("name", GAMES)


def new(name: str, seed: int = 5) -> TurnGame:
    game, *settings = name.split()
    for package, module in (("openspiel", "pyspiel"), ("pettingzoo", "pettingzoo")):
        if game.startswith(package):
            pytest.importorskip(module, reason=f"the extra [{package}] is not installed")
    found = turn_game(load_game(game, settings), EVERYTHING)()
    found.reset(seed)
    return found


def shown(game: TurnGame) -> list[Any]:
    """What the game says of its position."""
    acting = list(game.acting())
    seats = [] if CHANCE in acting else range(game.spec.seats)
    legal = [game.legal_actions(seat).tolist() for seat in acting if seat != CHANCE]
    return [acting, legal, [game.observation(seat).tolist() for seat in seats], list(game.returns()), game.truncated()]


@EVERY_GAME
def test_the_same_seed_and_actions_give_the_same_game(name: str) -> None:
    for seed in range(2):
        game, again, draw = new(name, seed), new(name, seed), random.Random(seed)
        while game.acting():
            again.apply(take_any(game, draw))
            assert shown(again) == shown(game)
        assert again.figures() == game.figures()
        game.reset(seed)
        assert shown(game) == shown(new(name, seed))


@EVERY_GAME
@pytest.mark.parametrize("turns", [0, 2])
def test_a_copy_is_in_the_same_state_and_plays_on_alone(name: str, turns: int) -> None:
    game = played_on(new(name), turns)
    copy, before = game.clone(), shown(game)
    assert shown(copy) == before
    actions, draw = [], random.Random(2)
    while copy.acting():
        actions.append(take_any(copy, draw))
    assert shown(game) == before
    again = game.clone()
    for each in actions:
        again.apply(each)
        game.apply(each)
        assert shown(again) == shown(game), "what is drawn is drawn alike"
    assert shown(copy) == shown(game)
    assert shown(copy.clone()) == shown(copy), "of a game that is over"


@EVERY_GAME
@pytest.mark.parametrize("turns", [0, 2])
def test_an_action_that_is_not_legal_is_refused_and_changes_nothing(name: str, turns: int) -> None:
    game = played_on(new(name), turns)
    before, acting = shown(game), game.acting()
    wrong: list[dict[int, int]] = [{}, {game.spec.seats: 0}]
    if acting[0] != CHANCE:
        legal = {seat: int(game.legal_actions(seat)[0]) for seat in acting}
        illegal = np.flatnonzero(game.mask(acting[0]) == 0)[:1].tolist()
        wrong += [{**legal, acting[0]: action} for action in (-1, game.spec.num_actions, 10**9, *illegal)]
        wrong += [{**legal, seat: 0} for seat in range(game.spec.seats) if seat not in acting][:1]
    for actions in wrong:
        with pytest.raises(IllegalActionError):
            game.apply(actions)
        assert shown(game) == before


@EVERY_GAME
def test_observations_and_actions_are_those_of_the_spec(name: str) -> None:
    game, draw = new(name), random.Random(1)
    spec = game.spec
    ends = np.cumsum([0, *(part.size for part in spec.layout)])
    assert [part.start for part in spec.layout] == ends[:-1].tolist()
    assert ends[-1] == (spec.observation_size if spec.layout else 0)
    while acting := game.acting():
        for seat in [] if acting[0] == CHANCE else acting:
            legal = game.legal_actions(seat)
            assert game.count_legal(seat) == len(legal) > 0
            assert (np.diff(legal) > 0).all()
            assert np.flatnonzero(game.mask(seat)).tolist() == legal.tolist()
        for seat in [] if acting[0] == CHANCE else range(spec.seats):
            observation = game.observation(seat)
            assert (observation.dtype, observation.shape) == (spec.dtype(), (spec.observation_size,))
            assert np.isfinite(observation).all()
            for part in spec.layout:
                values = observation[part.start : part.start + part.size]
                assert part.low <= values.min() <= values.max() <= part.high, part.name
        take_any(game, draw)
