"""Placements as a person writes them."""

from __future__ import annotations

import pytest

from simul.env_worker.games.ofc.actions import (
    LEGAL_FIRST,
    LEGAL_LATER,
    PLACEMENTS,
    example,
    name_of,
    parse_placement,
)

OPENING = ["Jo", "Jo", "As", "Td", "2c"]
LATER = ["Kh", "Td", "2c"]
EMPTY = (0, 0, 0)
LETTERS = "tmbx"


@pytest.mark.parametrize(
    ("cards", "filled"), [(OPENING, EMPTY), (LATER, EMPTY), (LATER, (3, 4, 1)), (LATER, (2, 3, 5))]
)
def test_every_legal_placement_can_be_written(cards, filled):
    legal = LEGAL_FIRST if len(cards) == 5 else LEGAL_LATER[filled]
    assert len(legal) > 2
    for action in legal.tolist():
        text = ", ".join(f"{card} {LETTERS[row]}" for card, row in zip(cards, PLACEMENTS[action]))
        assert name_of(parse_placement(text, cards, filled), cards) == name_of(action, cards), "jokers are alike"
    assert parse_placement(example(cards, filled), cards, filled) in legal


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Kh t, Td b", "top: Kh; bottom: Td; discard: 2c"),
        ("kh t 10d b", "top: Kh; bottom: Td; discard: 2c"),
        ("TD bottom; KH Top", "top: Kh; bottom: Td; discard: 2c"),
        ("Kht tdb 2cx", "top: Kh; bottom: Td; discard: 2c"),
        ("Kh: out, Td m, 2c mid", "middle: Td 2c; discard: Kh"),
    ],
)
def test_ways_to_write_it(text, name):
    assert name_of(parse_placement(text, LATER, EMPTY), LATER) == name


@pytest.mark.parametrize(
    ("cards", "filled", "text", "says"),
    [
        (LATER, EMPTY, "", r"expected cards with their rows, such as `Kh b, Td b, 2c x`; got ''"),
        (LATER, EMPTY, "please", "got 'please'"),
        (LATER, EMPTY, "Kh t, Td q", r"expected a row: t \(top\), .* or x \(discard\); got 'q'"),
        (LATER, EMPTY, "Ah t, Td b", "Ah is not among your cards, Kh Td 2c"),
        (LATER, EMPTY, "Kh t, Kh b", "Kh is named twice"),
        (LATER, EMPTY, "Kh t", "write every card with its row; still without one: Td 2c"),
        (LATER, EMPTY, "Kh t, Td b, 2c m", "exactly one of the three cards is discarded"),
        (LATER, EMPTY, "Kh x, Td x, 2c m", "exactly one of the three cards is discarded"),
        (LATER, (2, 0, 0), "Kh t, Td t", "the top has room for 1 more, not for 2"),
        (OPENING, EMPTY, "Jo t, Jo b, As b, Td b, 2c x", "no card is discarded on street 1"),
        (OPENING, EMPTY, "Jo t, Jo t, As t, Td t, 2c b", "the top has room for 3 more, not for 4"),
        (OPENING, EMPTY, "Jo t, Jo t, Jo t, Td t, 2c b", "Jo is named twice"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_a_sentence(cards, filled, text, says):
    with pytest.raises(ValueError, match=says):
        parse_placement(text, cards, filled)
