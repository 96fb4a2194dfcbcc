"""Battles are counted by outcome and opponent."""

from simul.env_worker.games.pokemon.source.scoreboard import Scoreboard
from simul.env_worker.recent_episodes import Episode


def test_scoreboard_adds_up_and_keeps_a_recent_window():
    score = Scoreboard()
    for outcome in [1] * 150 + [-1] * 100 + [0] * 5 + [None] * 5:
        score.started += 1
        score.finish("random", outcome, 10, Episode(float(outcome or 0), 20, outcome == 1))
    metrics = score.metrics(alive=0)
    assert metrics["results"]["random"] == {"wins": 150, "losses": 100, "ties": 5, "truncated": 5}
    assert (metrics["recent"]["random"]["games"], metrics["recent"]["random"]["win_rate"]) == (200, 0.45)
    assert metrics["recent"]["random"]["length_mean"] == 20.0
    assert metrics["turns"] == 2600
    assert metrics["episodes"]["finished"] == 260
