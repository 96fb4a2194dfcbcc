"""The 21 pieces, and the 91 orientations in which they can lie on a board."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

Square = tuple[int, int]  # (row, column), from the top left
Shape = tuple[Square, ...]  # ascending; the smallest row and the smallest column are 0

PIECES: dict[str, str] = {
    "1": "#",
    "2": "##",
    "I3": "###",
    "V3": "##/#",
    "I4": "####",
    "L4": "###/#",
    "T4": "###/.#",
    "Z4": "##/.##",
    "O": "##/##",
    "F": ".##/##/.#",
    "I5": "#####",
    "L5": "####/#",
    "N": "###/..##",
    "P": "##/##/#",
    "T5": "###/.#/.#",
    "U": "#.#/###",
    "V5": "###/#/#",
    "W": "##/.##/..#",
    "X": ".#/###/.#",
    "Y": "####/.#",
    "Z5": "##/.#/.##",
}  # name -> rows, '#' for a square
NAMES = tuple(PIECES)
MONOMINO = NAMES.index("1")


class Orientation(NamedTuple):
    """One way in which a piece can lie.

    Attributes:
        piece: index into NAMES.
        shape: its squares.
        height, width: of the smallest rectangle around it.
    """

    piece: int
    shape: Shape
    height: int
    width: int


def normalised(squares: Iterable[Square]) -> Shape:
    """The squares, moved so that the smallest row and the smallest column are 0."""
    squares = list(squares)
    top, left = min(row for row, _ in squares), min(column for _, column in squares)
    return tuple(sorted((row - top, column - left) for row, column in squares))


def _shape(rows: str) -> Shape:
    return normalised(
        (row, column) for row, line in enumerate(rows.split("/")) for column, mark in enumerate(line) if mark == "#"
    )


def _turned(shape: Shape) -> Shape:
    return normalised((column, -row) for row, column in shape)


def _mirrored(shape: Shape) -> Shape:
    return normalised((row, -column) for row, column in shape)


def _orientations() -> tuple[Orientation, ...]:
    """Of all pieces, in the order of NAMES; those of one piece ascending by shape."""
    found = []
    for piece, rows in enumerate(PIECES.values()):
        shapes = set()
        shape = _shape(rows)
        for _ in range(4):
            shapes |= {shape, _mirrored(shape)}
            shape = _turned(shape)
        for each in sorted(shapes):
            found.append(
                Orientation(piece, each, 1 + max(row for row, _ in each), 1 + max(column for _, column in each))
            )
    return tuple(found)


ORIENTATIONS = _orientations()
