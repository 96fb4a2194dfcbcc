"""Scripted players: legal, blind to what is hidden, no foul that can be avoided, stronger than chance."""

from __future__ import annotations

import random

import numpy as np
import pytest

from simul.common.errors import ConfigError
from simul.env_worker.games.base.players import RandomPlayer
from simul.env_worker.games.ofc.estimates.endgame import before_last_worths
from simul.env_worker.games.ofc.estimates.heuristic import chance, final_worth
from simul.env_worker.games.ofc.evaluator import board_values
from simul.env_worker.games.ofc.players import FantasyRulesPlayer, MonteCarloPlayer, RulePlayer
from simul.env_worker.games.ofc.rules import Rules
from simul.env_worker.games.ofc.table import OfcGame
from tests.support.ofc_cards import parse_cards


def play(players, rules, games, first_seed=0):
    """Mean figures of the first player, who takes each seat in turn."""
    game, draw = OfcGame(rules), random.Random(5)
    totals = {}
    for number in range(games):
        game.reset(first_seed + number // rules.players)
        while game.acting():
            (seat,) = game.acting()
            action = players[(seat + number) % rules.players].choose(game, seat, draw)
            assert action in game.legal_actions(seat)
            game.apply({seat: action})
        seat = -number % rules.players
        for name, values in game.figures().items():
            totals[name] = totals.get(name, 0.0) + values[seat] / games
    return totals


@pytest.mark.parametrize("rules", [Rules(), Rules(players=2, jokers=2, progressive=True), Rules(fantasyland=False)])
def test_the_rule_based_player_seldom_fouls_and_beats_the_random_one(rules):
    figures = play([RulePlayer(), *[RandomPlayer()] * (rules.players - 1)], rules, 60)
    assert figures["foul_rate"] < 0.25
    assert figures["score_per_hand"] > 3
    assert figures["royalties_per_hand"] > 1


TABLES = [
    Rules(hands=2), Rules(players=2, jokers=1, hands=2), Rules(jokers=2, progressive=True), Rules(fantasyland=False),
    Rules(players=2, jokers=2, progressive=True, stay="full_house_too"), Rules(players=2, fantasyland=False),
]  # fmt: skip


def strong(**changes):
    return MonteCarloPlayer(**{"rollouts": 2, "openings": 3, "rollouts_by": "fantasy_rules", **changes})


@pytest.mark.parametrize(
    "rules",
    [pytest.param(table, marks=pytest.mark.slow if at in (0, 3, 5) else ()) for at, table in enumerate(TABLES)],
)  # .ci/long runs the slow ones: the others have every rule
def test_players_for_fantasyland_play_legally_at_every_table(rules):
    play([FantasyRulesPlayer(), strong(), FantasyRulesPlayer()][: rules.players], rules, 6)  # asserts legality


@pytest.mark.parametrize("player", [FantasyRulesPlayer(), strong()])
def test_players_choose_the_same_under_one_seed(player):
    game = OfcGame(Rules(jokers=1))
    game.reset(3)
    while game.acting():
        (seat,) = game.acting()
        first, again = (player.choose(game, seat, random.Random(9)) for _ in range(2))
        assert first == again
        game.apply({seat: first})


def test_rollouts_draw_from_the_seed():
    game = OfcGame(Rules())
    game.reset(4)
    chosen = {strong(rollouts=1, openings=12).choose(game, game.acting()[0], random.Random(seed)) for seed in range(12)}
    assert len(chosen) > 1


def test_the_player_for_fantasyland_enters_it_fouls_within_bounds_and_beats_the_rule_based_one():
    figures = play([FantasyRulesPlayer(), RulePlayer(), RulePlayer()], Rules(), 450)
    assert 0.05 < figures["foul_rate"] < 0.2
    assert figures["fantasyland_entry"] > 0.06
    assert figures["score_per_hand"] > 1.5


def test_the_monte_carlo_player_beats_the_random_one_with_jokers_and_hidden_boards():
    rules = Rules(players=2, jokers=1, hands=2, progressive=True)
    figures = play([MonteCarloPlayer(rollouts=4, openings=3), RandomPlayer()], rules, 12)
    assert figures["score_per_hand"] > 2


def fouls(game, seat, action):
    board = game.clone()
    board.hand.place(seat, board.street, action)
    return not board_values(board.hand.board[seat], np.empty(3, np.int64))


def last_street_game(seed):
    """A game at its last street: two streets of the rule-based player, then random ones."""
    game, draw = OfcGame(Rules(fantasyland=False)), random.Random(seed)
    game.reset(seed)
    while game.street < 4:
        (seat,) = game.acting()
        game.apply({seat: RulePlayer().choose(game, seat, draw) if game.street < 2 else
                    int(draw.choice(game.legal_actions(seat)))})  # fmt: skip
    return game


def test_the_rule_based_player_fouls_on_the_last_street_only_where_every_action_does():
    avoided = 0
    for seed in range(120):
        game = last_street_game(seed)
        (seat,) = game.acting()
        outcomes = {int(action): fouls(game, seat, int(action)) for action in game.legal_actions(seat)}
        chosen = RulePlayer().choose(game, seat, random.Random(0))
        assert outcomes[chosen] == all(outcomes.values())
        avoided += any(outcomes.values()) and not all(outcomes.values())
    assert avoided > 10  # otherwise nothing was shown


def before_last_game():
    game = OfcGame(Rules(button="last", fantasyland=False))
    game.reset(1)
    hand = game.hand
    game._turn = 9  # seat 0 on street 4
    hand.board[0] = [*parse_cards("Qs Qd"), -1, *parse_cards("Kc Kd 3h"), -1, -1, *parse_cards("As Ad 5s 5d"), -1]
    hand.filled[0] = (2, 3, 4)
    hand.held[:3] = parse_cards("Qc 7c 2d")
    hand.holding = 3
    return game


def test_before_the_last_street_worths_are_the_means_over_every_draw():
    game = before_last_game()
    hand, unseen = game.hand, parse_cards("Qh 7d 4c 6s Jh 2h")
    worths, lost = np.empty(259), np.empty(259)
    before_last_worths(hand.board[0], hand.filled[0], hand.held, unseen, 8.0, 12.0, worths, lost)
    for action in game.legal_actions(0).tolist():
        results = []
        for one in range(6):
            for two in range(one + 1, 6):
                for three in range(two + 1, 6):
                    results.append(best_reply(game, action, unseen[[one, two, three]]))
        assert worths[action] == pytest.approx(np.mean(results))
        assert lost[action] == pytest.approx(np.mean(np.array(results) == -12.0))


def best_reply(game, action, drawn):
    after = game.clone()
    after.hand.place(0, 3, action)
    best = -np.inf
    free = np.flatnonzero(after.hand.board[0] < 0)
    for first in drawn:
        for second in drawn:
            if first != second:
                board = after.hand.board[0].copy()
                board[free] = first, second
                best = max(best, final_worth(board, 8.0, 12.0))
    return best


def test_the_rule_based_player_is_safe_before_the_last_street_where_it_can_be():
    game = before_last_game()
    chosen = RulePlayer().choose(game, 0, random.Random(0))
    assert "top: Qc" not in game.action_name(0, chosen)  # three queens; the middle would need three kings or threes


@pytest.mark.parametrize(
    "player", [RulePlayer(), MonteCarloPlayer(rollouts=2, openings=4), FantasyRulesPlayer(), strong(openings=4)]
)
def test_players_do_not_see_what_is_hidden(player):
    for moves in (0, 4, 8, 10, 12, 14):
        game, draw = OfcGame(Rules(button="last")), random.Random(moves)
        game.reset(moves)
        for _ in range(moves):
            (seat,) = game.acting()
            game.apply({seat: int(draw.choice(game.legal_actions(seat)))})
        (seat,) = game.acting()
        other = game.clone()
        hidden = game.unseen(seat)
        swap = dict(zip(hidden.tolist(), random.Random(2).sample(hidden.tolist(), len(hidden)), strict=True))
        for array in (other.hand.dealt, *(other.hand.discards[each] for each in range(3) if each != seat)):
            array.ravel()[:] = [swap.get(int(card), int(card)) for card in array.ravel()]
        chosen = [player.choose(each, seat, random.Random(3)) for each in (game, other)]
        assert chosen[0] == chosen[1]


def test_chances_are_poisson_tails():
    assert chance(4, 0, 20, 3) == 1.0
    assert chance(0, 1, 20, 3) == 0.0
    assert chance(10, 1, 20, 2) == pytest.approx(1 - np.exp(-1))
    assert chance(10, 2, 20, 2) == pytest.approx(1 - 2 * np.exp(-1))


def test_a_player_without_rollouts_is_refused():
    with pytest.raises(ConfigError, match="at least 1 rollout"):
        MonteCarloPlayer(rollouts=0)


def test_rollouts_by_a_player_that_finishes_no_boards_are_refused():
    with pytest.raises(ConfigError, match="played by rule_based or fantasy_rules, not by 'random'"):
        MonteCarloPlayer(rollouts_by="random")


def test_the_player_for_fantasyland_lays_queens_on_top_where_the_rows_below_hold():
    game = OfcGame(Rules(button="last"))
    game.reset(1)
    hand = game.hand
    game._turn = 6  # seat 0 on street 3
    hand.board[0] = [*parse_cards("Qs"), -1, -1, *parse_cards("Kc Kd"), -1, -1, -1, *parse_cards("As Ad Ac 9d"), -1]
    hand.filled[0] = (1, 2, 4)
    hand.held[:3] = parse_cards("Qc Kh 2d")
    hand.holding = 3
    chosen = FantasyRulesPlayer().choose(game, 0, random.Random(0))
    assert game.action_name(0, chosen) == "top: Qc; middle: Kh; discard: 2d"
