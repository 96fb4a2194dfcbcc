"""Boards as an SVG document."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from simul.env_worker.games.ofc.cards import JOKER, RANKS, Cards
from simul.env_worker.games.ofc.evaluator import SIZES, STARTS
from simul.env_worker.games.ofc.text import worth

_WIDTH, _HEIGHT, _GAP = 34, 46, 4  # pixels of a card, and between cards
_TITLE, _MARGIN = 24, 12
_NOTES = 170  # pixels beside the rows for what they are worth
_SUITS = "\u2663\u2666\u2665\u2660"
_PAINT = ("#1d7a3c", "#2b5fc4", "#c4302b", "#222222")  # clubs, diamonds, hearts, spades
_ROWS = 4  # three rows, then discards and held cards


class SeatPicture(NamedTuple):
    """What is drawn of a seat.

    Attributes:
        board: int8 [13], -1 = free; `hidden`: shown from behind.
        discards, held: int8 [K], under the board; the discards are pale.
    """

    title: str
    board: Cards
    hidden: bool
    discards: Cards
    held: Cards


def draw_svg(seats: Sequence[SeatPicture]) -> str:
    """The seats below each other."""
    seat_height = _TITLE + _ROWS * (_HEIGHT + _GAP) + _MARGIN
    width, height = 2 * _MARGIN + 5 * (_WIDTH + _GAP) + _NOTES, 2 * _MARGIN + len(seats) * seat_height
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="14">',
        f'<rect width="{width}" height="{height}" fill="#f4f1ea"/>',
    ]
    for index, seat in enumerate(seats):
        parts += _seat(seat, _MARGIN + index * seat_height)
    return "\n".join([*parts, "</svg>"])


def _seat(seat: SeatPicture, top: float) -> list[str]:
    parts = [_text(_MARGIN, top + 16, seat.title, weight="bold")]
    for row, (start, size) in enumerate(zip(STARTS, SIZES, strict=True)):
        y = top + _TITLE + row * (_HEIGHT + _GAP)
        cards = [int(card) for card in seat.board[start : start + size]]
        parts += [part for place, card in enumerate(cards) for part in _card(card, place, y, hidden=seat.hidden)]
        if min(cards) >= 0 and not seat.hidden:
            parts.append(_text(2 * _MARGIN + 5 * (_WIDTH + _GAP), y + 28, worth(seat.board, row)))
    y = top + _TITLE + 3 * (_HEIGHT + _GAP)
    under = [*((int(card), True) for card in seat.discards), *((int(card), False) for card in seat.held)]
    for place, (card, pale) in enumerate(under):
        parts += _card(card, place, y, pale=pale)
    words = ["discarded"] * bool(len(seat.discards)) + ["in hand"] * bool(len(seat.held))
    if words:
        parts.append(_text(2 * _MARGIN + max(5, len(under)) * (_WIDTH + _GAP), y + 28, ", ".join(words)))
    return parts


def _card(card: int, place: int, y: float, *, hidden: bool = False, pale: bool = False) -> list[str]:
    x = _MARGIN + place * (_WIDTH + _GAP)
    fill = "#7a8ba8" if hidden else "#ffffff" if card >= 0 else "none"
    opacity = ' opacity="0.45"' if pale else ""
    box = f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="4" fill="{fill}" stroke="#8d8779"{opacity}/>'
    if hidden or card < 0:
        return [box]
    name = "Jo" if card >= JOKER else RANKS[card >> 2].replace("T", "10") + _SUITS[card & 3]
    paint = "#8a4fc8" if card >= JOKER else _PAINT[card & 3]
    middle = x + _WIDTH / 2
    return [box, _text(middle, y + 29, name, paint=paint, more=f' text-anchor="middle" font-size="16"{opacity}')]


def _text(x: float, y: float, words: str, *, paint: str = "#222222", weight: str = "normal", more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" fill="{paint}" font-weight="{weight}"{more}>{escape(words)}</text>'
