"""A position as text and as SVG."""

from __future__ import annotations

from collections.abc import Sequence

from simul.env_worker.games.blokus.board import HEADER, Variant
from simul.env_worker.games.blokus.kernels import LEFT, OVER, OWNER, PASSED, TO_MOVE, Numbers, colour_points
from simul.env_worker.games.blokus.pieces import NAMES

PAINT = {
    "blue": "#3b6fd4",
    "yellow": "#e8c02c",
    "red": "#d43b3b",
    "green": "#3b9a4c",
    "purple": "#8a4fc8",
    "orange": "#ee8a2c",
}
STYLES = {
    rf"(?m)^{name[0].upper()}\b|\b{name[0].upper()}\b ?(?=[A-Z.+ ]*$)": (
        f"bold {'black' if name in ('yellow', 'orange') else 'white'} on {paint}"
    )
    for name, paint in PAINT.items()
}  # of `TurnGame.styles`: a colour's letters on the board and before its name, not those of the pieces left
_SQUARE = 24  # pixels


def draw_text(variant: Variant, state: Numbers) -> str:
    """The board, a letter for each colour and + for starts, and beneath it what each colour has."""
    columns = " ".join(chr(ord("a") + column) for column in range(variant.side))
    lines = [f"   {columns}"]
    for row in range(variant.side):
        marks = " ".join(_mark(variant, state, (row, column)) for column in range(variant.side))
        lines.append(f"{variant.side - row:2} {marks}")
    lines += ["", *(_colour_line(variant, state, colour) for colour in range(len(variant.colours)))]
    return "\n".join(lines)


def _mark(variant: Variant, state: Numbers, square: tuple[int, int]) -> str:
    owner = int(state[HEADER + variant.cell(square)]) >> OWNER
    if owner:
        return variant.colours[owner - 1][0].upper()
    return "+" if square in variant.starts else "."


def _colour_line(variant: Variant, state: Numbers, colour: int) -> str:
    name = variant.colours[colour]
    left = int(state[LEFT + colour])
    pieces = " ".join(piece for index, piece in enumerate(NAMES) if left >> index & 1) or "none"
    if state[OVER] or int(state[PASSED]) >> colour & 1:
        note = " out"
    else:
        note = " to place" if state[TO_MOVE] == colour else ""
    return f"{name[0].upper()} {name}: {colour_points(state, colour)} points{note}; left ({pieces})"


def draw_svg(variant: Variant, state: Numbers, newest: Sequence[tuple[int, int]] = ()) -> str:
    """The board as an SVG document; squares of the newest piece have a rim."""
    size = variant.side * _SQUARE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" width="{size}" height="{size}">',
        f'<rect width="{size}" height="{size}" fill="#f4f1ea"/>',
    ]
    for row in range(variant.side):
        for column in range(variant.side):
            owner = int(state[HEADER + variant.cell((row, column))]) >> OWNER
            fill = PAINT[variant.colours[owner - 1]] if owner else "none"
            rim = ' stroke="#222222" stroke-width="2"' if (row, column) in newest else ' stroke="#c9c2b4"'
            parts.append(
                f'<rect x="{column * _SQUARE}" y="{row * _SQUARE}" width="{_SQUARE}" height="{_SQUARE}" '
                f'fill="{fill}"{rim}/>'
            )
    for colour, (row, column) in enumerate(variant.starts):
        paint = PAINT[variant.colours[colour]]
        if not int(state[HEADER + variant.cell((row, column))]) >> OWNER:
            x, y = (column + 0.5) * _SQUARE, (row + 0.5) * _SQUARE
            parts.append(f'<circle cx="{x}" cy="{y}" r="{_SQUARE / 5}" fill="{paint}"/>')
    return "\n".join([*parts, "</svg>"])
