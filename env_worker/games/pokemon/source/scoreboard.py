"""A source's counters, and the metrics made of them."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

from simul.env_worker.games.pokemon.source.rewards import PARTS
from simul.env_worker.recent_episodes import Episode, RecentEpisodes

RECENT_GAMES = 200
OUTCOMES = ("losses", "ties", "wins")  # index outcome + 1
MAX_EVENTS = 20


class Scoreboard:
    """Counters since start; `metrics` makes plain numbers and dicts of them."""

    def __init__(self) -> None:
        self.started = 0
        self.finished = 0
        self.truncated = 0
        self.ties = 0
        self.turns = 0
        self.decisions = 0
        self.redos = 0
        self.aborted: Counter[str] = Counter()
        self.invalid_choices = 0
        self.bad_actions = 0
        self.scripted_decisions = 0
        self.scripted_defaults = 0
        self.scripted_invalid = 0
        self.turn_limit_ties = 0
        self.previews = 0
        self.parse_errors: Counter[str] = Counter()
        self.reward_parts = [0.0] * len(PARTS)
        self.events: deque[str] = deque(maxlen=MAX_EVENTS)
        self._results: dict[str, Counter[str]] = {}
        self._recent = RecentEpisodes(RECENT_GAMES)
        self._half: dict[
            tuple[int, int], bool
        ] = {}  # first results of mirrored pairs whose second battle still runs: won?
        self._mirrored: dict[str, Counter[str]] = {}

    def finish(self, opponent: str, outcome: int | None, turns: int, episode: Episode | None = None) -> None:
        """A battle was played out (outcome 1, 0, -1 of the learner's seat) or truncated (None).

        `episode`: of the learner's seat; None where a bot sits there.
        """
        self.finished += 1
        self.turns += turns
        name = "truncated" if outcome is None else OUTCOMES[outcome + 1]
        self._results.setdefault(opponent, Counter())[name] += 1
        if episode is not None:
            self._recent.add(episode, opponent)
        self.ties += outcome == 0
        self.truncated += outcome is None

    def finish_mirrored(self, mirror: tuple[int, int], outcome: int | None) -> None:
        """One of the two battles called `mirror` (pairing, number) is over."""
        if mirror not in self._half:
            self._half[mirror] = outcome == 1
            return
        wins = self._half.pop(mirror) + (outcome == 1)
        self._mirrored.setdefault(str(mirror[0]), Counter())[str(wins)] += 1

    def metrics(self, alive: int) -> dict[str, Any]:
        """started = finished + aborted + alive; truncated and ties are among the finished."""
        results = {
            name: {key: counts[key] for key in ("wins", "losses", "ties", "truncated")}
            for name, counts in self._results.items()
        }
        return {
            "episodes": {
                "started": self.started,
                "finished": self.finished,
                "aborted": dict(self.aborted),
                "alive": alive,
                "truncated": self.truncated,
                "ties": self.ties,
                "turn_limit_ties": self.turn_limit_ties,
            },
            "turns": self.turns,
            "results": results,
            "recent": self._recent.figures(),
            "mirrored": {name: dict(counts) for name, counts in self._mirrored.items()},
            "redos": self.redos,
            "invalid_choices": self.invalid_choices,
            "bad_actions": self.bad_actions,
            "scripted": {
                "decisions": self.scripted_decisions,
                "defaults": self.scripted_defaults,
                "invalid": self.scripted_invalid,
            },
            "team_previews": self.previews,
            "parse_errors": dict(self.parse_errors),
            "reward_parts": dict(zip(PARTS, self.reward_parts)),
            "events": list(self.events),
        }
