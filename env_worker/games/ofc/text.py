"""Boards as text."""

from __future__ import annotations

import numpy as np

from simul.env_worker.games.ofc.cards import Cards, card_name
from simul.env_worker.games.ofc.evaluator import (
    CATEGORIES,
    ROWS,
    SIZES,
    STARTS,
    board_values,
    category,
    row_value,
    royalty,
)

HIDDEN = "##"
FREE = "--"
STYLES = {
    r"\b[2-9TJQKA][hd]\b": "bold red",
    r"\b[2-9TJQKA][cs]\b": "bold",
    r"\bJo\b": "bold magenta",
    r"\+\d+$|Fantasyland": "green",
    rf"{FREE}|{HIDDEN}": "dim",
    r"^seat \d+": "bold",
    r"\bfouled\b": "red",
}  # of `TurnGame.styles`


def board_lines(board: Cards, hidden: bool) -> list[str]:
    """One line for each row: its cards and, where it is complete, what it is and its royalty."""
    lines = []
    for row, (name, start, size) in enumerate(zip(ROWS, STARTS, SIZES, strict=True)):
        cards = [int(card) for card in board[start : start + size]]
        names = " ".join(HIDDEN if hidden else FREE if card < 0 else card_name(card) for card in cards)
        lines.append(f"  {name:<6} {names:<14}  {'' if hidden or min(cards) < 0 else worth(board, row)}".rstrip())
    return lines


def foul_mark(board: Cards, hidden: bool) -> list[str]:
    """["fouled"] for a complete board whose rows are in the wrong order, which is worth nothing; else []."""
    return ["fouled"] * bool(not hidden and min(board) >= 0 and not board_values(board, np.empty(3, np.int64)))


def worth(board: Cards, row: int) -> str:
    """What a complete row is, and its royalty."""
    value = row_value(board, STARTS[row], SIZES[row])
    points = royalty(row, value)
    return CATEGORIES[category(value)] + (f" +{points}" if points else "")
