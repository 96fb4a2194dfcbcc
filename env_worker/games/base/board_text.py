"""A board as text: the numbers of its rows and columns, and the colours of a terminal that games may use."""

from __future__ import annotations

import re
from collections.abc import Sequence

COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")


def numbered_board(rows: Sequence[Sequence[str]]) -> str:
    """The cells of a board. The numbers of the columns are above it, those of the rows in front, both from 0."""
    across = [str(number) for number in range(len(rows[0]))]
    width = max(len(text) for text in (*across, *(cell for row in rows for cell in row)))
    front = len(str(len(rows) - 1))
    lines = [("", across), *((str(number), row) for number, row in enumerate(rows))]
    return "\n".join(f"{name:>{front}} {' '.join(f'{cell:>{width}}' for cell in cells)}" for name, cells in lines)
