"""Return, length and result of the last episodes, in all and by opponent: a few numbers however long a run lasts."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

ALL = "all"  # the group of every episode
FIGURE = "figure."  # prefix of a game's own facts


class Episode(NamedTuple):
    """One finished episode.

    `length`: decisions of the learner's seat; `won`: None where a game has no winner; `facts`: the game's own figures.
    """

    episode_return: float
    length: int
    won: bool | None = None
    facts: Mapping[str, float] = {}


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
        """By group: games, win_rate (where games have winners; not in `all`), return_*, length_*, FIGURE + facts."""
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
    for name in episodes[-1].facts:
        values = [episode.facts[name] for episode in episodes if name in episode.facts]
        figures[f"{FIGURE}{name}"] = sum(values) / len(values)
    return figures
