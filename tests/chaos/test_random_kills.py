"""Random signals to random processes of a real run: it plays and learns on, and the books balance."""

from __future__ import annotations

import sys

import pytest

from tests.support.random_kills import run


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals there")
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("game", "kills"), [("cartpole", 200), ("two-servers", 60), ("pokemon", 60)])
def test_the_books_of_a_run_under_random_signals_balance(game: str, kills: int, tmp_path) -> None:
    run(game, kills, seed=1, root=tmp_path / "run")


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals there")
@pytest.mark.parametrize(
    ("kills", "learn"),
    [
        pytest.param(6, False, marks=[pytest.mark.slow, pytest.mark.timeout(1200)]),  # .ci/long runs it
        pytest.param(200, True, marks=[pytest.mark.slow, pytest.mark.timeout(7200)]),
    ],
)
def test_two_servers_and_two_ranks_survive_random_signals(kills: int, learn: bool, tmp_path) -> None:
    run("chaos", kills, seed=2, root=tmp_path / "run", learn=learn)
