"""The game: dealing, order of play, actions, ends, Fantasyland, and that moves and seed determine it."""

from __future__ import annotations

import random
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simul.common.errors import ConfigError
from simul.env_worker.games.base.turn_game import IllegalActionError
from simul.env_worker.games.ofc import table
from simul.env_worker.games.ofc.actions import FIRST_STREET, NUM_ACTIONS, OPENINGS, PLACEMENTS
from simul.env_worker.games.ofc.cards import JOKER
from simul.env_worker.games.ofc.estimates.fantasy_rollouts import EVERY_DRAW
from simul.env_worker.games.ofc.evaluator import board_values, row_value
from simul.env_worker.games.ofc.rules import Rules, entry_cards, stays
from simul.env_worker.games.ofc.table import DRAWN_BOARDS, LONGEST_CHAIN, OfcGame
from tests.support.ofc_cards import parse_cards
from tests.support.turn_games import played_on


def dealt(seed, **rules):
    game = OfcGame(Rules(**rules))
    game.reset(seed)
    return game


def fill(game, boards):
    """End the running hand with these boards, of all seats that act in it."""
    for seat, text in boards.items():
        game.hand.board[seat] = parse_cards(text)
        game.hand.filled[seat] = (3, 5, 5)
    game._end_hand()


PLAIN = "5c 6d 8h Ks Qs 9d 7d 2h As Ad 3s 4s 7h"
QUEENS = "Qs Qd 2c Kc Kd 3h 4h 6h 2s 5s 7s 9s Js"
KINGS = "Ks Kd 2c Ac Ad 3h 4h 6h 2s 5s 7s 9s Js"
ACES = "As Ad 2c Ac Kd Kh 4h 4d 2s 5s 7s 9s Js"
TRIPS = "3s 3d 3c 4c 4d 4h 6h 7d 2s 5s 7s 9s Js"
FOULED_QUEENS = "Qs Qd 2c Jc Jd 3h 4h 6h 2s 5s 7s 9s Js"


@pytest.mark.parametrize("options", [{}, {"players": 2, "jokers": 2, "hands": 3}, {"foul_cost": 2.5}])
def test_scores_add_up_to_zero_and_a_game_that_is_over_takes_no_action(options):
    game = OfcGame(Rules(**options))
    for seed in range(12):
        game.reset(seed)
        returns = played_on(game, 1000, seed).returns()
        assert sum(returns) == 0
        for actions in ({}, {0: 0}):
            with pytest.raises(IllegalActionError):
                game.apply(actions)
        assert game.returns() == returns


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**63 - 1), st.sampled_from([2, 3]), st.sampled_from([0, 1, 2]), st.integers(0, 99))
def test_every_card_is_dealt_once(seed, players, jokers, draw):
    game = OfcGame(Rules(players=players, jokers=jokers, fantasyland=False))
    game.reset(seed)
    played_on(game, 1000, draw)
    cards = [*game.hand.board.ravel(), *game.hand.discards.ravel()]
    assert len(set(cards)) == 17 * players
    assert min(cards) >= 0
    assert max(cards) < JOKER + jokers
    assert (np.sort(cards) == np.sort(game.hand.dealt.ravel())).all()


def test_three_players_are_dealt_51_of_52_cards_and_all_52_come_up():
    game = OfcGame(Rules())
    absent = set()
    for seed in range(400):
        game.reset(seed)
        (left,) = set(range(JOKER)) - set(game.hand.dealt.ravel().tolist())
        absent.add(left)
    assert absent == set(range(JOKER))


def test_a_seed_deals_the_same_cards_whatever_is_played():
    one, two = OfcGame(Rules(hands=2, fantasyland=False)), OfcGame(Rules(hands=2, fantasyland=False))
    hands = []
    for game, seed in ((one, 1), (two, 2)):
        game.reset(77)
        dealt = [game.hand.dealt.copy()]
        draw = random.Random(seed)
        while game.last is None:
            (seat,) = game.acting()
            game.apply({seat: int(draw.choice(game.legal_actions(seat)))})
        hands.append([*dealt, game.hand.dealt.copy()])
    assert (hands[0][0] == hands[1][0]).all()
    assert (hands[0][1] == hands[1][1]).all()
    assert (hands[0][0] != hands[0][1]).any()


def test_the_button_acts_last_on_every_street_and_moves_after_a_regular_hand():
    game = dealt(5, hands=3, fantasyland=False)
    buttons = []
    while game.acting():
        button, order = game.button, []
        buttons.append(button)
        for _ in range(15):
            order += game.acting()
            game.apply({order[-1]: int(game.legal_actions(order[-1])[0])})
        around = [(button + 1) % 3, (button + 2) % 3, button]
        assert order == around * 5
    assert buttons == [buttons[0], (buttons[0] + 1) % 3, (buttons[0] + 2) % 3]


def test_the_first_button_is_drawn_from_the_seed_or_fixed():
    game, fixed = OfcGame(Rules()), OfcGame(Rules(button="last"))
    buttons = []
    for seed in range(300):
        game.reset(seed)
        fixed.reset(seed)
        buttons.append(game.button)
        assert fixed.button == 2
    assert min(np.bincount(buttons, minlength=3)) > 60


def test_action_ids_and_their_counts():
    assert OPENINGS == 232
    assert NUM_ACTIONS == 259
    assert all(rows.count(0) <= 3 for rows in FIRST_STREET)
    assert len({tuple(rows) for rows in PLACEMENTS.tolist()}) == NUM_ACTIONS
    game = OfcGame(Rules(fantasyland=False))
    for seed in range(20):
        game.reset(seed)
        draw = random.Random(seed)
        while game.acting():
            (seat,) = game.acting()
            legal = game.legal_actions(seat)
            room = np.array([3, 5, 5]) - game.hand.filled[seat]
            if game.street == 0:
                assert legal.tolist() == list(range(232))
            else:
                assert legal.min() >= 232
                assert 1 <= len(legal) <= 27
                open_rows = [(a, b) for a in range(3) for b in range(3)]
                fitting = [p for p in open_rows if all(p.count(row) <= room[row] for row in range(3))]
                assert len(legal) == 3 * len(fitting)
            if game.street == 4:
                assert len(legal) in (3, 6)
            game.apply({seat: int(draw.choice(legal))})


def test_an_action_puts_the_cards_where_it_says():
    game = dealt(3, button="last")
    game.hand.held[:] = parse_cards("As Kd 9c 5h 2s")
    action = FIRST_STREET.index((2, 1, 2, 0, 1))
    assert game.action_name(0, action) == "top: 5h; middle: Kd 2s; bottom: As 9c"
    game.apply({0: action})
    assert (game.hand.board[0, [0, 3, 4, 8, 9]] == parse_cards("5h Kd 2s As 9c")).all()
    for seat in (1, 2):
        game.apply({seat: 231})
    game.hand.held[:3] = parse_cards("Qs Jd 3c")
    action = 232 + 1 * 9 + 0 * 3 + 2
    assert game.action_name(0, action) == "top: Qs; bottom: 3c; discard: Jd"
    game.apply({0: action})
    assert game.hand.board[0, 1] == parse_cards("Qs")[0]
    assert game.hand.board[0, 10] == parse_cards("3c")[0]
    assert game.hand.discards[0].tolist() == [*parse_cards("Jd"), -1, -1, -1]


@pytest.mark.parametrize(("board", "cards"), [(QUEENS, 14), (KINGS, 15), (ACES, 16), (TRIPS, 17)])
def test_progressive_fantasyland(board, cards):
    top = row_value(parse_cards(board), 0, 3)
    assert entry_cards(top, True) == cards
    assert entry_cards(top, False) == 14
    assert entry_cards(row_value(parse_cards("Js Jd Ac"), 0, 3), True) == 0
    assert entry_cards(row_value(parse_cards("As Kd Qc"), 0, 3), True) == 0


@pytest.mark.parametrize(
    ("top", "middle", "bottom", "strict", "wide"),
    [
        ("As Ad Kc", "2c 2d 2h 3c 3d", "4c 4d 4h 5c 5d", False, True),
        ("2c 2d 2h", "3c 4c 5c 6c Kc", "4d 4s 4h 5s 5d", True, True),
        ("As Ad Kc", "3c 4c 5c 6c Kc", "4d 4s 4h 4c 5d", True, True),
        ("As Ad Kc", "3c 4c 5c 6c Kc", "4d 4s 4h 5s 5d", False, False),
    ],
)
def test_both_stay_rules(top, middle, bottom, strict, wide):
    values = [row_value(parse_cards(row), 0, size) for row, size in ((top, 3), (middle, 5), (bottom, 5))]
    assert stays(*values, False) == strict
    assert stays(*values, True) == wide


def test_queens_on_top_play_the_next_hand_in_fantasyland_and_the_button_stays():
    game = dealt(4, button="last", progressive=True)
    fill(game, {0: KINGS, 1: PLAIN, 2: PLAIN})
    assert game.fantasy_cards.tolist() == [15, 0, 0]
    assert game.button == 2
    assert game.acting() == (1,)
    assert board_values(game.hand.board[0], np.empty(3, np.int64))
    assert len(set(game.hand.board[0]) | set(game.hand.discards[0][:2])) == 15
    order = []
    while game.last.fantasy.sum() == 0:
        (seat,) = game.acting()
        order.append(seat)
        game.apply({seat: int(game.legal_actions(seat)[0])})
    assert order == [1, 2] * 5


def test_a_foul_and_fantasyland_off_lead_nowhere():
    for rules, board in ((Rules(), FOULED_QUEENS), (Rules(fantasyland=False), QUEENS)):
        game = OfcGame(rules)
        game.reset(4)
        fill(game, {0: board, 1: PLAIN, 2: PLAIN})
        assert game.acting() == ()
        assert not game.truncated()


def test_the_cost_of_a_foul_is_learned_from_and_not_scored():
    for cost in (0.0, 2.5):
        game = OfcGame(Rules(foul_cost=99.0, final_foul_cost=cost, hands=2))
        game.reset(0)
        fill(game, {0: FOULED_QUEENS, 1: PLAIN, 2: FOULED_QUEENS})
        assert sum(game.returns()) == 0
        assert game.returns()[0] < 0
        assert [a - b for a, b in zip(game.returns(), game.learned_returns())] == [cost, 0, cost]
        fill(game, {0: FOULED_QUEENS, 1: PLAIN, 2: PLAIN})
        assert [a - b for a, b in zip(game.returns(), game.learned_returns())] == [2 * cost, 0, cost]


def test_the_cost_of_a_foul_changes_in_a_straight_line_while_the_policy_learns():
    game = OfcGame(Rules(foul_cost=15.0, final_foul_cost=3.0))
    for share, cost in ((0.0, 15.0), (0.25, 12.0), (1.0, 3.0)):
        game.set_progress(share)
        game.reset(0)
        fill(game, {0: FOULED_QUEENS, 1: PLAIN, 2: PLAIN})
        for played in (game, game.clone()):
            assert played.returns()[0] - played.learned_returns()[0] == cost


def test_the_episode_holds_all_hands_in_fantasyland_and_then_the_next_regular_one():
    game = dealt(4, hands=2, button="last")
    fill(game, {0: QUEENS, 1: PLAIN, 2: PLAIN})
    game.hand.board[0] = parse_cards(TRIPS)  # stays
    fill(game, {1: PLAIN, 2: PLAIN})
    assert game.fantasy_cards.tolist() == [14, 0, 0]
    assert game.button == 2
    game.hand.board[0] = parse_cards(PLAIN)
    fill(game, {1: PLAIN, 2: PLAIN})
    assert not game.fantasy_cards.any()
    assert game.button == 0
    assert game.acting() == (1,)
    fill(game, {0: PLAIN, 1: PLAIN, 2: PLAIN})
    assert game.acting() == ()
    figures = game.figures()
    assert figures["fantasyland_entry"] == [0.5, 0, 0]  # of two regular hands
    assert figures["fantasyland_stay"] == [0.25, 0, 0]
    assert figures["fantasyland_hands"] == [0.5, 0, 0]


def test_a_chain_of_hands_in_fantasyland_is_cut_short():
    game = dealt(4)
    for _ in range(LONGEST_CHAIN):
        fill(game, {0: TRIPS, 1: PLAIN, 2: PLAIN})
        assert game.acting()
    fill(game, {0: TRIPS, 1: PLAIN, 2: PLAIN})
    assert game.acting() == ()
    assert game.truncated()


def test_points_of_three_seats_and_figures():
    game = dealt(1, fantasyland=False)
    fill(game, {0: QUEENS, 1: PLAIN, 2: FOULED_QUEENS})
    # seat 0: royalties 7 + 4, wins all rows of seat 1
    assert game.returns() == [17 + 17, -17 + 6, -17 - 6]
    figures = game.figures()
    assert figures["foul_rate"] == [0, 0, 1]
    assert figures["royalties_per_hand"] == [11, 0, 0]
    assert figures["royalties_top"] == [7, 0, 0]
    assert figures["score_per_hand"] == [34, -11, -23]


def test_values_of_street_4_count_a_bounded_number_of_last_draws_of_others(monkeypatch):
    asked = []
    monkeypatch.setattr(table, "candidate_scores", lambda *arguments: asked.append(arguments[-1]))
    game = dealt(1)
    for street, most_draws in ((3, DRAWN_BOARDS), (4, EVERY_DRAW)):
        while game.street < street:
            game.apply({game.acting()[0]: int(game.legal_actions(game.acting()[0])[0])})
        game.action_values(game.acting()[0], random.Random(1))
        assert asked.pop() == most_draws


def test_render_hides_what_a_seat_does_not_know():
    game = dealt(4, button="last")
    fill(game, {0: QUEENS, 1: PLAIN, 2: PLAIN})
    shown, of_one = game.render(), game.render(1)
    assert "##" not in shown
    assert shown.count("  out ") == 1
    assert of_one.count("##") == 13
    assert "  out " not in of_one
    assert "seat 1 holds" in of_one
    assert "seat 1 holds" not in game.render(2)
    assert "Fantasyland" in of_one


def test_a_fouled_board_is_marked_in_text_picture_and_the_line_of_the_next_hand():
    game = dealt(4, players=2, hands=2, button="last", fantasyland=False)
    fill(game, {0: FOULED_QUEENS, 1: PLAIN})
    assert re.search(r"the hand before: -\d+ \(fouled\), \+\d+$", game.render().splitlines()[0])
    game.hand.board[0], game.hand.board[1] = parse_cards(FOULED_QUEENS), parse_cards(PLAIN)
    for shown in (game.render(), game.svg()):
        assert re.search(r"seat 0: [^\n<]*, fouled", shown)
        assert not re.search(r"seat 1: [^\n<]*fouled", shown)


def test_a_picture_hides_the_same_and_shows_every_other_card():
    game = dealt(4, button="last")
    fill(game, {0: QUEENS, 1: PLAIN, 2: PLAIN})
    whole, of_one = game.svg(), game.svg(1)
    back = "#7a8ba8"
    assert whole.count(back) == 0
    assert of_one.count(back) == 13
    cards = [each for each in ElementTree.fromstring(whole) if each.get("rx")]
    assert len(cards) == 3 * 13 + 1 + 5, "boards, the discard in Fantasyland, and what seat 1 holds"
    assert "in hand" in of_one
    assert "in hand" not in game.svg(2)


def test_people_write_rows_and_do_not_see_discards():
    game = dealt(4, button="last", players=2)
    for _ in range(2):
        (seat,) = game.acting()
        held = [word.rstrip(",") for word in game.action_help(seat).rpartition(": ")[2].split()[::2]]
        assert game.parse_action(seat, ", ".join(f"{card} b" for card in held)) == OPENINGS - 1
        with pytest.raises(ValueError, match="write every card with its row"):
            game.parse_action(seat, f"{held[0]} b")
        game.apply({seat: OPENINGS - 1})
    (seat,) = game.acting()
    action = game.parse_action(seat, game.action_help(seat).rpartition(": ")[2])
    assert "discard" in game.action_name(seat, action)
    assert game.shown_action(seat, action) == game.action_name(seat, action).partition("; discard")[0]
    assert game.parse_action(seat, game.action_name(seat, action)) == action


@pytest.mark.parametrize(
    "options",
    [
        {"players": 4},
        {"players": 1},
        {"jokers": 3},
        {"hands": 0},
        {"stay_value": -1.0},
        {"foul_cost": -1.0},
        {"final_foul_cost": -1.0},
    ],
)
def test_impossible_rules_are_refused_in_a_sentence(options):
    with pytest.raises(ConfigError, match=r"not|is"):
        Rules(**options)


def test_cards_that_do_not_exist_are_refused():
    for text in ("Xs", "A", "As As", "Jo Jo Jo"):
        with pytest.raises(ValueError):
            parse_cards(text)
