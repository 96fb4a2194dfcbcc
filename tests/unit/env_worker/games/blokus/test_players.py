"""Scripted players: what they choose is legal, and largest piece first and search beat weaker ones."""

from __future__ import annotations

import random

import pytest

from simul.env_worker.games.base.players import RandomPlayer
from simul.env_worker.games.base.turn_game import Player
from simul.env_worker.games.blokus.board import Variant, classic, duo
from simul.env_worker.games.blokus.evaluation import evaluate
from simul.env_worker.games.blokus.players.best_first import POSITIONS, BestFirstPlayer
from simul.env_worker.games.blokus.players.largest import LargestPiecePlayer
from simul.env_worker.games.blokus.players.mcts import MctsPlayer
from simul.env_worker.games.blokus.turn_game import Blokus
from tests.support.turn_games import played_on


def play(variant: Variant, players: list[Player], seed: int) -> Blokus:
    return play_on(Blokus(variant), players, seed)


def play_on(game: Blokus, players: list[Player], seed: int) -> Blokus:
    draw = random.Random(seed)
    while seats := game.acting():
        before = game.state.copy()
        action = players[seats[0]].choose(game, seats[0], draw)
        assert (game.state == before).all()
        game.apply({seats[0]: action})
    return game


def wins(first: Player, second: Player, games: int) -> float:
    """Share of Duo games that `first` wins, a tie a half, the seats exchanged after each."""
    won = 0.0
    for seed in range(games):
        players = [first, second] if seed % 2 == 0 else [second, first]
        won += (1 + play(duo(), players, seed).returns()[seed % 2]) / 2
    return won / games


def pair_points(first: Player, second: Player, pairs: int) -> float:
    """Mean share of the games that `first` wins from drawn openings, each played from both seats."""
    won = 0.0
    for seed in range(pairs):
        opening = played_on(Blokus(duo()), 4, seed)
        for seat in range(2):
            players = [first, second] if seat == 0 else [second, first]
            won += (1 + play_on(opening.clone(), players, seed).returns()[seat]) / 2
    return won / (2 * pairs)


@pytest.mark.parametrize(
    "variant",
    [
        pytest.param(duo(), id="2"),
        pytest.param(classic(2), id="2 of 4", marks=pytest.mark.slow),  # .ci/long runs it
        pytest.param(classic(3), id="3", marks=pytest.mark.slow),
        pytest.param(classic(4), id="4"),
    ],
)
def test_players_choose_legal_actions_to_the_end(variant):
    play(variant, [LargestPiecePlayer(), MctsPlayer(rollouts=4), MctsPlayer(1), RandomPlayer()], seed=1)
    play(variant, [BestFirstPlayer(2), RandomPlayer(), BestFirstPlayer(1), LargestPiecePlayer()], seed=1)


def test_the_largest_piece_that_fits_is_placed_and_equals_are_drawn():
    game, chosen = Blokus(duo()), set()
    for seed in range(20):
        action = LargestPiecePlayer().choose(game, 0, random.Random(seed))
        assert game.tables.placements[action, 1] == 5
        chosen.add(action)
    assert len(chosen) > 10


def test_largest_piece_first_beats_random():
    assert wins(LargestPiecePlayer(), RandomPlayer(), games=60) > 0.75


def test_search_beats_random():
    assert wins(MctsPlayer(rollouts=200), RandomPlayer(), games=10) >= 0.9


@pytest.mark.parametrize("player", [MctsPlayer(50), BestFirstPlayer(1), BestFirstPlayer(2)])
def test_search_is_determined_by_what_it_draws(player):
    game = played_on(Blokus(classic(4)), 40)
    chosen = [player.choose(game, game.acting()[0], random.Random(3)) for _ in range(2)]
    assert chosen[0] == chosen[1]


def test_the_least_strength_takes_the_action_after_which_the_position_is_best():
    game = played_on(Blokus(classic(3)), 18)
    (seat,) = game.acting()
    after = [game.after(action).game.state for action in game.legal_actions(seat).tolist()]
    values = [evaluate(state, seat, game.tables.tree, game.tables.rules) for state in after]
    chosen = BestFirstPlayer(1).choose(game, seat, random.Random(0))
    assert values[game.legal_actions(seat).tolist().index(chosen)] == max(values)


@pytest.mark.parametrize(
    ("seed", "turns", "name"),
    [
        (2, 4, "f6,e7,f7,g7,f8"),
        (3, 4, "g8,h8,i8,j8,j9"),
        (5, 4, "i6,j6,k6,h7,i7"),
        (11, 4, "g5,f6,g6,h6,h7"),
        (13, 6, "i10,j10,g11,h11,i11"),
        (17, 8, "l3,m3,m4,n4,n5"),
        (5, 9, "d4,c5,d5,e5,d6"),
        (19, 10, "j7,k7,l7,k8,k9"),
        (29, 14, "j7,k7,l7,m7,n7"),
        (7, 23, "n11,n12,m13,n13,n14"),  # from here on another action ends the game, or this one does
        (108, 24, "b5,c5"),
        (131, 25, "c2,b3,c3,c4"),
        (9, 28, "h11,i11,j11,j12,k12"),
    ],
)
def test_strength_2_is_a_yardstick_and_plays_what_it_played(seed, turns, name):
    """As at commit 6c56a397. Results name it: one that plays otherwise is another player and needs another name."""
    game = played_on(Blokus(duo()), turns, seed)
    assert isinstance(game, Blokus)
    (seat,) = game.acting()
    assert game.action_name(seat, BestFirstPlayer(2).choose(game, seat, random.Random(0))) == name


def test_equal_actions_are_drawn():
    """On the empty board of Duo a placement and its reflection in the diagonal are worth the same."""
    chosen = {BestFirstPlayer(1).choose(Blokus(duo()), 0, random.Random(seed)) for seed in range(20)}
    assert len(chosen) > 1


@pytest.mark.parametrize("pairs", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_each_strength_beats_the_one_below(pairs):
    assert pair_points(BestFirstPlayer(1), LargestPiecePlayer(), pairs) >= 0.9
    assert pair_points(BestFirstPlayer(2), BestFirstPlayer(1), pairs) > 0.5
    assert POSITIONS[3] > POSITIONS[2]


def best_margin(game: Blokus, seat: int) -> float:
    """By how many points `seat` can end ahead, against the best answers: plain minimax."""
    if not game.acting():
        return game.figures()["margin"][seat]
    (acting,) = game.acting()
    ends = [best_margin(game.after(action).game, seat) for action in game.legal_actions(acting).tolist()]
    return max(ends) if acting == seat else min(ends)


def test_best_first_search_plays_an_end_as_minimax_does():
    for seed in range(3):
        whole = played_on(Blokus(duo()), 1000, seed)
        assert isinstance(whole, Blokus)
        game = played_on(Blokus(duo()), len(whole.moves) - 4, seed)
        assert isinstance(game, Blokus)
        (seat,) = game.acting()
        action = BestFirstPlayer(3).choose(game, seat, random.Random(seed))
        assert best_margin(game.after(action).game, seat) == best_margin(game, seat)


@pytest.mark.parametrize("player", [MctsPlayer(200), BestFirstPlayer(1), BestFirstPlayer(2)])
def test_search_finds_a_win_at_the_end(player):
    """Two placements are left to choose from: one loses the game by the points, the other wins it."""
    draw = random.Random(11)
    decided = 0
    while decided < 5:
        game = Blokus(duo())
        before = game.clone()
        while seats := game.acting():
            before = game.clone()
            game.apply({seats[0]: int(draw.choice(game.legal_actions(seats[0])))})
        (seat,) = before.acting()
        ends = {action: end_of(before, action) for action in before.legal_actions(seat).tolist()}
        if None in ends.values() or len({end[seat] for end in ends.values()}) < 2:
            continue
        decided += 1
        action = player.choose(before, seat, draw)
        assert ends[action][seat] == max(end[seat] for end in ends.values())


def end_of(game: Blokus, action: int) -> list[float] | None:
    """Returns where `action` ends the game."""
    after = game.clone()
    after.apply({after.acting()[0]: action})
    return None if after.acting() else list(after.returns())
