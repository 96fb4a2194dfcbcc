"""One hand: who holds which card where, and the moves that change it.

Every seat's 17 cards are fixed when the hand is dealt: 5 for street 1, 3 for each later one, or the first 14 to 17 of
them at once in Fantasyland. What a seat is dealt does not depend on how any seat plays.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from simul.common.runtime.compiled import compiled
from simul.env_worker.games.ofc.actions import DISCARD, PLACEMENTS
from simul.env_worker.games.ofc.cards import DEALT, JOKER, Cards
from simul.env_worker.games.ofc.evaluator import CELLS
from simul.env_worker.games.ofc.random_draws import Draws, shuffle_front

STREETS = 5
OPENING_CARDS, STREET_CARDS = 5, 3
MOST_DISCARDS = 4
UNSEEN = 0
OWN_ROW, OWN_DISCARD, OWN_HAND, OTHERS_ROW = 1, 4, 5, 6  # codes of places; a row adds 0 ... 2, a further seat 3


class Hand:
    """The cards of one hand.

    Attributes:
        dealt: int8 [seats, 17], the cards of each seat in the order in which it gets them.
        board: int8 [seats, 13], top, middle, bottom; -1 = free. Rows fill from the left.
        filled: int8 [seats, 3], cards in each row.
        discards: int8 [seats, 4], -1 = none.
        held: int8 [5], cards of the seat that acts, in the order in which actions number them; `holding` of them.
        fantasy: bool [seats], seats in Fantasyland.
    """

    def __init__(self, players: int) -> None:
        self.dealt: Cards = np.empty((players, DEALT), np.int8)
        self.board: Cards = np.empty((players, CELLS), np.int8)
        self.filled: Cards = np.empty((players, 3), np.int8)
        self.discards: Cards = np.empty((players, MOST_DISCARDS), np.int8)
        self.held: Cards = np.empty(OPENING_CARDS, np.int8)
        self.holding = 0
        self.fantasy: NDArray[np.bool_] = np.zeros(players, np.bool_)

    def deal(self, draws: Draws, deck: int) -> None:
        """A new hand from a shuffled deck of so many cards."""
        deal(draws, deck, self.dealt)
        self.board.fill(-1)
        self.filled.fill(0)
        self.discards.fill(-1)
        self.holding = 0

    def take_cards(self, seat: int, street: int) -> None:
        """The seat takes up its cards of the street, 0 ... 4."""
        self.holding = OPENING_CARDS if street == 0 else STREET_CARDS
        take_cards(self.dealt, self.board, self.discards, self.fantasy, self.held, seat, street)

    def place(self, seat: int, street: int, action: int) -> None:
        """The seat places what it holds; the action is legal."""
        place(self.board, self.filled, self.discards, self.held, self.holding, seat, street, action)
        self.holding = 0

    def set_fantasyland(self, seat: int, board: Cards, discards: Cards) -> None:
        """Lay a whole board, int8 [13], and the discards, int8 [K]."""
        self.board[seat] = board
        self.filled[seat] = (3, 5, 5)
        self.discards[seat, : len(discards)] = discards

    def copy(self) -> Self:
        """An independent copy."""
        other = self.__class__.__new__(self.__class__)
        other.holding = self.holding
        for name in ("dealt", "board", "filled", "discards", "held", "fantasy"):
            setattr(other, name, getattr(self, name).copy())
        return other


@compiled()
def deal(draws: Draws, deck: int, dealt: Cards) -> None:
    """Write int8 [seats, 17]: cards of a shuffled deck, each seat's in a row."""
    cards = np.empty(deck, np.int8)
    for card in range(deck):
        cards[card] = card
    shuffle_front(draws, cards, dealt.size, deck)
    for seat in range(dealt.shape[0]):
        for index in range(DEALT):
            dealt[seat, index] = cards[seat * DEALT + index]


@compiled()
def copy_board(board: Cards, filled: Cards, new_board: Cards, new_filled: Cards) -> None:
    """Write a board, int8 [13], and its row counts, int8 [3], into another's.

    Cell by cell: of `new_board[:] = board`, numba also compiles the sentence for arrays of other lengths, for long.
    """
    for cell in range(CELLS):
        new_board[cell] = board[cell]
    for row in range(3):
        new_filled[row] = filled[row]


@compiled()
def cards_placed(filled: Cards) -> int:
    """Cards on a board with these row counts, int8 [3]."""
    return filled[0] + filled[1] + filled[2]


@compiled()
def locate(
    board: Cards, discards: Cards, held: Cards, holding: int, hidden: NDArray[np.bool_], seat: int, where: Cards
) -> None:
    """Write int8 [54]: each card's place as `seat` knows it. `hidden` [seats]: boards that only their own seats see."""
    where[:] = UNSEEN
    players = board.shape[0]
    for step in range(players):
        other = (seat + step) % players
        if step and hidden[other]:
            continue
        first = OWN_ROW if step == 0 else OTHERS_ROW + 3 * (step - 1)
        for cell in range(CELLS):
            card = board[other, cell]
            if card >= 0:
                where[card] = first + (cell >= 3) + (cell >= 8)
    for index in range(MOST_DISCARDS):
        if discards[seat, index] >= 0:
            where[discards[seat, index]] = OWN_DISCARD
    for index in range(holding):
        where[held[index]] = OWN_HAND


@compiled()
def suit_order(where: Cards, order: Cards) -> None:
    """Write int8 [4]: the canonical number of each suit, by what a seat knows, int8 [54], alone.

    Suit 0 has the most cards in the own bottom, then in the own middle, then in the hand; ties fall by the places of
    its cards from the ace down. Suits that tie in all of it are alike: any order of them gives the same observation.
    """
    keys = np.zeros(4, np.int64)
    for suit in range(4):
        bottom = middle = hand = 0
        places = 0
        for rank in range(12, -1, -1):
            place = where[rank * 4 + suit]
            places = places * 12 + place  # at most 11 is a place, with three players
            bottom += place == OWN_ROW + 2
            middle += place == OWN_ROW + 1
            hand += place == OWN_HAND
        keys[suit] = ((bottom * 6 + middle) * 6 + hand) * 12**13 + places
    for suit in range(4):
        number = 0
        for other in range(4):
            number += keys[other] > keys[suit] or (keys[other] == keys[suit] and other < suit)
        order[suit] = number


@compiled()
def sort_hand(held: Cards, holding: int, order: Cards) -> None:
    """Jokers first, then ranks from the ace down, then suits by their canonical number."""
    for index in range(1, holding):
        card = held[index]
        key = _weight(card, order)
        place = index
        while place > 0 and _weight(held[place - 1], order) < key:
            held[place] = held[place - 1]
            place -= 1
        held[place] = card


@compiled()
def _weight(card: int, order: Cards) -> int:
    if card >= JOKER:
        return 2 * JOKER
    return (card >> 2) * 4 + 3 - order[card & 3]


@compiled()
def take_cards(
    dealt: Cards, board: Cards, discards: Cards, hidden: NDArray[np.bool_], held: Cards, seat: int, street: int
) -> None:
    """Write the seat's cards of the street to `held`, in canonical order."""
    count = OPENING_CARDS if street == 0 else STREET_CARDS
    first = 0 if street == 0 else OPENING_CARDS + STREET_CARDS * (street - 1)
    for index in range(count):
        held[index] = dealt[seat, first + index]
    where = np.empty(54, np.int8)
    order = np.empty(4, np.int8)
    locate(board, discards, held, count, hidden, seat, where)
    suit_order(where, order)
    sort_hand(held, count, order)


@compiled()
def place(
    board: Cards, filled: Cards, discards: Cards, held: Cards, holding: int, seat: int, street: int, action: int
) -> None:
    """Put the held cards where the action says."""
    for index in range(holding):
        row = PLACEMENTS[action, index]
        if row == DISCARD:
            discards[seat, street - 1] = held[index]
        else:
            start = 0 if row == 0 else 5 * row - 2
            board[seat, start + filled[seat, row]] = held[index]
            filled[seat, row] += 1
