"""Names of actions as Pentobi writes them: the squares, such as `d9,e9,f9,e10`; or `pass`."""

from __future__ import annotations

import re

from simul.env_worker.games.blokus.board import SQUARES, Variant, placement_number, tables, turned
from simul.env_worker.games.blokus.pieces import Square

PASS_NAME = "pass"
_SQUARE = re.compile(r"([a-t])([1-9][0-9]?)", re.IGNORECASE | re.ASCII)


def squares_of(variant: Variant, colour: int, action: int) -> list[Square]:
    """(row, column) on the board, from the top left, ascending; none of the pass."""
    if not 0 <= action <= variant.placements:
        raise ValueError(f"expected an action from 0 to {variant.placements}, got {action}")
    built = tables(variant)
    placement = built.placements[action]
    cells = built.views[colour][placement[SQUARES : SQUARES + placement[1]]]
    return sorted((int(cell) // variant.stride - 1, int(cell) % variant.stride - 1) for cell in cells)


def action_name(variant: Variant, colour: int, action: int) -> str:
    """Columns are letters, rows count from the bottom; the lowest row first, each from the left."""
    if action == variant.placements:
        return PASS_NAME
    squares = sorted(squares_of(variant, colour, action), key=lambda at: (-at[0], at[1]))
    return ",".join(square_name(variant, square) for square in squares)


def square_name(variant: Variant, square: Square) -> str:
    """(0, 0), the top left, is a14 on a board of 14 rows."""
    return f"{chr(ord('a') + square[1])}{variant.side - square[0]}"


def parse_action(variant: Variant, colour: int, text: str) -> int:
    """The action of `colour` that a name, with its squares in any order, means. Raises ValueError with a sentence."""
    name = text.strip().lower()
    if name == PASS_NAME:
        return variant.placements
    squares = []
    for part in name.split(","):
        square = parse_square(variant, part.strip())
        if square is None:
            raise ValueError(
                f"expected squares from a1 to {last_square(variant)} with commas between, or pass; "
                f"got {part.strip()!r} in {text.strip()!r}"
            )
        squares.append(square)
    back = -variant.turns[colour]
    number = placement_number(variant, [turned(square, back, variant.side) for square in squares])
    if number is None:
        raise ValueError(f"expected the squares of one piece, such as e9,e10,f10; {text.strip()!r} is none of the 21")
    return number


def parse_square(variant: Variant, text: str) -> Square | None:
    """(row, column) of a square's name; None where there is no such square on the board."""
    match = _SQUARE.fullmatch(text)
    if match is None:
        return None
    row, column = variant.side - int(match[2]), ord(match[1].lower()) - ord("a")
    return (row, column) if 0 <= row < variant.side and column < variant.side else None


def last_square(variant: Variant) -> str:
    """The name of the top right one."""
    return square_name(variant, (0, variant.side - 1))
