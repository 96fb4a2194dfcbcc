"""Battles are counted by outcome and opponent."""

from simul.env_worker.games.pokemon.source.scoreboard import Scoreboard


def test_scoreboard_adds_up_and_keeps_a_recent_window():
    score = Scoreboard()
    for outcome in [1] * 150 + [-1] * 100 + [0] * 5 + [None] * 5:
        score.started += 1
        score.finish("random", outcome, 10)
    metrics = score.metrics(alive=0)
    assert metrics["results"]["random"] == {"wins": 150, "losses": 100, "ties": 5, "truncated": 5}
    assert metrics["recent"]["random"] == {"games": 200, "win_rate": 0.45}
    assert metrics["turns"] == 2600
    assert metrics["episodes"]["finished"] == 260
