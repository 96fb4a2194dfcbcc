"""Without a network, 2,000 simulations keep the value that an exact solver finds."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from simul.common.config.search import SearchConfig
from tests.support.searching import searched
from tests.support.small_games import Board, best_actions, connect_four_positions, tic_tac_toe_positions

METHODS = ("puct", "gumbel")


def _lost(method: str, games: Sequence[Board]) -> list[str]:
    """Positions in which the chosen move loses value."""
    config = SearchConfig(method=method, simulations=2000)  # type: ignore[arg-type]
    chosen = [(game, searched(game, config).result().action) for game in games]
    return [f"{game.own} {action}" for game, action in chosen if action not in best_actions(game)]


@pytest.mark.parametrize(("each", "positions"), [(60, 50), pytest.param(1, 500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("method", METHODS)
def test_tic_tac_toe_and_connect_four(method: str, each: int, positions: int) -> None:
    assert len(tic_tac_toe_positions()) == 4520
    assert _lost(method, tic_tac_toe_positions()[::each]) == []
    assert _lost(method, connect_four_positions(positions, empty=12, seed=3)) == []
