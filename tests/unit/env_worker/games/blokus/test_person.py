"""Placements as piece, orientation and square: every legal one can be written, and what cannot be is a sentence."""

from __future__ import annotations

import random
import re

import pytest

from simul.env_worker.games.blokus.board import classic, duo
from simul.env_worker.games.blokus.turn_game import Blokus
from tests.support.turn_games import played_on


def listed_words(game: Blokus, seat: int) -> list[str]:
    """Every `PIECE ORIENTATION SQUARE` that the lists of all pieces show."""
    words: list[str] = []
    for line in game.list_actions(seat).splitlines():
        piece = line.split()[0]
        orientation = ""
        for shown in game.list_actions(seat, piece.lower()).splitlines():
            name = re.match(r"(\S+) (\d)\s", shown)
            orientation = f"{name[1]} {name[2]}" if name else orientation
            words += [f"{orientation} {square}" for square in re.findall(r"\b[a-t]\d+\b", shown)]
    return words


@pytest.mark.parametrize("variant", [duo(), classic(4)], ids=["duo", "classic"])
@pytest.mark.parametrize("plies", [0, 1, 2, 3, 14])
def test_what_is_listed_is_exactly_what_is_legal(variant, plies):
    game = played_on(Blokus(variant), plies)
    (seat,) = game.acting()
    words = listed_words(game, seat)
    assert sorted(game.parse_action(seat, each) for each in words) == game.legal_actions(seat).tolist()


def test_a_piece_of_one_orientation_needs_no_number():
    game = Blokus(duo())
    assert game.parse_action(0, "X e9") == game.parse_action(0, "x 1 e9")
    assert game.action_name(0, game.parse_action(0, "1 e10")) == "e10"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "expected squares from a1 to n14 with commas between"),
        ("hello", "got 'hello'"),
        ("L4", "expected PIECE ORIENTATION SQUARE, such as `L4 3 e9`; got 'L4'"),
        ("L4 e9", "expected PIECE ORIENTATION SQUARE"),
        ("L4 9 e9", r"L4 has orientations 1 to 8; got '9'\. `list L4` draws those that fit"),
        ("L4 0 e9", "L4 has orientations 1 to 8; got '0'"),
        ("X 2 e9", "X has one orientation, 1; got '2'"),
        ("L4 1 z9", "expected a square from a1 to n14; got 'z9'"),
        ("L4 3 \u01309", "expected a square from a1 to n14; got "),  # its lower case is two characters
        ("L4 \u00b2 e9", "L4 has orientations 1 to 8; got "),
        (f"L4 3 e{'9' * 5000}", "expected a square from a1 to n14; got 'e999"),
        (f"L4 {'9' * 5000} e9", "L4 has orientations 1 to 8; got '999"),
        ("L4 1 e99", "expected a square from a1 to n14; got 'e99'"),
        ("I5 1 n1", "I5 1 at n1 does not lie on the board"),
        ("O 1 a1", "O at a1,b1,a2,b2: a piece of purple must cover the start, e10"),
        ("pass", "purple passes only where no piece of it fits"),
        ("e9,e10,f12", "expected the squares of one piece"),
    ],
)
def test_first_mistakes(text, says):
    with pytest.raises(ValueError, match=says):
        Blokus(duo()).parse_action(0, text)


def test_mistakes_with_pieces_on_the_board():
    game = Blokus(duo())
    game.apply({0: game.parse_action(0, "O 1 e9")})
    game.apply({1: game.parse_action(1, "O 1 j5")})
    for text, says in (
        ("O 1 g7", "purple has placed its O already"),
        ("X 1 e8", "is occupied"),
        ("2 g9,g10", "2 has orientations 1 to 2; got 'g9'"),
        ("g9,g10", "it would touch another piece of purple along an edge"),
        ("a1,a2", "a piece of purple must touch one at a corner"),
    ):
        with pytest.raises(ValueError, match=says):
            game.parse_action(0, text)


def test_lists_of_what_does_not_fit():
    game = Blokus(duo())
    assert "there is no piece 'Q'; pieces are 1 2 I3" in game.list_actions(0, "Q")
    game.apply({0: game.parse_action(0, "O 1 e9")})
    game.apply({1: game.parse_action(1, "O 1 j5")})
    assert game.list_actions(0, "O") == "O fits nowhere now; `list` shows the pieces that do"
    assert not any(line.startswith("O ") for line in game.list_actions(0).splitlines())


def at_a_pass() -> Blokus:
    """The first position of random games in which a colour can only pass."""
    for seed in range(100):
        draw, game = random.Random(seed), Blokus(duo())
        while acting := game.acting():
            legal = game.legal_actions(acting[0]).tolist()
            if game.variant.placements in legal:
                return game
            game.apply({acting[0]: draw.choice(legal)})
    raise AssertionError("no pass in 100 games")


def test_the_pass_is_said_where_nothing_fits():
    game = at_a_pass()
    (seat,) = game.acting()
    assert game.list_actions(seat) == "no piece fits; write pass"
    assert "has no piece that fits: write pass" in game.action_help(seat)
    assert game.parse_action(seat, "pass") == game.variant.placements
