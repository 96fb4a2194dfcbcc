"""Episodes and returns of a source since its start."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

RECENT = 100
EVENTS = 20
LISTED = 5000  # single returns that fit the header frame of a report (9 bytes each, 64 KiB)


class Tally:
    """Counts episodes; started = finished + aborted + alive at every moment.

    Args:
        listed: keep every single return, for an evaluation.
    """

    def __init__(self, listed: bool) -> None:
        self.started = self.finished = self.truncated = 0
        self.aborted: Counter[str] = Counter()
        self.events: deque[str] = deque(maxlen=EVENTS)
        self._sum = 0.0
        self._recent: deque[float] = deque(maxlen=RECENT)
        self._all: list[float] | None = [] if listed else None

    def finish(self, episode_return: float, truncated: bool) -> None:
        """An episode came to its own end. `episode_return` is the sum of its rewards, unscaled."""
        self.finished += 1
        self.truncated += truncated
        self._sum += episode_return
        self._recent.append(episode_return)
        if self._all is not None:
            self._all.append(episode_return)

    def metrics(self, alive: int) -> dict[str, Any]:
        """`episodes`, `returns` (means are 0.0 while `count` is 0), `events`, and `episode_returns` if listed."""
        figures: dict[str, Any] = {
            "episodes": {
                "started": self.started,
                "finished": self.finished,
                "aborted": dict(self.aborted),
                "alive": alive,
                "truncated": self.truncated,
            },
            "returns": {
                "mean": self._sum / max(self.finished, 1),
                "count": self.finished,
                "recent_mean": sum(self._recent) / max(len(self._recent), 1),
            },
            "events": list(self.events),
        }
        if self._all is not None and len(self._all) <= LISTED:
            figures["episode_returns"] = list(self._all)
        return figures
