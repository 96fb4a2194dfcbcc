"""Return, length and result of the last episodes, in all and by opponent: a few numbers however long a run lasts."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

ALL = "all"  # the group of every episode


class Episode(NamedTuple):
    """One finished episode. `length`: decisions of the learner's seat; `won`: None where a game has no winner."""

    episode_return: float
    length: int
    won: bool | None = None


class RecentEpisodes:
    """The last `window` episodes of every group.

    A group's figures add up over workers (`simul.common.launch.processes.role_reports`): means weighted by `games`, the
    least of `_min`, the greatest of `_max`.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._groups: dict[str, deque[Episode]] = {}

    def add(self, episode: Episode, opponent: str = "") -> None:
        """Add an episode to the group of all and, where it has one, to its opponent's."""
        for name in filter(None, (ALL, opponent)):
            self._groups.setdefault(name, deque(maxlen=self._window)).append(episode)

    def figures(self) -> dict[str, dict[str, float]]:
        """By group: games, win_rate (where the game has a winner; not in the group of all), return_* and length_*."""
        return {name: _figures(name, episodes) for name, episodes in self._groups.items()}


def _figures(name: str, episodes: deque[Episode]) -> dict[str, float]:
    games = len(episodes)
    figures: dict[str, float] = {"games": games}
    if name != ALL and episodes[-1].won is not None:
        figures["win_rate"] = sum(bool(episode.won) for episode in episodes) / games
    columns: dict[str, list[float]] = {
        "return": [episode.episode_return for episode in episodes],
        "length": [episode.length for episode in episodes],
    }
    for what, values in columns.items():
        figures |= {f"{what}_mean": sum(values) / games, f"{what}_min": min(values), f"{what}_max": max(values)}
    return figures
