"""Counters of a source whose games have winners: episodes, results by opponent, groups of mirrored games."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection
from typing import Any

from simul.common.config.game_description import PAST_SELVES
from simul.env_worker.recent_episodes import Episode, RecentEpisodes

RECENT_GAMES = 200
OUTCOMES = ("losses", "ties", "wins")  # index outcome + 1
MAX_EVENTS = 20


class GameCounters:
    """Counters since start; `metrics` makes plain numbers and dicts of them. started = finished + aborted + alive."""

    def __init__(self) -> None:
        self.started = 0
        self.finished = 0
        self.truncated = 0
        self.ties = 0
        self.decisions = 0
        self.aborted: Counter[str] = Counter()
        self.events: deque[str] = deque(maxlen=MAX_EVENTS)
        self._results: dict[str, Counter[str]] = {}
        self._recent = RecentEpisodes(RECENT_GAMES)
        self._open: dict[tuple[int, int], list[bool]] = {}  # groups of mirrored games that still run: won, of each
        self._mirrored: dict[str, Counter[str]] = {}

    def count_game(
        self, opponent: str, outcome: int | None, episode: Episode | None = None, past_self: str = ""
    ) -> None:
        """A game was played out (outcome 1, 0, -1 of the learner's seat) or truncated (None).

        `episode`: of the learner's seat; None where a bot sits there, and in an evaluation of pairings. `past_self`:
        see `Matchup`.
        """
        self.finished += 1
        name = "truncated" if outcome is None else OUTCOMES[outcome + 1]
        self._results.setdefault(opponent, Counter())[name] += 1
        if episode is not None:
            self._recent.add(episode, opponent, past_self)
        self.ties += outcome == 0
        self.truncated += outcome is None

    def keep_past_selves(self, policies: Collection[str]) -> None:
        """Report no recent games against past selves that are not among `policies`, which the server offers."""
        self._recent.forget(PAST_SELVES, policies)

    def finish_mirrored(self, mirror: tuple[int, int], outcome: int | None, games: int = 2) -> None:
        """One of the `games` of the group `mirror` (pairing, number) is over."""
        won = self._open.setdefault(mirror, [])
        won.append(outcome == 1)
        if len(won) == games:
            del self._open[mirror]
            self._mirrored.setdefault(str(mirror[0]), Counter())[str(sum(won))] += 1

    def metrics(self, alive: int) -> dict[str, Any]:
        """`episodes`, `results`, `recent`, `mirrored`, `events`; truncated and ties are among the finished."""
        return {
            "episodes": {
                "started": self.started,
                "finished": self.finished,
                "aborted": dict(self.aborted),
                "alive": alive,
                "truncated": self.truncated,
                "ties": self.ties,
            },
            "results": {
                name: {key: counts[key] for key in ("wins", "losses", "ties", "truncated")}
                for name, counts in self._results.items()
            },
            "recent": self._recent.figures(),
            "mirrored": {name: dict(counts) for name, counts in self._mirrored.items()},
            "events": list(self.events),
        }
