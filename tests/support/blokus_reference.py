"""Blokus by its printed rules: sets of squares and plain loops, no tables. Slow; for comparison with the real one."""

from __future__ import annotations

from collections.abc import Iterator

Square = tuple[int, int]
Placement = frozenset[Square]

DRAWINGS = """
#  ##  ###  ##.  ####  ###  ###  ##.  ##  .##  #####  ####  ###..  ##  ###  #.#  ###  ##.  .#.  ####  ##.
.  ..  ...  #..  ....  #..  .#.  .##  ##  ##.  .....  #...  ..##.  ##  .#.  ###  #..  .##  ###  .#..  .#.
.  ..  ...  ...  ....  ...  ...  ...  ..  .#.  .....  ....  .....  #.  .#.  ...  #..  ..#  .#.  ....  .##
"""
STARTS = {"duo": [(4, 4), (9, 9)], "classic": [(0, 0), (0, 19), (19, 19), (19, 0)]}
SIDES = {"duo": 14, "classic": 20}


def _pieces() -> list[Placement]:
    rows = [line.split() for line in DRAWINGS.strip().splitlines()]
    return [
        frozenset((row, column) for row, line in enumerate(drawing) for column, mark in enumerate(line) if mark == "#")
        for drawing in zip(*rows, strict=True)
    ]


PIECES = _pieces()


def _lying(piece: Placement) -> set[Placement]:
    """All ways in which a piece can lie, its smallest row and column 0."""
    found = set()
    for flip in (1, -1):
        for turn in ((1, 0, 0, 1), (0, 1, -1, 0), (-1, 0, 0, -1), (0, -1, 1, 0)):
            squares = [(turn[0] * r + turn[1] * c * flip, turn[2] * r + turn[3] * c * flip) for r, c in piece]
            top, left = min(r for r, _ in squares), min(c for _, c in squares)
            found.add(frozenset((r - top, c - left) for r, c in squares))
    return found


def all_placements(side: int) -> list[tuple[int, Placement]]:
    """(piece, squares) of every placement on an empty board."""
    return [
        (number, frozenset((r + down, c + right) for r, c in lying))
        for number, piece in enumerate(PIECES)
        for lying in _lying(piece)
        for down in range(side - max(r for r, _ in lying))
        for right in range(side - max(c for _, c in lying))
    ]


def _edges(square: Square) -> Iterator[Square]:
    row, column = square
    yield from ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1))


def _corners(square: Square) -> Iterator[Square]:
    row, column = square
    yield from ((row - 1, column - 1), (row - 1, column + 1), (row + 1, column - 1), (row + 1, column + 1))


class Reference:
    """One game. `turn` is the colour to move; `placed[colour]` lists the (piece, squares) that it has placed."""

    placements: dict[str, list[tuple[int, Placement]]] = {}

    def __init__(self, variant: str) -> None:
        self.variant = variant
        self.starts = STARTS[variant]
        if variant not in self.placements:
            self.placements[variant] = all_placements(SIDES[variant])
        self.placed: list[list[tuple[int, Placement]]] = [[] for _ in self.starts]
        self.passed: set[int] = set()
        self.turn = 0

    def squares(self, colour: int) -> set[Square]:
        return {square for _, squares in self.placed[colour] for square in squares}

    def legal(self, colour: int) -> set[Placement]:
        """Empty squares, no own edge, and an own corner; the first piece covers the start."""
        own = self.squares(colour)
        taken = set().union(*(self.squares(other) for other in range(len(self.placed))))
        edges = {near for square in own for near in _edges(square)}
        corners = {near for square in own for near in _corners(square)} if own else {self.starts[colour]}
        used = {piece for piece, _ in self.placed[colour]}
        return {
            squares
            for piece, squares in self.placements[self.variant]
            if piece not in used and squares & corners and not squares & taken and not squares & edges
        }

    def play(self, squares: Placement | None) -> None:
        """None: the colour has no move and passes for good."""
        colours = len(self.placed)
        if squares is None:
            assert not self.legal(self.turn)
            self.passed.add(self.turn)
        else:
            assert squares in self.legal(self.turn)
            lying = min(squares)[0], min(column for _, column in squares)
            shape = frozenset((row - lying[0], column - lying[1]) for row, column in squares)
            piece = next(number for number, each in enumerate(PIECES) if shape in _lying(each))
            self.placed[self.turn].append((piece, squares))
        for step in range(1, colours + 1):
            if (self.turn + step) % colours not in self.passed:
                self.turn = (self.turn + step) % colours
                return

    def over(self) -> bool:
        return not any(self.legal(colour) for colour in range(len(self.placed)) if colour not in self.passed)

    def points(self, colour: int) -> int:
        """A point for a square; 15 for all pieces, 5 more if the monomino came last."""
        points = len(self.squares(colour))
        if len(self.placed[colour]) == len(PIECES):
            points += 15 + 5 * (len(self.placed[colour][-1][1]) == 1)
        return points
