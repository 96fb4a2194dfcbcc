"""Figures of the last episodes: of a window, by opponent, and the same over several workers as over one."""

import pytest

from simul.env_worker.recent_episodes import Episode, RecentEpisodes
from simul.launch.processes.role_reports import sum_metrics


def test_only_the_last_episodes_count_in_each_group():
    recent = RecentEpisodes(window=3)
    for number in range(10):
        recent.add(Episode(float(number), 2 * number, number % 2 == 0), "random" if number < 5 else "past")
    figures = recent.figures()
    assert figures["all"] == {
        "games": 3, "return_mean": 8.0, "return_min": 7.0, "return_max": 9.0,
        "length_mean": 16.0, "length_min": 14, "length_max": 18,
    }  # fmt: skip
    assert figures["random"]["games"] == 3
    assert figures["random"]["win_rate"] == pytest.approx(2 / 3)  # 2 won, 3 lost, 4 won
    assert set(figures) == {"all", "random", "past"}


def test_a_game_without_a_winner_has_no_win_rate():
    recent = RecentEpisodes(window=3)
    recent.add(Episode(1.0, 5))
    assert set(recent.figures()) == {"all"}
    assert "win_rate" not in recent.figures()["all"]


def test_a_seat_has_the_mean_return_and_the_figures_of_the_learners_games_there():
    recent = RecentEpisodes(window=3)
    for number in range(8):
        recent.add(Episode(float(number), 5, number > 4, {"foul": number / 8}, seat=number % 2), "random")
    figures = recent.figures()
    assert figures["seat_0"] == {"games": 3, "return_mean": 4.0, "figure.foul": 0.5}  # 2, 4, 6
    assert figures["seat_1"] == {"games": 3, "return_mean": 5.0, "figure.foul": 0.625}
    recent.add(Episode(1.0, 5), "random")
    assert set(recent.figures()) == {"all", "random", "seat_0", "seat_1"}


def test_workers_together_show_what_one_worker_with_all_their_episodes_shows():
    episodes = [Episode(float(n % 7), n % 11, n % 3 == 0) for n in range(60)]
    workers, whole = [RecentEpisodes(100) for _ in range(3)], RecentEpisodes(100)
    for number, episode in enumerate(episodes):
        episode = episode._replace(seat=number % 3, facts={"foul": float(number % 5)})
        workers[min(number // 10, 2)].add(episode, "random")  # 10, 10, 40: weights differ
        whole.add(episode, "random")
    total = sum_metrics({"recent": worker.figures()} for worker in workers)["recent"]
    assert set(total) == {"all", "random", "seat_0", "seat_1", "seat_2"}
    assert total == {name: pytest.approx(figures) for name, figures in whole.figures().items()}
