"""Pieces, placements, starts and views."""

from __future__ import annotations

import pytest

from simul.env_worker.games.blokus.board import (
    SQUARES,
    classic,
    corners,
    duo,
    placement_number,
    tables,
    turned,
)
from simul.env_worker.games.blokus.notation import square_name, squares_of
from simul.env_worker.games.blokus.pieces import NAMES, ORIENTATIONS, PIECES

BOTH = pytest.mark.parametrize("variant", [duo(), classic(4)], ids=["duo", "classic"])


def test_21_pieces_of_89_squares_lie_in_91_ways():
    squares = sum(rows.count("#") for rows in PIECES.values())
    assert (len(PIECES), squares, len(ORIENTATIONS)) == (21, 89, 91)
    assert len({each.shape for each in ORIENTATIONS}) == 91
    ways = {name: sum(each.piece == index for each in ORIENTATIONS) for index, name in enumerate(NAMES)}
    assert ways["1"] == ways["O"] == ways["X"] == 1
    assert ways["2"] == ways["I3"] == ways["I5"] == 2
    assert ways["F"] == ways["L5"] == ways["N"] == ways["P"] == ways["Y"] == 8


@BOTH
def test_numbers_and_squares_of_placements_belong_together(variant):
    built = tables(variant)
    for number, (index, top, left) in enumerate(corners(variant).tolist()):
        squares = [(top + row, left + column) for row, column in ORIENTATIONS[index].shape]
        assert placement_number(variant, squares) == number
        if number % 97 == 0:
            assert squares_of(variant, 0, number) == squares
            assert [variant.cell(at) for at in squares] == built.placements[number, SQUARES:][: len(squares)].tolist()


def test_what_is_no_piece_has_no_number():
    assert placement_number(duo(), [(0, 0), (1, 1)]) is None
    assert placement_number(duo(), [(0, 0), (0, 0)]) is None
    assert placement_number(duo(), [(0, column) for column in range(6)]) is None


def test_duo_starts_at_e10_and_j5_and_classic_in_the_corners():
    assert [square_name(duo(), start) for start in duo().starts] == ["e10", "j5"]
    assert [square_name(classic(4), start) for start in classic(4).starts] == ["a20", "t20", "t1", "a1"]


@BOTH
def test_in_its_view_every_colour_starts_alike(variant):
    views = tables(variant).views
    for colour, start in enumerate(variant.starts):
        assert views[colour][variant.cell(variant.starts[0])] == variant.cell(start)
        assert turned(variant.starts[0], variant.turns[colour], variant.side) == start


def test_in_every_view_of_classic_the_next_colour_starts_to_the_right():
    variant = classic(4)
    for colour in range(4):
        following = variant.starts[(colour + 1) % 4]
        assert turned((0, 19), variant.turns[colour], 20) == following
