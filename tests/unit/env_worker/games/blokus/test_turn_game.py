"""Blokus as a TurnGame: who acts, what is observed, what is refused."""

from __future__ import annotations

import random
from xml.etree import ElementTree

import numpy as np
import pytest

from simul.env_worker.games.base.turn_game import IllegalActionError, TurnGame
from simul.env_worker.games.blokus.board import Variant, classic, duo
from simul.env_worker.games.blokus.kernels import COVERED, colour_points
from simul.env_worker.games.blokus.notation import squares_of
from simul.env_worker.games.blokus.turn_game import Blokus
from tests.support.turn_games import played_on

VARIANTS = [duo(), classic(2), classic(3), classic(4)]
ALL = pytest.mark.parametrize("variant", VARIANTS, ids=["duo", "classic-2", "classic-3", "classic-4"])


def played(variant: Variant, plies: int) -> Blokus:
    game = Blokus(variant)
    played_on(game, plies)
    return game


@ALL
def test_a_random_game_ends_and_its_returns_add_up_to_zero(variant):
    draw, game = random.Random(1), Blokus(variant)
    game.reset(0)
    while seats := game.acting():
        assert game.returns() == [0.0] * variant.seats
        game.apply({seats[0]: int(draw.choice(game.legal_actions(seats[0])))})
    assert sum(game.returns()) == pytest.approx(0)
    points = game.points()
    assert [score == max(game.returns()) for score in game.returns()] == [each == max(points) for each in points]
    assert game.figures()["points"] == points


@ALL
def test_the_position_after_an_action_is_that_of_a_copy_that_takes_it(variant):
    draw, game = random.Random(5), Blokus(variant)
    while seats := game.acting():
        action = int(draw.choice(game.legal_actions(seats[0])))
        before = game.state.copy()
        fast, plain = game.after(action), TurnGame.after(game, action)
        assert (game.state == before).all()
        assert (fast.game.state == plain.game.state).all()
        assert fast.game.moves == plain.game.moves
        assert tuple(fast.acting) == tuple(plain.acting)
        if fast.acting:
            assert fast.actions.dtype == plain.actions.dtype == np.int64
            assert fast.actions.tolist() == plain.actions.tolist()
            assert fast.observation.tolist() == plain.observation.tolist()
        game.apply({seats[0]: action})


def test_an_illegal_action_is_refused_by_name():
    game = Blokus(duo())
    with pytest.raises(IllegalActionError, match="is not legal for purple now"):
        game.apply({0: duo().placements})
    with pytest.raises(IllegalActionError, match=r"expected an action of seat \[0\]"):
        game.apply({1: int(game.legal_actions(0)[0])})


@ALL
def test_planes_of_bytes_come_first(variant):
    spec = Blokus(variant).spec
    planes = [part for part in spec.layout if part.start < np.prod(spec.observation_shape)]
    assert sum(part.size for part in planes) == np.prod(spec.observation_shape)
    assert {part.high for part in planes} == {255}


def part_of(game: Blokus, seat: int, name: str) -> np.ndarray:
    part = game.spec.slice(name)
    return game.observation(seat)[part.start : part.start + part.size]


@ALL
def test_planes_of_the_seat_to_move_agree_with_its_legal_actions(variant):
    """Every placement lies on squares that are not forbidden, one of them a corner; its piece is left."""
    game, draw, side = Blokus(variant), random.Random(4), variant.side
    while seats := game.acting():
        seat = seats[0]
        forbidden = part_of(game, seat, "forbidden.0").reshape(side, side)
        corners = part_of(game, seat, "corners.0").reshape(side, side)
        left = part_of(game, seat, "left.0")
        actions = game.legal_actions(seat).tolist()
        for action in actions[:: len(actions) // 10 + 1]:
            squares = squares_of(variant, 0, action)  # in the view, which is the first colour's board
            if not squares:
                continue
            assert not any(forbidden[at] for at in squares)
            assert any(corners[at] == 255 for at in squares)
            assert left[game.tables.placements[action, 0]] == 1
        game.apply({seat: int(draw.choice(actions))})


@ALL
def test_the_reach_of_the_seat_to_move_is_the_largest_of_its_placements_over_each_square(variant):
    game, draw, side = Blokus(variant), random.Random(4), variant.side
    while seats := game.acting():
        actions = game.legal_actions(seats[0]).tolist()
        if len(game.moves) % 9 == 0:
            largest = np.zeros((side, side), int)
            for squares in (squares_of(variant, 0, action) for action in actions):
                for at in squares:
                    largest[at] = max(largest[at], len(squares))
            reach = part_of(game, seats[0], "reach.0").reshape(side, side)
            assert (reach == 51 * largest).all()
            points, placements, reached, *_ = part_of(game, seats[0], "counts.0").tolist()
            placed = sum(action != variant.placements for action in actions)
            assert placements == min(255, int(36 * np.log1p(placed)))
            assert reached == 51 * int(largest.sum()) // side**2
            assert points == 2 * colour_points(game.state, game.colour)
            for other in range(1, len(variant.colours)):
                own, others = (part_of(game, seats[0], f"counts.{colour}").astype(int) for colour in (0, other))
                lead = (own - others) * [4, 1, 1, 2, 2]
                assert part_of(game, seats[0], f"lead.{other}").tolist() == (128 + lead.clip(-127, 127)).tolist()
        game.apply({seats[0]: int(draw.choice(actions))})


@ALL
def test_the_ending_shows_each_square_to_the_colour_that_owns_it_and_the_margin(variant):
    """In every position's own view: what lies there stays there, and the final points tell the margin."""
    game, draw, side = Blokus(variant), random.Random(6), variant.side
    seen = []
    while seats := game.acting():
        seen.append((game.clone(), seats[0]))
        game.apply({seats[0]: int(draw.choice(game.legal_actions(seats[0])))})
    colours = len(variant.colours)
    for position, seat in seen:
        ending = position.ending(seat, game)
        assert (ending.dtype, len(ending)) == (np.uint8, sum(game.spec.ending_sizes))
        planes = ending[:-1].reshape(colours, side, side)
        assert set(np.unique(planes)) <= {0, 255}
        assert (planes > 0).sum(axis=0).max() == 1
        first = position.colour
        for turn, plane in enumerate(planes):
            assert (plane >= part_of(position, seat, f"squares.{turn}").reshape(side, side)).all()
            assert (plane > 0).sum() == game.state[COVERED + (first + turn) % colours]
        points = game.points()
        margin = points[seat] - max(points[:seat] + points[seat + 1 :])
        assert ending[-1] == 255 * (min(max(margin, -50), 50) + 50) // 100


def test_every_colour_sees_the_same_when_the_same_was_placed():
    """After the same first piece of all colours in their views, each colour's own board looks alike."""
    game = Blokus(classic(4))
    action = int(game.legal_actions(0)[5])
    for seat in range(4):
        game.apply({seat: action})
    whole = [game.observation(seat) for seat in range(4)]
    own = game.spec.slice("squares.0").size
    for seat in range(4):
        assert (whole[seat][: 3 * 4 * own] == whole[0][: 3 * 4 * own]).all()
    first, second = Blokus(duo()), Blokus(duo())
    action = int(first.legal_actions(0)[100])
    first.apply({0: action})
    second.apply({0: action})
    second.apply({1: action})
    assert (part_of(first, 0, "squares.0") == part_of(second, 1, "squares.0")).all()
    assert (part_of(second, 0, "corners.0") == part_of(second, 1, "corners.0")).all()


def test_numbers_behind_the_planes():
    game = played(duo(), 6)
    assert part_of(game, 0, "left.0").sum() == 18
    assert part_of(game, 0, "seat.0").tolist() == [1, 0]
    assert part_of(game, 0, "seat.1").tolist() == [0, 1]
    assert part_of(game, 1, "seat.0").tolist() == [1, 0]
    game.state[2] = 0b10  # the second colour has passed
    assert part_of(game, 0, "passed.1").tolist() == [1]
    assert part_of(game, 0, "passed.0").tolist() == [0]


def test_three_players_see_whose_the_shared_colour_is():
    game = played(classic(3), 3)
    assert (game.colour, game.acting()) == (3, (0,))
    assert part_of(game, 0, "seat.0").tolist() == [1, 0, 0]  # the shared colour, which seat 0 places now
    assert part_of(game, 1, "seat.0").tolist() == [1, 0, 0]  # seat 1 places its own next
    assert part_of(game, 0, "seat.1").tolist() == [1, 0, 0]
    assert part_of(game, 0, "seat.2").tolist() == [0, 1, 0]


def test_the_text_shows_pieces_starts_and_points():
    game = Blokus(duo())
    game.apply({0: int(game.legal_actions(0)[0])})
    text = game.render()
    assert text.splitlines()[0] == "   a b c d e f g h i j k l m n"
    assert text.count("+") == 1
    assert "P purple: 1 points; left (2 I3 " in text
    assert "O orange: 0 points to place; left (1 2 " in text
    assert "[" not in text


def test_the_picture_is_svg_with_a_rectangle_for_each_square():
    game = played(classic(4), 10)
    picture = ElementTree.fromstring(game.svg())
    assert len([each for each in picture if each.tag.endswith("rect")]) == 1 + 400
    assert game.svg().count("#222222") == len(squares_of(game.variant, *game.moves[-1]))
