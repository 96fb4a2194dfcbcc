"""Return, length and result of the last episodes, in all, by opponent and by seat: a few numbers at any time."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from typing import NamedTuple

from simul.common.role.report_names import ALL_EPISODES, OWN_FIGURE, SEAT


class Episode(NamedTuple):
    """One finished episode.

    `length`: decisions of the learner's seat; `won`: None where a game has no winner; `facts`: the game's own figures;
    `seat`: the learner's, None where it is of no interest.
    """

    episode_return: float
    length: int
    won: bool | None = None
    facts: Mapping[str, float] = {}
    seat: int | None = None


class RecentEpisodes:
    """The last `window` episodes of every group.

    A group's figures add up over workers (`simul.launch.processes.role_reports`): means weighted by `games`, the
    least of `_min`, the greatest of `_max`.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._groups: dict[str, deque[Episode]] = {}

    def add(self, episode: Episode, opponent: str = "", past_self: str = "") -> None:
        """Add an episode to the group of all and, where it has them, to its opponent's, past self's and seat's."""
        seat = "" if episode.seat is None else f"{SEAT}{episode.seat}"
        for name in filter(None, (ALL_EPISODES, opponent, past_self, seat)):
            self._groups.setdefault(name, deque(maxlen=self._window)).append(episode)

    def forget(self, prefix: str, kept: Collection[str]) -> None:
        """Drop the groups that begin with `prefix`, but for those of `kept`."""
        for name in [name for name in self._groups if name.startswith(prefix) and name not in kept]:
            del self._groups[name]

    def figures(self) -> dict[str, dict[str, float]]:
        """By group: games, win_rate (where games have winners; not in `all`), return_*, length_*, OWN_FIGURE + facts.

        A seat's: games, return_mean, OWN_FIGURE + facts.
        """
        return {name: _figures(name, episodes) for name, episodes in self._groups.items()}


def _figures(name: str, episodes: deque[Episode]) -> dict[str, float]:
    games = len(episodes)
    figures: dict[str, float] = {"games": games}
    if name.startswith(SEAT):
        figures["return_mean"] = sum(episode.episode_return for episode in episodes) / games
        return figures | _facts(episodes)
    if name != ALL_EPISODES and episodes[-1].won is not None:
        figures["win_rate"] = sum(bool(episode.won) for episode in episodes) / games
    columns: dict[str, list[float]] = {
        "return": [episode.episode_return for episode in episodes],
        "length": [episode.length for episode in episodes],
    }
    for what, values in columns.items():
        figures |= {f"{what}_mean": sum(values) / games, f"{what}_min": min(values), f"{what}_max": max(values)}
    return figures | _facts(episodes)


def _facts(episodes: deque[Episode]) -> dict[str, float]:
    facts: dict[str, float] = {}
    for name in episodes[-1].facts:
        values = [episode.facts[name] for episode in episodes if name in episode.facts]
        facts[f"{OWN_FIGURE}{name}"] = sum(values) / len(values)
    return facts
