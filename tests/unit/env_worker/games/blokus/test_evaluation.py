"""What is counted, against plain sets of squares and on boards made for it; what a position is worth."""

from __future__ import annotations

import numpy as np
import pytest

from simul.env_worker.games.blokus.board import HEADER, Variant, classic, duo, tables
from simul.env_worker.games.blokus.evaluation import WON, evaluate
from simul.env_worker.games.blokus.kernels import (
    ATTACH,
    BLOCKED,
    CORNERS,
    COVERED,
    LEFT,
    OVER,
    PLACEMENTS,
    POINTS,
    REACH,
    ROOM,
    count_colour,
    new_state,
    play,
)
from simul.env_worker.games.blokus.notation import squares_of
from simul.env_worker.games.blokus.pieces import NAMES, Square
from simul.env_worker.games.blokus.turn_game import Blokus
from tests.support.blokus_reference import Reference
from tests.support.turn_games import played_on


def counted(state: np.ndarray, colour: int, variant: Variant) -> dict[int, int]:
    reached = np.zeros(len(state) - HEADER, np.int64)
    counts = count_colour(state, colour, tables(variant).tree, tables(variant).rules, reached)
    assert reached.sum() == counts[REACH]
    return dict(enumerate(counts.tolist()))


def worth(game: Blokus, seat: int) -> float:
    return float(evaluate(game.state, seat, game.tables.tree, game.tables.rules))


def around(square: Square, steps: list[Square]) -> set[Square]:
    return {(square[0] + down, square[1] + right) for down, right in steps}


def counted_plainly(reference: Reference, colour: int, side: int) -> dict[int, int]:
    edges, diagonals = [(-1, 0), (1, 0), (0, -1), (0, 1)], [(-1, -1), (-1, 1), (1, -1), (1, 1)]
    own, legal = reference.squares(colour), reference.legal(colour)
    taken = set().union(*(reference.squares(each) for each in range(len(reference.placed))))
    forbidden = taken.union(*(around(square, edges) for square in own))
    allowed = {(row, column) for row in range(side) for column in range(side)} - forbidden
    corners = {reference.starts[colour]}.union(*(around(square, diagonals) for square in own)) & allowed
    largest: dict[Square, int] = {}
    for squares in legal:
        largest |= {square: max(len(squares), largest.get(square, 0)) for square in squares}
    room = set(corners)
    while more := set().union(*(around(square, edges + diagonals) for square in room)) & allowed - room:
        room |= more
    return {
        POINTS: reference.points(colour),
        PLACEMENTS: len(legal),
        REACH: sum(largest.values()),
        CORNERS: len(corners & set(largest)),
        ROOM: len(room),
    }


@pytest.mark.parametrize("variant", [duo(), classic(4)], ids=["duo", "classic"])
def test_counts_equal_those_of_plain_sets(variant):
    game = played_on(Blokus(variant), 60, seed=4)
    state, reference = new_state(variant), Reference(variant.name)
    for turn, (colour, action) in enumerate(game.moves):
        if turn % 5 == 3:
            for each in range(len(variant.colours)):
                assert counted(state, each, variant) == counted_plainly(reference, each, variant.side)
        play(state, action, *tables(variant))
        reference.play(frozenset(squares_of(variant, colour, action)) or None)


def blocked_but(squares: list[Square]) -> np.ndarray:
    """Duo, all squares but these forbidden to both; purple may attach at the first."""
    state = new_state(duo())
    state[HEADER:] = BLOCKED
    for square in squares:
        state[HEADER + duo().cell(square)] = 0
    state[HEADER + duo().cell(squares[0])] = ATTACH
    return state


def test_a_corner_counts_as_long_as_a_piece_that_is_left_fits_there():
    state = blocked_but([(7, 7)])
    assert counted(state, 0, duo()) == {POINTS: 0, PLACEMENTS: 1, REACH: 1, CORNERS: 1, ROOM: 1}
    state[LEFT] &= ~(1 << NAMES.index("1"))
    assert counted(state, 0, duo()) == {POINTS: 0, PLACEMENTS: 0, REACH: 0, CORNERS: 0, ROOM: 1}
    assert counted(state, 1, duo()) == {POINTS: 0, PLACEMENTS: 0, REACH: 0, CORNERS: 0, ROOM: 0}


def test_reach_is_more_where_larger_pieces_fit_and_room_goes_on_over_corners():
    """Three in a row and one at the corner of the last, which no piece covers together with the first."""
    state = blocked_but([(7, 7), (7, 8), (7, 9), (8, 10)])
    assert counted(state, 0, duo()) == {POINTS: 0, PLACEMENTS: 3, REACH: 9, CORNERS: 1, ROOM: 4}
    state[LEFT] &= ~(1 << NAMES.index("I3"))
    assert counted(state, 0, duo()) == {POINTS: 0, PLACEMENTS: 2, REACH: 4, CORNERS: 1, ROOM: 4}


@pytest.mark.parametrize("variant", [duo(), classic(2)], ids=["duo", "classic"])
def test_what_one_of_two_seats_gains_the_other_loses(variant):
    game = played_on(Blokus(variant), 11, seed=2)
    assert worth(game, 0) == pytest.approx(-worth(game, 1))
    assert worth(game, 0) != 0


def test_a_seat_is_as_far_ahead_as_the_best_other_lets_it():
    game = played_on(Blokus(classic(4)), 20, seed=2)
    before = [worth(game, seat) for seat in range(4)]
    assert sum(ahead > 0 for ahead in before) == 1
    best = int(np.argmax(before))
    game.state[COVERED + best] += 1
    after = [worth(game, seat) for seat in range(4)]
    gained = after[best] - before[best]
    assert gained > 0
    assert [after[seat] for seat in range(4) if seat != best] == pytest.approx(
        [before[seat] - gained for seat in range(4) if seat != best]
    )


def test_the_colour_that_three_players_share_counts_for_none():
    game = played_on(Blokus(classic(3)), 20, seed=2)
    before = [worth(game, seat) for seat in range(3)]
    game.state[COVERED + 3] += 10
    assert [worth(game, seat) for seat in range(3)] == before


def test_at_the_end_points_decide_and_a_win_is_worth_more_than_any_position():
    game = Blokus(duo())
    game.state[OVER], game.state[COVERED : COVERED + 2] = 1, [60, 58]
    assert [worth(game, seat) for seat in range(2)] == [WON + 2, -WON - 2]
    game.state[COVERED] = 58
    assert worth(game, 0) == 0
    assert abs(worth(played_on(Blokus(duo()), 20), 0)) < WON
