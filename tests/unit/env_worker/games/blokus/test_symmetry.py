"""The symmetries that the game has, and those that it has not."""

from __future__ import annotations

import random

import numpy as np

from simul.env_worker.games.blokus.board import classic, duo
from simul.env_worker.games.blokus.notation import squares_of
from simul.env_worker.games.blokus.symmetry import transposed_actions
from simul.env_worker.games.blokus.turn_game import Blokus


def test_reflecting_the_view_exchanges_rows_and_columns_of_each_action():
    mapped = transposed_actions(duo())
    assert (mapped[mapped] == np.arange(duo().placements + 1)).all()
    assert mapped[-1] == duo().placements
    for action in range(0, duo().placements, 53):
        squares = {(column, row) for row, column in squares_of(duo(), 0, action)}
        assert set(squares_of(duo(), 0, int(mapped[action]))) == squares


def test_duo_reflected_in_its_main_diagonal_is_the_same_game():
    draw, game, reflected = random.Random(1), Blokus(duo()), Blokus(duo())
    assert game.symmetries == 2
    actions, seen = game.turn_actions(1), []
    assert game.turn_actions(0).tolist() == list(range(duo().placements + 1))
    while seats := game.acting():
        assert reflected.acting() == seats
        for seat in range(2):
            assert (reflected.observation(seat) == game.turn_observation(game.observation(seat), 1)).all()
        legal = game.legal_actions(seats[0])
        assert sorted(actions[legal]) == reflected.legal_actions(seats[0]).tolist()
        seen.append((game.clone(), reflected.clone(), seats[0]))
        action = int(draw.choice(legal))
        game.apply({seats[0]: action})
        reflected.apply({seats[0]: int(actions[action])})
    assert game.points() == reflected.points()
    for before, turned, seat in seen:
        assert (turned.ending(seat, reflected) == game.turn_ending(before.ending(seat, game), 1)).all()


def test_classic_with_the_colours_moved_on_by_one_is_the_same_game():
    """Each colour's actions, played by the next colour: all legal sets agree, because every view is turned alike."""
    assert Blokus(classic(4)).symmetries == 1
    draw, game, moved = random.Random(2), Blokus(classic(4)), Blokus(classic(4))
    moved.state[0] = 1  # the second colour begins
    while seats := game.acting():
        (seat,) = seats
        assert moved.acting() == ((seat + 1) % 4,)
        legal = game.legal_actions(seat)
        assert moved.legal_actions((seat + 1) % 4).tolist() == legal.tolist()
        action = int(draw.choice(legal))
        game.apply({seat: action})
        moved.apply({(seat + 1) % 4: action})
    assert moved.points() == game.points()[-1:] + game.points()[:-1]
