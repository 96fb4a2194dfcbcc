"""Names of actions, in Pentobi's notation."""

from __future__ import annotations

import random

import pytest

from simul.env_worker.games.blokus.board import classic, duo
from simul.env_worker.games.blokus.notation import action_name, parse_action


@pytest.mark.parametrize("variant", [duo(), classic(4)], ids=["duo", "classic"])
def test_every_name_is_read_back_as_its_action(variant):
    draw = random.Random(1)
    for _ in range(500):
        colour, action = draw.randrange(len(variant.colours)), draw.randrange(variant.placements + 1)
        name = action_name(variant, colour, action)
        assert parse_action(variant, colour, name) == action
        squares = name.split(",")
        draw.shuffle(squares)
        assert parse_action(variant, colour, ", ".join(squares).upper()) == action


def test_names_of_pentobi_s_example():
    """Its manual plays b e8,d9,e9,f9,e10, then w i4,h5,i5,j5,i6: both cover a start."""
    for colour, name in enumerate(["e8,d9,e9,f9,e10", "i4,h5,i5,j5,i6"]):
        action = parse_action(duo(), colour, name)
        assert action_name(duo(), colour, action) == name
    assert parse_action(duo(), 0, " pass\n") == duo().placements
    assert action_name(duo(), 1, duo().placements) == "pass"


@pytest.mark.parametrize("text", ["", "e9,", "e15", "o1", "e0", "a1,e9x", "hello"])
def test_what_is_no_square_is_refused(text):
    with pytest.raises(ValueError, match="expected squares from a1 to n14"):
        parse_action(duo(), 0, text)


@pytest.mark.parametrize("text", ["a1,b2", "a1,a1", "a1,b1,c1,d1,e1,f1", "a1,b1,a2,b2,c1,c2"])
def test_squares_that_are_no_piece_are_refused(text):
    with pytest.raises(ValueError, match="the squares of one piece"):
        parse_action(duo(), 0, text)
