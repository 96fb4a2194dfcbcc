"""The result of a round robin: all pairs from both sides."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from simul.common.config.matchups import Contestant, round_robin
from simul.common.runtime.intervals import wilson
from simul.launch.evaluation.matrix import matrix_table
from simul.launch.evaluation.result import build_result

A, B = Contestant("a@1", policy="learner"), Contestant("b@2", policy="eval/1")


BOT = Contestant("random", bot="random")


FIGURES = {
    "results": {
        "0/p1": {"wins": 3, "losses": 1, "ties": 1, "truncated": 0},
        "0/p2": {"wins": 2, "losses": 2, "ties": 0, "truncated": 1},
        "1/p1": {"wins": 5, "losses": 0, "ties": 0, "truncated": 0},
        "1/p2": {"wins": 4, "losses": 0, "ties": 0, "truncated": 0},
    },
    "mirrored": {"0": {"0": 1, "1": 3, "2": 1}},
    "episodes": {"aborted": {"host_died": 11}},
}


@pytest.fixture
def matrix():
    served = {"learner": Path("/x/a/checkpoints/000000001"), "eval/1": Path("/x/b/checkpoints/000000002")}
    pairings = round_robin([A, B, BOT], 10)
    return build_result(FIGURES, [A, B, BOT], pairings, 30, served, {"learner": 1.0, "eval/1": 2}, "game")


def test_both_seats_are_added_and_told_apart(matrix):
    first, second, third = matrix["pairs"]
    assert (first["first"], first["second"]) == ("a@1", "b@2")
    assert [first[name] for name in ("wins", "losses", "ties", "truncated", "battles")] == [5, 3, 1, 1, 10]
    assert (first["as_p1"]["wins"], first["as_p2"]["wins"]) == (3, 2)
    assert first["win_rate"] == first["pairs"]["win_rate"] == 0.5
    assert (first["pairs"]["complete"], third["pairs"]["complete"]) == (5, 0)
    assert first["wilson_95"] == wilson(5, 10)
    assert (second["battles"], second["wanted"]) == (9, 10)
    assert (third["battles"], third["win_rate"]) == (0, None)


def test_who_played_and_what_was_lost_is_named(matrix):
    assert matrix["contestants"] == [
        {"label": "a@1", "opponent": None, "checkpoint": "/x/a/checkpoints/000000001", "policy_version": 1.0},
        {"label": "b@2", "opponent": None, "checkpoint": "/x/b/checkpoints/000000002", "policy_version": 2},
        {"label": "random", "opponent": "random", "checkpoint": None, "policy_version": None},
    ]
    assert matrix["aborted"] == {"host_died": 11}


def test_the_table_shows_every_pair_from_both_sides(matrix):
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(matrix_table(matrix))
    text = console.export_text()
    assert "5 won 3 lost 1 tied 1 cut" in text
    assert "3 won 5 lost 1 tied 1 cut" in text
    assert "0.500 (0.237-0.763)" in text
    assert "not played" in text
    assert "11 of 30 battles were not played to their end (host_died 11)." in text
