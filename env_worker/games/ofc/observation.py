"""What a seat sees, as numbers. Suits are renamed to their canonical numbers (`hand.suit_order`), so positions that
differ by an exchange of suits give the same observation and number their actions alike.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simul.common.protocol.specs import GameSpec, Slice
from simul.common.runtime.compiled import compiled
from simul.env_worker.games.ofc.actions import NUM_ACTIONS
from simul.env_worker.games.ofc.cards import JOKER, Cards
from simul.env_worker.games.ofc.evaluator import (
    BOTTOM,
    CATEGORY,
    MIDDLE,
    ROWS,
    TOP,
    row_value,
    royalty,
)
from simul.env_worker.games.ofc.hand import OPENING_CARDS, OTHERS_ROW, STREETS, UNSEEN, locate, suit_order
from simul.env_worker.games.ofc.rules import Rules

ROW_NUMBERS = 15  # filled, 9 categories, 2 ranks, royalty, flush and straight possible
SEAT_NUMBERS = 3 * ROW_NUMBERS + 5
ROYALTY_SCALE = 25


def ofc_spec(rules: Rules) -> GameSpec:
    """The spec of a table with these rules."""
    layout = _layout(rules.players, rules.jokers > 0)
    return GameSpec(
        name=f"ofc/pineapple-{rules.players}" + (f"-{rules.jokers}-jokers" if rules.jokers else ""),
        observation_size=layout[-1].start + layout[-1].size, num_actions=NUM_ACTIONS, seats=rules.players,
        layout=layout,
    )  # fmt: skip


def _layout(players: int, jokers: bool) -> tuple[Slice, ...]:
    parts: list[Slice] = []

    def add(name: str, size: int, meaning: str, high: float = 1.0) -> None:
        start = parts[-1].start + parts[-1].size if parts else 0
        parts.append(Slice(name, start, size, high=high, meaning=meaning))

    seats = ["own", *(f"seat_{step}_on" for step in range(1, players))]
    cards = "1 for each card there, number rank * 4 + canonical suit" + ("; jokers / 2" if jokers else "")
    for place in ("own.top", "own.middle", "own.bottom", "own.discards", "hand"):
        add(f"cards.{place}", 52 + jokers, cards)
    for seat in seats[1:]:
        for row in ROWS:
            add(f"cards.{seat}.{row}", 52 + jokers, cards)
    for index in range(OPENING_CARDS):
        add(
            f"hand.{index}", 17 + jokers, "13 ranks, 4 canonical suits, joker of the card that actions give this number"
        )
    add("unseen", 17 + jokers, "cards whose place the seat does not know: of each rank / 4, suit / 13, jokers / 2")
    add("street", STREETS, "one-hot")
    add("position", players, "one-hot: seats that act after this one; 0 is the button")
    for seat in seats:
        for row in ROWS:
            add(
                f"{seat}.{row}", ROW_NUMBERS,
                "cards / size; category of the cards there, one-hot; its first two ranks / 14; royalty / 25; flush and "
                "straight possible", high=2.0,
            )  # fmt: skip
        add(
            f"{seat}.state", 5,
            "now bottom >= middle; now middle >= top; fouled for certain; in Fantasyland; its cards there / 17",
        )  # fmt: skip
    return tuple(parts)


@compiled()
def encode(
    board: Cards, filled: Cards, discards: Cards, held: Cards, holding: int, hidden: NDArray[np.bool_],
    fantasy_cards: NDArray[np.int64], seat: int, street: int, behind: int, deck: int, out: NDArray[np.float32],
) -> None:  # fmt: skip
    """Write the observation of `seat` to `out`, zeros before.

    Args:
        hidden: bool [seats], boards that only their own seats see.
        fantasy_cards: int64 [seats], cards that seats in Fantasyland got, else 0.
        behind: seats between this one and the button, the button included.
        deck: cards of it, jokers included.
    """
    players, jokers = board.shape[0], deck > JOKER
    where = np.empty(54, np.int8)
    order = np.empty(4, np.int8)
    locate(board, discards, held, holding, hidden, seat, where)
    suit_order(where, order)
    width, ranks = 52 + jokers, 17 + jokers
    places = OTHERS_ROW - 1 + 3 * (players - 1)
    unseen = places * width + OPENING_CARDS * ranks
    for card in range(deck):
        place = where[card]
        if card >= JOKER:
            out[(place - 1) * width + 52 if place != UNSEEN else unseen + 17] += 0.5
        elif place != UNSEEN:
            out[(place - 1) * width + (card & ~3) + order[card & 3]] = 1
        else:
            out[unseen + (card >> 2)] += 0.25
            out[unseen + 13 + order[card & 3]] += np.float32(1 / 13)
    for index in range(holding):
        start = places * width + index * ranks
        if held[index] >= JOKER:
            out[start + 17] = 1
        else:
            out[start + (held[index] >> 2)] = 1
            out[start + 13 + order[held[index] & 3]] = 1
    start = unseen + ranks
    out[start + street] = 1
    out[start + STREETS + behind] = 1
    start += STREETS + players
    for step in range(players):
        other = (seat + step) % players
        if step == 0 or not hidden[other]:
            _encode_board(board[other], filled[other], out, start)
        out[start + SEAT_NUMBERS - 2] = fantasy_cards[other] > 0
        out[start + SEAT_NUMBERS - 1] = fantasy_cards[other] / 17
        start += SEAT_NUMBERS


@compiled()
def _encode_board(board: Cards, filled: Cards, out: NDArray[np.float32], start: int) -> None:
    values = np.zeros(3, np.int64)
    for row in range(3):
        size, first = (3, 0) if row == 0 else (5, 5 * row - 2)
        values[row] = row_value(board, first, filled[row])
        at = start + row * ROW_NUMBERS
        out[at] = filled[row] / size
        if filled[row]:
            out[at + 1 + (values[row] >> CATEGORY)] = 1
            out[at + 10] = ((values[row] >> 16) & 15) / 14
            out[at + 11] = ((values[row] >> 12) & 15) / 14
            out[at + 12] = royalty(row, values[row]) / ROYALTY_SCALE
        if size == 5:
            _encode_draws(board, first, filled[row], out, at + 13)
    ordered_low = values[BOTTOM] >= values[MIDDLE]
    ordered_high = values[MIDDLE] >= values[TOP]
    at = start + 3 * ROW_NUMBERS
    out[at], out[at + 1] = ordered_low, ordered_high
    full_low = filled[BOTTOM] == 5 and filled[MIDDLE] == 5
    full_high = filled[MIDDLE] == 5 and filled[TOP] == 3
    out[at + 2] = (full_low and not ordered_low) or (full_high and not ordered_high)


@compiled()
def _encode_draws(board: Cards, first: int, count: int, out: NDArray[np.float32], at: int) -> None:
    """Whether a row of five may still become a flush, and a straight."""
    suit, ranks = -1, 0
    suited = distinct = True
    for cell in range(first, first + count):
        card = int(board[cell])
        if card >= JOKER:
            continue
        bit = 1 << (card >> 2)
        distinct = distinct and ranks & bit == 0
        suited = suited and (suit < 0 or suit == card & 3)
        ranks |= bit
        suit = card & 3
    out[at] = suited
    if distinct:
        for top in range(12, 2, -1):
            window = (0b11111 << (top - 4)) if top > 3 else 0b1000000001111
            if ranks & ~window == 0:
                out[at + 1] = 1
                return
