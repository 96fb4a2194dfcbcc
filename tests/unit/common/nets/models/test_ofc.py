"""The network `ofc`: what it says rows make against the game's evaluator, and the interface of every network."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from simul.common.config.schema import NetworkConfig
from simul.common.errors import ConfigError
from simul.common.nets.build import build_network
from simul.common.nets.layers import card_rows
from simul.common.nets.layers.card_rows import (
    COMPLETE,
    COMPLETE_TOP,
    FANTASY,
    RANK_CODES,
    ROYALTY,
    SUIT_CODES,
    VALUE,
    RowFigures,
)
from simul.common.nets.models.ofc import LATER, OPENINGS
from simul.common.protocol.specs import GameSpec
from simul.env_worker.games.ofc.actions import PLACEMENTS
from simul.env_worker.games.ofc.evaluator import SIZES, STARTS, TOP, row_value, royalty
from simul.env_worker.games.ofc.observation import ofc_spec
from simul.env_worker.games.ofc.rules import Rules, entry_cards
from simul.env_worker.games.ofc.table import OfcGame
from tests.unit.common.nets.conftest import assert_overfits, trained

SPEC = ofc_spec(Rules())
NETWORK = "ofc", {"hidden": 24, "row": 16, "joint": 16}
FIRST = len(OPENINGS)


def positions(games: int, rules: Rules | None = None) -> list[OfcGame]:
    """Every position of some random games."""
    found = []
    for seed in range(games):
        game = OfcGame(rules or Rules())
        game.reset(seed)
        draw = random.Random(seed)
        while game.acting():
            found.append(game.clone())
            (seat,) = game.acting()
            game.apply({seat: int(draw.choice(game.legal_actions(seat)))})
    return found


def inputs(games: list[OfcGame]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    seats = [game.acting()[0] for game in games]
    observation = np.stack([game.observation(seat) for game, seat in zip(games, seats)])
    mask = np.stack([game.mask(seat) for game, seat in zip(games, seats)]).astype(bool)
    return torch.from_numpy(observation), torch.from_numpy(mask), torch.zeros(len(games), 0)


def row_after(game: OfcGame, seat: int, action: int, row: int) -> list[int]:
    """Cards of a row after an action."""
    cards = [int(card) for card in game.hand.board[seat, STARTS[row] : STARTS[row] + game.hand.filled[seat, row]]]
    placed = zip(game.hand.held[: game.hand.holding], PLACEMENTS[action])
    return cards + [int(card) for card, place in placed if place == row]


def test_placements_are_the_games() -> None:
    own = [*OPENINGS, *((*rows, -1, -1) for rows in LATER)]
    assert (np.array(own) == PLACEMENTS).all()


def test_every_multiset_of_ranks_has_a_code_of_its_own() -> None:
    ids, table = card_rows.rank_tables()
    assert len(table) == 8568 - 13  # of five cards or free cells of 14 kinds, without five of a kind
    assert len(np.unique(ids)) == len(table)


def test_figures_of_random_rows_are_the_evaluators() -> None:
    figures, draw = RowFigures(), random.Random(5)
    rows = [[card for card in draw.sample(range(52), draw.randint(0, 5))] for _ in range(1500)]
    rows += [
        [4 * rank + suit for rank in ranks]
        for suit in range(4)
        for ranks in ((12, 0, 1, 2, 3), range(8, 13), (3, 4, 5, 6, 8))
    ]
    rows += [[4 * rank + rank % 3 for rank in ranks] for ranks in ((12, 0, 1, 2, 3), range(8, 13), range(3, 8))]
    ranks = torch.tensor([float(sum(RANK_CODES[card >> 2] for card in row)) for row in rows])
    suits = torch.tensor([float(sum(SUIT_CODES[card & 3] for card in row)) for row in rows])
    found = figures(ranks, suits, torch.zeros(len(rows), 13), torch.zeros(len(rows), 4)).tolist()
    for cards, numbers in zip(rows, found):
        value = row_value(np.array(cards, np.int8), 0, len(cards))
        assert numbers[VALUE] * 2**20 == value
        assert [numbers[COMPLETE_TOP], numbers[COMPLETE]] == [len(cards) == 3, len(cards) == 5]
        for row in range(3):
            if len(cards) <= SIZES[row]:
                assert round(numbers[ROYALTY + row] * 10) == royalty(row, value)
        if len(cards) <= SIZES[TOP]:
            assert numbers[FANTASY] == (entry_cards(value, False) > 0)


def test_an_action_is_scored_by_the_rows_that_it_makes() -> None:
    network = trained(SPEC, *NETWORK)
    games = positions(4)
    observation, mask, _ = inputs(games)
    cards, opens = network._cards(observation)
    fouls = 0
    for b, game in enumerate(games):
        head = network.opening if opens[b] else network.later
        found = head.results(network.figures, cards.select(torch.tensor([b])))
        together = None if opens[b] else head.figures_together(found)
        found = found.expand(3, -1, -1, -1)
        assert bool(opens[b]) == (game.street == 0)
        seat = game.acting()[0]
        for action in np.flatnonzero(mask[b])[:: 1 + 9 * bool(opens[b])]:
            local = int(action) - (0 if opens[b] else FIRST)
            values, points = [], 0
            for row in range(3):
                after = row_after(game, seat, int(action), row)
                values.append(row_value(np.array(after, np.int8), 0, len(after)))
                points += royalty(row, values[-1])
                assert found[row, head.contents[row, local], 0, 0] * 2**20 == values[-1]
            if len(row_after(game, seat, int(action), 0)) == 3 and game.street == 4:
                foul = not values[2] >= values[1] >= values[0]
                fouls += foul
                assert together[local, 0, 0] == foul
                assert together[local, 0, 1] * 10 == pytest.approx(0 if foul else points, abs=1e-4)
    assert fouls


def test_cards_that_may_come_are_counted_by_the_streets_left() -> None:
    network = trained(SPEC, *NETWORK)
    games = positions(1)[:15]
    observation, _, _ = inputs(games)
    cards, _ = network._cards(observation)
    unseen = 52 - 5 - torch.arange(3) * 5  # street 1: the own cards and those of the seats before
    expected = 12 * unseen / (unseen + 1)
    torch.testing.assert_close(cards.ranks[:3].sum(1), expected)
    torch.testing.assert_close(cards.suits[:3].sum(1), expected)
    assert not cards.ranks[12:].any()


def test_two_players_are_read_too() -> None:
    rules = Rules(players=2)
    network = trained(ofc_spec(rules), *NETWORK)
    observation, mask, state = inputs(positions(1, rules))
    assert network(observation, mask, state)[0].isfinite().all()


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (ofc_spec(Rules(jokers=1)), r"without jokers: a slice cards.own.top of 52 numbers; .* has one of 53"),
        (GameSpec("vector", 4, 2), "vector has none. Set network.name=mlp_lstm and network.options={hidden: 256"),
        (GameSpec("short", SPEC.observation_size, 5, layout=SPEC.layout), "scores 259 actions; short has 5"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(spec, words) -> None:
    with pytest.raises(ConfigError, match=words):
        build_network(NetworkConfig("ofc"), spec)


@pytest.mark.parametrize("options", [{"hidden": 0}, {"row": 1}, {"joint": -1}, {"hidden": 1.5}])
def test_widths_that_make_no_network_are_refused(options) -> None:
    with pytest.raises(ConfigError, match=r"is a whole number of units from 2 on, not|Expected `int`, got `float`"):
        build_network(NetworkConfig("ofc", options), SPEC)


def test_normalised_observations_are_refused() -> None:
    with pytest.raises(ConfigError, match="normalize_observations: the network ofc counts"):
        build_network(NetworkConfig(*NETWORK, normalize_observations=True), SPEC)


@pytest.mark.parametrize("opens", [True, False])
def test_unrolls_of_one_kind_of_street_alone_are_taken(opens: bool) -> None:
    network = build_network(NetworkConfig(*NETWORK), SPEC, seed=1)
    games = [game for game in positions(2) if (len(game.legal_actions(game.acting()[0])) > 100) == opens]
    observation, mask, state = inputs(games)
    logits, value = network.unroll(observation[None], mask[None], state, torch.ones(len(games), dtype=torch.int64))
    expected = network(observation, mask, state)
    torch.testing.assert_close((logits[0], value[0]), expected[:2])


def test_it_overfits_one_batch() -> None:
    observation, mask, _ = inputs(positions(2))
    assert_overfits(build_network(NetworkConfig(*NETWORK), SPEC, seed=1), observation[None], mask[None])
