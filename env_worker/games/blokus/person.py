"""Placements as a person writes and reads them: piece, orientation, square.

Orientations of a piece are numbered from 1 as they lie on the board. The square is the piece's anchor, its leftmost
square in its lowest row, which is also the first square of the placement's name.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from simul.env_worker.games.base.action_names import shortened
from simul.env_worker.games.blokus.board import HEADER, Variant
from simul.env_worker.games.blokus.kernels import BLOCKED, LEFT, OWNER, Numbers
from simul.env_worker.games.blokus.notation import (
    PASS_NAME,
    action_name,
    last_square,
    parse_action,
    parse_square,
    square_name,
    squares_of,
)
from simul.env_worker.games.blokus.pieces import NAMES, ORIENTATIONS, Shape, Square, normalised

HELP = (
    "Write PIECE ORIENTATION SQUARE, such as `L4 3 e9`, or all squares, such as `e9,e10,f10`. `list` shows the pieces "
    "that fit, `list L4` where that one fits; the square is the one marked @."
)
_PIECE_OF = {name.lower(): index for index, name in enumerate(NAMES)}
_SHAPES: dict[int, list[Shape]] = defaultdict(list)  # by piece, in the order of their numbers
for _each in ORIENTATIONS:
    _SHAPES[_each.piece].append(_each.shape)
_PLACE_OF: dict[Shape, tuple[int, int]] = {
    shape: (piece, number) for piece, shapes in _SHAPES.items() for number, shape in enumerate(shapes, 1)
}
_PER_LINE = 14  # squares


def anchor(squares: Iterable[Square]) -> Square:
    """The leftmost square of the lowest row."""
    return min(squares, key=lambda at: (-at[0], at[1]))


def parse_words(variant: Variant, state: Numbers, colour: int, legal: Iterable[int], text: str) -> int:
    """The action of `PIECE ORIENTATION SQUARE`, or of the squares with commas between.

    Raises ValueError with a sentence.
    """
    words = text.replace(",", " ").split()
    if words and words[0].lower() in _PIECE_OF:
        squares = _placed(variant, words)
        action = parse_action(variant, colour, ",".join(square_name(variant, square) for square in squares))
    else:
        action = parse_action(variant, colour, text)
    if action not in set(legal):
        raise ValueError(_why_not(variant, state, colour, action))
    return action


def _placed(variant: Variant, words: list[str]) -> list[Square]:
    """The squares that `PIECE ORIENTATION SQUARE` covers. Raises ValueError with a sentence."""
    piece = _PIECE_OF[words[0].lower()]
    shapes = _SHAPES[piece]
    if len(words) == 2 and len(shapes) == 1:
        words = [words[0], "1", words[1]]
    if len(words) != 3:
        raise ValueError(f"expected PIECE ORIENTATION SQUARE, such as `L4 3 e9`; got {shortened(' '.join(words))}")
    if words[1] not in map(str, range(1, len(shapes) + 1)):
        what = f"orientations 1 to {len(shapes)}" if len(shapes) > 1 else "one orientation, 1"
        raise ValueError(
            f"{NAMES[piece]} has {what}; got {shortened(words[1])}. `list {NAMES[piece]}` draws those that fit"
        )
    shape = shapes[int(words[1]) - 1]
    square = parse_square(variant, words[2])
    if square is None:
        raise ValueError(f"expected a square from a1 to {last_square(variant)}; got {shortened(words[2])}")
    row, column = square
    at_row, at_column = anchor(shape)
    squares = [(row + r - at_row, column + c - at_column) for r, c in shape]
    if not all(0 <= r < variant.side and 0 <= c < variant.side for r, c in squares):
        raise ValueError(f"{NAMES[piece]} {words[1]} at {words[2].lower()} does not lie on the board")
    return squares


def _why_not(variant: Variant, state: Numbers, colour: int, action: int) -> str:
    """Why a placement is not legal now."""
    name = variant.colours[colour]
    if action == variant.placements:
        return f"{name} passes only where no piece of it fits; `list` shows those that do"
    squares = squares_of(variant, colour, action)
    piece = NAMES[_PLACE_OF[normalised(squares)][0]]
    words = action_name(variant, colour, action)
    if not int(state[LEFT + colour]) >> NAMES.index(piece) & 1:
        return f"{name} has placed its {piece} already"
    taken = [square for square in squares if int(state[HEADER + variant.cell(square)]) >> OWNER]
    if taken:
        return f"{piece} at {words}: {square_name(variant, taken[0])} is occupied"
    if any(int(state[HEADER + variant.cell(square)]) & BLOCKED & 1 << colour for square in squares):
        return f"{piece} at {words}: it would touch another piece of {name} along an edge"
    first = int(state[LEFT + colour]) == (1 << len(NAMES)) - 1
    where = f"cover the start, {square_name(variant, variant.starts[colour])}" if first else "touch one at a corner"
    return f"{piece} at {words}: a piece of {name} must {where}"


def list_pieces(variant: Variant, colour: int, legal: Iterable[int], about: str) -> str:
    """The pieces that fit; of the piece `about` its orientations, drawn, and their squares."""
    placed: dict[int, dict[int, list[Square]]] = defaultdict(lambda: defaultdict(list))  # by piece and orientation
    for action in legal:
        if action == variant.placements:
            return f"no piece fits; write {PASS_NAME}"
        squares = squares_of(variant, colour, action)
        piece, number = _PLACE_OF[normalised(squares)]
        placed[piece][number].append(anchor(squares))
    if not about.strip():
        return "\n".join(_piece_lines(placed))
    wanted = _PIECE_OF.get(about.strip().lower())
    if wanted is None:
        return f"there is no piece {shortened(about)}; pieces are {' '.join(NAMES)}"
    if wanted not in placed:
        return f"{NAMES[wanted]} fits nowhere now; `list` shows the pieces that do"
    return "\n".join(_drawn(variant, wanted, number, at) for number, at in sorted(placed[wanted].items()))


def _piece_lines(placed: dict[int, dict[int, list[Square]]]) -> list[str]:
    sizes = Counter({piece: len(_SHAPES[piece][0]) for piece in placed})
    return [
        f"{NAMES[piece]:<3} {_squares(sizes[piece])}: {sum(map(len, placed[piece].values()))} places, "
        f"orientations {', '.join(map(str, sorted(placed[piece])))}"
        for piece in sorted(placed, key=lambda each: (-sizes[each], each))
    ]


def _squares(number: int) -> str:
    return "1 square " if number == 1 else f"{number} squares"


def _drawn(variant: Variant, piece: int, number: int, anchors: list[Square]) -> str:
    """`L4 3`, the shape with its anchor, and beside it the squares where it fits."""
    shape = _SHAPES[piece][number - 1]
    height, width = 1 + max(row for row, _ in shape), 1 + max(column for _, column in shape)
    at = anchor(shape)
    rows = [
        "".join("@" if (r, c) == at else "#" if (r, c) in shape else " " for c in range(width)) for r in range(height)
    ]
    ordered = sorted(anchors, key=lambda square: (square[1], -square[0]))
    names = [square_name(variant, square) for square in ordered]
    texts = [" ".join(names[first : first + _PER_LINE]) for first in range(0, len(names), _PER_LINE)]
    lines = [
        f"{f'{NAMES[piece]} {number}' if index == 0 else '':<6} {rows[index] if index < height else '':<5}  "
        f"{texts[index] if index < len(texts) else ''}".rstrip()
        for index in range(max(height, len(texts)))
    ]
    return "\n".join(lines)
