"""The search in drawn worlds: what candidates are worth there, and that nothing hidden moves it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from simul.common.client.evaluation import Evaluation
from simul.common.errors import EnvError
from simul.env_worker.games.base.turn_game import TurnGame
from simul.env_worker.games.ofc.rules import Rules
from simul.env_worker.games.ofc.table import OfcGame
from simul.env_worker.search.determinized_search import DeterminizedSearch
from simul.env_worker.search.evaluators import UniformEvaluator
from tests.support.searching import RowEvaluator, hashed
from tests.support.small_games import Dice, Envelope


def giving(observation: NDArray[Any], mask: NDArray[np.bool_]) -> tuple[NDArray[np.float32], float]:
    """Seat 1 gives the number; seat 0 likes to wait least. After waiting, seat 0's position is worth 0.2."""
    priors = np.array([0.8, 0.2, 0.0] if observation[0] else [0.4, 0.35, 0.25], np.float32)
    return priors, 0.2 if observation[2] == 2 else -9.0


def searched(game: TurnGame, evaluator: Any, seat: int = 0, *, seed: int = 1, **settings: Any) -> DeterminizedSearch:
    settings = {"worlds": 400, "candidates": 3, **settings}
    search = DeterminizedSearch(game, seat, draw=random.Random(seed), **settings)
    search.run(evaluator, 64)
    return search


@pytest.mark.parametrize("number", range(4))
def test_candidates_are_worth_the_mean_of_what_may_be_hidden(number: int) -> None:
    game = Envelope()
    game.reset(number)
    search = searched(game, RowEvaluator(giving), points_of_value=9.0)
    assert search.actions.tolist() == [0, 1, 2]
    assert search.scores == pytest.approx([1.0, 1.5, 0.2 / 0.1 * 0.9], abs=0.15)
    assert search.action == 2
    assert searched(game, RowEvaluator(giving)).action == 1, "without the scale waiting is worth 0.2"
    assert game.taken == []


def test_what_was_earned_before_does_not_count() -> None:
    class Later(Envelope):
        def returns(self) -> Sequence[float]:
            return [each + 20.0 for each in super().returns()]

    first, later = (searched(game, RowEvaluator(giving), worlds=10) for game in (Envelope(), Later()))
    assert later.scores == pytest.approx(first.scores)


def test_only_the_candidates_that_the_policy_likes_best_are_tried() -> None:
    game, evaluator = Envelope(), RowEvaluator(giving)
    search = searched(game, evaluator, candidates=2, worlds=10)
    assert search.actions.tolist() == [0, 1]
    assert evaluator.rows == 1 + 10, "the position itself, and seat 1 where it was asked"


def test_a_request_has_at_most_so_many_rows() -> None:
    evaluator = RowEvaluator(giving)
    search = DeterminizedSearch(Envelope(), 0, worlds=10, candidates=3, draw=random.Random(1))
    search.run(evaluator, 7)
    assert max(evaluator.requests) == 7
    assert evaluator.rows == 1 + 10 + 10 + 10


def test_chance_is_drawn_alike_for_all_candidates() -> None:
    class Drawn(Dice):
        faces = ((), (0.5, 0.0, 0.5), (0.5, 0.0, 0.5))

        def determinize(self, seat: int, draw: random.Random) -> TurnGame:
            return self.clone()

    for seed in range(5):
        scores = dict(zip(*(each.tolist() for each in _of_dice(Drawn(), seed)), strict=True))
        assert scores[1] == scores[2]
        assert scores[0] == pytest.approx(0.1)


def _of_dice(game: TurnGame, seed: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    search = searched(game, UniformEvaluator(), seed=seed, worlds=5)
    return search.actions, search.scores


def test_what_the_game_counts_is_not_searched_nor_is_a_single_action() -> None:
    class Counted(Dice):
        def action_values(self, seat: int, draw: random.Random) -> NDArray[np.float64]:
            return np.array([0.1, 0.4, -0.4])

    class Forced(Dice):
        def legal_actions(self, seat: int) -> NDArray[np.intp]:
            return np.array([2])

    for game, action in ((Counted(), 1), (Forced(), 2)):
        evaluator = RowEvaluator(hashed)
        assert searched(game, evaluator).action == action
        assert evaluator.rows == 0


def test_a_game_that_draws_no_worlds_and_one_where_several_act_at_once_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="dice has no determinize, which draws anew what a seat does not"):
        searched(Dice(), UniformEvaluator())

    class Both(Envelope):
        def acting(self) -> tuple[int, ...]:
            return (0, 1)

    with pytest.raises(EnvError, match=r"envelope: seats \[0, 1\] act at once; search.worlds needs one at a time"):
        searched(Both(), UniformEvaluator())


def test_a_refused_row_is_an_error() -> None:
    class Refusing(RowEvaluator):
        def poll(self) -> list[Evaluation]:
            answers = super().poll()
            answers[0].errors[0] = ("ERR_VALUE", "not finite")
            return answers

    with pytest.raises(RuntimeError, match="refused: ERR_VALUE: not finite"):
        searched(Envelope(), Refusing(hashed))


# ---------------------------------------------------------------------- Open Face Chinese


def table(moves: int, **rules: Any) -> OfcGame:
    """A hand, played at random so far."""
    game, draw = OfcGame(Rules(**rules)), random.Random(moves)
    game.reset(moves)
    while moves and game.acting():
        (seat,) = game.acting()
        game.apply({seat: int(draw.choice(game.legal_actions(seat)))})
        moves -= 1
    return game


def in_fantasyland(*seats: int) -> OfcGame:
    """A hand that these seats play in Fantasyland."""
    game = OfcGame(Rules())
    game.reset(5)
    game.fantasy_cards[list(seats)] = 14
    game._begin_hand()
    return game


TABLES = [*(table(moves) for moves in (0, 1, 4, 8, 10, 14)), table(5, players=2, jokers=2), in_fantasyland(0, 2)]


@pytest.mark.parametrize("game", TABLES)
def test_a_world_shows_its_seat_the_same_and_has_every_card_once(game: OfcGame) -> None:
    draw, players = random.Random(3), game.rules.players
    for seat in range(players):
        for _ in range(5):
            world = game.determinize(seat, draw)
            assert world.observation(seat).tolist() == game.observation(seat).tolist()
            assert len(set(world.hand.dealt.ravel().tolist())) == world.hand.dealt.size
            for each in range(players):
                laid = [card for card in (*world.hand.board[each], *world.hand.discards[each]) if card >= 0]
                assert set(laid) <= set(world.hand.dealt[each].tolist())
            assert sorted(world.hand.board[seat].tolist()) == sorted(game.hand.board[seat].tolist())


def test_every_card_that_a_seat_has_not_seen_may_be_anywhere_hidden() -> None:
    game, draw = table(9), random.Random(3)
    (seat,) = game.acting()
    unseen = set(game.unseen(seat).tolist())
    other = (seat + 1) % 3
    worlds = [game.determinize(seat, draw) for _ in range(1500)]
    for cards in (
        [world.hand.dealt[seat, 14] for world in worlds],  # comes to the seat itself
        [world.hand.discards[other, 0] for world in worlds],
    ):
        counts = [cards.count(card) for card in unseen]
        assert sum(counts) == len(worlds)
        assert 0.4 < min(counts) * len(unseen) / len(worlds) < max(counts) * len(unseen) / len(worlds) < 1.8


def test_a_hidden_board_is_set_anew_from_its_drawn_cards() -> None:
    game = in_fantasyland(0, 2)
    world = game.determinize(1, random.Random(1))
    for seat in (0, 2):
        laid = {*world.hand.board[seat].tolist(), *world.hand.discards[seat].tolist()} - {-1}
        assert laid == set(world.hand.dealt[seat, :14].tolist())
        assert laid != {*game.hand.board[seat].tolist(), *game.hand.discards[seat].tolist()} - {-1}


@pytest.mark.parametrize("game", TABLES)
def test_hidden_cards_move_no_choice(game: OfcGame) -> None:
    (seat,) = game.acting()
    hidden = game.unseen(seat).tolist()
    swap = dict(zip(hidden, random.Random(2).sample(hidden, len(hidden)), strict=True))
    other = game.clone()
    other._seed += 1  # and with it the hands that follow
    arrays = [other.hand.dealt, *(other.hand.discards[each] for each in range(game.rules.players) if each != seat)]
    arrays += [other.hand.board[each] for each in range(game.rules.players) if other.hand.fantasy[each]]
    for array in arrays:
        array[...] = np.vectorize(lambda card: swap.get(card, card))(array)
    assert (other.hand.dealt != game.hand.dealt).any()
    found = [searched(each, RowEvaluator(hashed), seat, worlds=3, seed=4) for each in (game, other)]
    assert found[0].actions.tolist() == found[1].actions.tolist()
    assert found[0].scores.tolist() == found[1].scores.tolist()


def test_the_last_two_streets_are_counted_without_the_network() -> None:
    for moves, counted in ((8, False), (9, True), (14, True)):
        game = table(moves)
        (seat,) = game.acting()
        evaluator = RowEvaluator(hashed)
        search = searched(game, evaluator, seat, worlds=2)
        assert bool(evaluator.rows) != counted
        if counted:
            assert len(search.scores) == len(game.legal_actions(seat))
