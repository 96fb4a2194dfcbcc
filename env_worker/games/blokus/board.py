"""Boards of the variants, the numbering of placements, and the tables that the compiled loops read.

A placement is an orientation on a place of the board. Placements that lie on the board are numbered by orientation,
then by row and column of the top left corner of the rectangle around them; one more number is the pass. Every colour
counts rows and columns in a view of its own, the board turned so that its start lies where the first colour's does.
Numbers of placements, the actions of the game, are always those of the view of the colour that places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simul.env_worker.games.blokus.pieces import ORIENTATIONS, Shape, Square, normalised

HEADER = 32  # numbers of a state before its cells

# Columns of `BoardTables.tree`: a row is a way to cover a cell; row and column of the cell are counted with the border.
OFFSET, SKIP, PIECE, BELOW, NUMBER = range(5)  # from NUMBER on, for each quarter turn: constant, factors of row, column

# Columns of `BoardTables.placements`: piece, number of squares, and the squares as cells of the view.
SQUARES = 2
PLACEMENT_COLUMNS = SQUARES + 5

# Numbers of `BoardTables.rules`, then the quarter turn of each colour's view.
COLOURS, SEATS, SIDE, PASS, TURNS = range(5)


@dataclass(frozen=True)
class Variant:
    """A board and the number of its players.

    Attributes:
        side: rows and columns of the board.
        colours: names, in turn order.
        starts: the square that the first piece of each colour covers.
        turns: quarter turns clockwise that turn the view of each colour into the board.
        seats: players. Two players of four colours have every second one; three players have one each and place the
            fourth in turn.
    """

    name: str
    side: int
    colours: tuple[str, ...]
    starts: tuple[Square, ...]
    turns: tuple[int, ...]
    seats: int

    @property
    def stride(self) -> int:
        """Cells from one row to the next; a border of one cell surrounds the board."""
        return self.side + 2

    @property
    def placements(self) -> int:
        """How many placements there are; the number of the pass."""
        return sum(self.rows_of(shape.height) * self.rows_of(shape.width) for shape in ORIENTATIONS)

    def rows_of(self, height: int) -> int:
        """In how many rows a rectangle of this height can begin."""
        return self.side - height + 1

    def cell(self, square: Square) -> int:
        """Index of a square among the cells of the board with its border."""
        return (square[0] + 1) * self.stride + square[1] + 1


@cache
def duo() -> Variant:
    """14 x 14, two players; the starts are e10 and j5, not the corners."""
    return Variant("duo", 14, ("purple", "orange"), ((4, 4), (9, 9)), (0, 2), 2)


@cache
def classic(players: int) -> Variant:
    """20 x 20, four colours that start in the corners, clockwise."""
    corners = ((0, 0), (0, 19), (19, 19), (19, 0))
    return Variant("classic", 20, ("blue", "yellow", "red", "green"), corners, (0, 1, 2, 3), players)


def turned(square: Square, quarters: int, side: int) -> Square:
    """A square of a board that is turned clockwise."""
    row, column = square
    for _ in range(quarters % 4):
        row, column = column, side - 1 - row
    return row, column


class BoardTables(NamedTuple):
    """What the compiled loops read, in the order of their arguments.

    Attributes:
        tree: int32 [414, 16]: all ways to cover a cell, each after the way that it extends by one square.
        placements: int16 [A, PLACEMENT_COLUMNS]; the last row, of the pass, has no squares.
        views: int16 [colours, cells]: cell of the colour's view -> cell of the board.
        rules: int32 [TURNS + colours].
    """

    tree: NDArray[np.int32]
    placements: NDArray[np.int16]
    views: NDArray[np.int16]
    rules: NDArray[np.int32]


@cache
def tables(variant: Variant) -> BoardTables:
    """Built once per process and variant; read-only."""
    rules = [len(variant.colours), variant.seats, variant.side, variant.placements, *variant.turns]
    built = BoardTables(_tree(variant), _placements(variant), _views(variant), np.array(rules, np.int32))
    for table in built:
        table.flags.writeable = False
    return built


@cache
def corners(variant: Variant) -> NDArray[np.int16]:
    """int16 [placements, 3]: orientation, row and column of the top left corner of each placement."""
    listed = [
        (index, row, column)
        for index, shape in enumerate(ORIENTATIONS)
        for row in range(variant.rows_of(shape.height))
        for column in range(variant.rows_of(shape.width))
    ]
    return np.array(listed, np.int16)


@cache
def first_numbers(variant: Variant) -> tuple[int, ...]:
    """Number of the first placement of every orientation."""
    sizes = [variant.rows_of(shape.height) * variant.rows_of(shape.width) for shape in ORIENTATIONS]
    return (0, *accumulate(sizes[:-1]))


@cache
def _orientation_of() -> dict[Shape, int]:
    return {each.shape: index for index, each in enumerate(ORIENTATIONS)}


def placement_number(variant: Variant, squares: list[Square]) -> int | None:
    """The placement that covers these squares, of a view; None where no piece has this shape."""
    index = _orientation_of().get(normalised(squares))
    if index is None or len(set(squares)) != len(squares):
        return None
    top, left = min(row for row, _ in squares), min(column for _, column in squares)
    return first_numbers(variant)[index] + top * variant.rows_of(ORIENTATIONS[index].width) + left


def _placements(variant: Variant) -> NDArray[np.int16]:
    rows = np.zeros((variant.placements + 1, PLACEMENT_COLUMNS), np.int16)
    for number, (index, top, left) in enumerate(corners(variant).tolist()):
        orientation = ORIENTATIONS[index]
        cells = [variant.cell((top + row, left + column)) for row, column in orientation.shape]
        rows[number, : SQUARES + len(cells)] = [orientation.piece, len(cells), *cells]
    return rows


def _views(variant: Variant) -> NDArray[np.int16]:
    views = np.zeros((len(variant.colours), variant.stride**2), np.int16)
    squares = [(row, column) for row in range(variant.side) for column in range(variant.side)]
    for view, quarters in zip(views, variant.turns, strict=True):
        for square in squares:
            view[variant.cell(square)] = variant.cell(turned(square, quarters, variant.side))
    return views


Cover = frozenset[Square]  # the squares of a piece that covers (0, 0), relative to it


def _covers() -> dict[Cover, int]:
    """All ways to cover a square: the squares relative to it, and the piece."""
    return {
        frozenset((row - at_row, column - at_column) for row, column in each.shape): each.piece
        for each in ORIENTATIONS
        for at_row, at_column in each.shape
    }


def _last_square(cover: Cover) -> Square:
    """The square farthest from (0, 0) without which the others still hang together, which are again a cover."""
    for square in sorted(cover, key=lambda at: (-abs(at[0]) - abs(at[1]), at)):
        if square != (0, 0) and _connected(cover - {square}):
            return square
    raise AssertionError("every connected set of two squares and more has two squares that can go")


def _connected(squares: Cover) -> bool:
    reached, open_squares = {(0, 0)}, [(0, 0)]
    while open_squares:
        row, column = open_squares.pop()
        near = {(row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)} & squares - reached
        reached |= near
        open_squares += near
    return reached == squares


def _tree(variant: Variant) -> NDArray[np.int32]:
    """A cover's row is followed by those of all its extensions; SKIP is the row behind them.

    A cell that is blocked rules out all extensions at once. One border around the board is enough, because a square
    is looked at only where its neighbour in the cover lies on the board.
    """
    pieces = _covers()
    extensions: dict[Cover, list[tuple[Square, Cover]]] = {cover: [] for cover in pieces}
    for cover in pieces:
        if len(cover) > 1:
            square = _last_square(cover)
            extensions[cover - {square}].append((square, cover))
    first = first_numbers(variant)
    rows: list[list[int]] = []

    def add(square: Square, cover: Cover) -> int:
        row = [square[0] * variant.stride + square[1], 0, 1 << pieces[cover], 1 << pieces[cover]]
        row += (number for quarters in range(4) for number in _number_of(variant, first, cover, quarters))
        rows.append(row)
        for each in sorted(extensions[cover], key=lambda extension: extension[0]):
            row[BELOW] |= add(*each)
        row[SKIP] = len(rows)
        return row[BELOW]

    add((0, 0), frozenset({(0, 0)}))
    return np.array(rows, np.int32)


def _number_of(variant: Variant, first: tuple[int, ...], cover: Cover, quarters: int) -> Iterator[int]:
    """Constant and factors of row and column that make a placement's number of the cell that `cover` covers.

    Row and column are the board's, counted with the border; the number is that of the view that `quarters` quarter
    turns clockwise turn into the board.
    """
    last = variant.side - 1
    back = -quarters % 4
    squares = [_turned_back(square, back) for square in cover]
    top, left = min(row for row, _ in squares), min(column for _, column in squares)
    index = _orientation_of()[normalised(squares)]
    width = variant.rows_of(ORIENTATIONS[index].width)
    # Row and column of the cell in the view, each as (constant, factor of the board's row, factor of its column).
    row, column = {
        0: ((0, 1, 0), (0, 0, 1)),
        1: ((last, 0, -1), (0, 1, 0)),
        2: ((last, -1, 0), (last, 0, -1)),
        3: ((0, 0, 1), (last, -1, 0)),
    }[quarters]
    constant = first[index] + (row[0] + top) * width + column[0] + left
    by_row, by_column = row[1] * width + column[1], row[2] * width + column[2]
    yield from (constant - by_row - by_column, by_row, by_column)


def _turned_back(square: Square, quarters: int) -> Square:
    row, column = square
    for _ in range(quarters):
        row, column = column, -row
    return row, column
