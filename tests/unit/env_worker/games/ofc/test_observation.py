"""What a seat sees: all it knows, nothing hidden, and the same for positions that differ by suits."""

from __future__ import annotations

import random

import numpy as np
import pytest

from simul.env_worker.games.ofc.cards import JOKER
from simul.env_worker.games.ofc.rules import Rules
from simul.env_worker.games.ofc.table import OfcGame
from tests.support.ofc_cards import parse_cards
from tests.support.turn_games import played_on

QUEENS = "Qs Qd 2c Kc Kd 3h 4h 6h 2s 5s 7s 9s Js"
PLAIN = "5c 6d 8h Ks Qs 9d 7d 2h As Ad 3s 4s 7h"


def played(rules, seed, moves):
    game = OfcGame(rules)
    game.reset(seed)
    return played_on(game, moves, seed)


def part(game, observation, name):
    piece = game.spec.slice(name)
    return observation[piece.start : piece.start + piece.size]


@pytest.mark.parametrize("rules", [Rules(), Rules(jokers=2)])
def test_what_is_hidden_does_not_move_the_observation(rules):
    for moves in (1, 4, 7, 11, 13):
        game = played(rules, moves, moves)
        (seat,) = game.acting()
        for own in range(rules.players):
            before = game.observation(own)
            changed = game.clone()
            hand = changed.hand
            known = {int(card) for card in hand.board.ravel() if card >= 0}
            known |= {int(card) for card in hand.discards[own] if card >= 0}
            known |= {int(card) for card in hand.held[: hand.holding]} if own == seat else set()
            unknown = [card for card in range(rules.deck) if card not in known]
            swap = dict(zip(unknown, random.Random(1).sample(unknown, len(unknown)), strict=True))
            for array in [hand.dealt, *([] if own == seat else [hand.held])]:
                array.ravel()[:] = [swap.get(int(card), int(card)) for card in array.ravel()]
            for other in range(rules.players):
                if other != own:
                    hand.discards[other] = [swap.get(int(card), int(card)) for card in hand.discards[other]]
            assert (hand.dealt != game.hand.dealt).any()
            assert (changed.observation(own) == before).all()


def test_a_board_in_fantasyland_is_hidden_until_the_hand_is_over():
    game = OfcGame(Rules(button="last"))
    game.reset(4)
    for seat, board in enumerate((QUEENS, PLAIN, PLAIN)):
        game.hand.board[seat], game.hand.filled[seat] = parse_cards(board), (3, 5, 5)
    game._end_hand()
    changed = game.clone()
    changed.hand.board[0] = parse_cards("2c 2d 2h 3c 3d 3h 3s 4c 5c 5d 5h 5s 4d")
    changed.hand.discards[0, 0] = parse_cards("7c")[0]
    for seat in (1, 2):
        assert (changed.observation(seat) == game.observation(seat)).all()
        assert part(game, game.observation(seat), f"seat_{3 - seat}_on.state" if seat == 1 else "seat_1_on.state")[3]
    assert (changed.observation(0) != game.observation(0)).any()
    shown = part(game, game.observation(0), "own.state")
    assert shown[3] == 1
    assert shown[4] == np.float32(14 / 17)
    while game.acting():
        (seat,) = game.acting()
        game.apply({seat: int(game.legal_actions(seat)[-1])})
    if not game.truncated():
        assert part(game, game.observation(1), "cards.seat_2_on.top").sum() == 3


def renamed(game, suits):
    """The same game with its suits exchanged."""
    other = game.clone()
    for name in ("dealt", "board", "discards", "held"):
        array = getattr(other.hand, name)
        array[:] = np.where((array >= 0) & (array < JOKER), array & ~3 | np.array(suits, np.int8)[array & 3], array)
    return other


def by_name(game, seat):
    """Board and discards that every legal action leads to."""
    results = []
    for action in game.legal_actions(seat):
        copy = game.clone()
        copy.hand.place(seat, copy.street, int(action))
        results.append(copy)
    return results


@pytest.mark.parametrize("rules", [Rules(), Rules(jokers=1)])
def test_suits_are_symmetric_in_observations_and_actions(rules):
    draw = random.Random(8)
    for moves in (0, 2, 5, 9, 12):
        game = played(rules, 20 + moves, moves)
        (seat,) = game.acting()
        suits = draw.sample(range(4), 4)
        other = renamed(game, suits)
        other.hand.take_cards(seat, other.street)
        for own in range(3):
            assert (other.observation(own) == game.observation(own)).all()
        for one, two in zip(by_name(game, seat), by_name(other, seat), strict=True):
            assert (one.observation(seat) == two.observation(seat)).all()


def test_the_cards_of_the_hand_stand_in_the_order_of_the_actions():
    game = OfcGame(Rules(jokers=2, button="last"))
    game.reset(1)
    game.hand.dealt[0, :5] = parse_cards("2s Jo Kd Kh 9h")
    game.hand.take_cards(0, 0)
    observation = game.observation(0)
    ranks = [part(game, observation, f"hand.{index}") for index in range(5)]
    assert [int(row.argmax()) if row[:13].any() else "joker" for row in ranks] == ["joker", 11, 11, 7, 0]
    assert ranks[0].tolist() == [0] * 17 + [1]
    assert ranks[1][13:17].tolist() == [1, 0, 0, 0]  # hearts: most cards in the hand
    assert part(game, observation, "cards.hand").sum() == 4.5


def test_rows_and_position_are_told():
    game = OfcGame(Rules(button="last"))
    game.reset(1)
    hand = game.hand
    hand.board[0] = [*parse_cards("Qs Qd"), -1, *parse_cards("2c 3c 5c"), -1, -1, *parse_cards("As Ad Ac Ah Kd")]
    hand.filled[0] = (2, 3, 5)
    observation = game.observation(0)
    top, middle, bottom = (part(game, observation, f"own.{row}") for row in ("top", "middle", "bottom"))
    assert top[0] == np.float32(2 / 3)
    assert top[2] == 1
    assert top[10] == np.float32(12 / 14)
    assert top[12] == np.float32(7 / 25)
    assert middle[1] == 1
    assert middle[13] == 1
    assert middle[14] == 1
    assert bottom[8] == 1
    assert bottom[12] == np.float32(10 / 25)
    assert bottom[13:].tolist() == [0, 0]
    assert part(game, observation, "own.state").tolist() == [1, 0, 0, 0, 0]
    assert part(game, observation, "position").tolist() == [0, 0, 1]
    assert part(game, game.observation(2), "position").tolist() == [1, 0, 0]
    seen = part(game, game.observation(1), "cards.seat_2_on.bottom").reshape(13, 4)
    assert seen[12].sum() == 4
    assert seen[11].sum() == 1
    assert seen.sum() == 5
    assert part(game, observation, "unseen")[12] == 0


def test_own_discards_are_seen_by_their_seat_only():
    game = played(Rules(button="last"), 3, 10)
    assert part(game, game.observation(0), "cards.own.discards").sum() == 3
    assert part(game, game.observation(2), "cards.own.discards").sum() == 2


@pytest.mark.parametrize("jokers", [1, 2])
def test_jokers_that_are_not_seen_are_those_of_the_deck(jokers):
    game = next(
        game for game in (played(Rules(jokers=jokers), seed, 0) for seed in range(50)) if max(game.hand.held) < JOKER
    )
    (seat,) = game.acting()
    assert part(game, game.observation(seat), "unseen")[17] == jokers / 2
