"""Failures of envs: where each was raised, and whether too many episodes fail."""

from __future__ import annotations

import logging
import os
import site
import sysconfig
import traceback
from collections import Counter, deque
from pathlib import Path

from simul.common.protocol.errors import FailingEnvError

RECENT_EPISODES = 100  # finished or failed
LEAST_EPISODES = 20  # fewer say nothing about the share of failures
MOST_NAMED = 3
_GAMES = Path(__file__).parents[1]
_HOSTING = {  # they call the game's code
    str(_GAMES / name)
    for name in (
        "base/source.py", "base/hosted_game.py", "gymnasium/source.py", "gymnasium/hosted_env.py",
        "gymnasium/spaces.py", "openspiel/adapter.py", "pettingzoo/adapter.py",
    )
}  # fmt: skip
_LIBRARIES = tuple({*site.getsitepackages(), sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")})
_log = logging.getLogger("simul-worker")


class EpisodeFailures:
    """The failures among the last episodes of a source.

    The traceback of the first failure of each kind is logged; a kind is an exception type and the line that raised it.

    Args:
        max_share: more failed episodes of the last RECENT_EPISODES are an error; 1.0: never.
    """

    def __init__(self, max_share: float) -> None:
        self._max_share = max_share
        self._recent: deque[str] = deque(maxlen=RECENT_EPISODES)  # kind of the failure; empty: finished
        self._kinds: set[str] = set()

    def add_finished(self) -> None:
        """Count an episode that finished."""
        self._recent.append("")

    def add_failed(self, error: Exception) -> None:
        """Count an episode that failed, and log the traceback of a new kind of failure."""
        place = place_of(error)
        kind = f"{type(error).__name__} at {place}" if place else f"{type(error).__name__}: {str(error)[:100]}"
        if kind not in self._kinds:
            self._kinds.add(kind)
            _log.warning("the first %s:", kind, exc_info=error)
        self._recent.append(kind)

    def check(self) -> None:
        """Raises FailingEnvError where the share of failed episodes is too large."""
        kinds = Counter(kind for kind in self._recent if kind)
        if len(self._recent) < LEAST_EPISODES or kinds.total() <= self._max_share * len(self._recent):
            return
        named = ", ".join(f"{kind} ({count} times)" for kind, count in kinds.most_common(MOST_NAMED))
        raise FailingEnvError(
            f"{kinds.total()} of the last {len(self._recent)} episodes failed, more than workers.max_failed_share "
            f"{self._max_share:g}: {named}. The log of the worker shows the first traceback of each."
        )


def describe_failure(error: Exception, env: int, episode: int, step: int) -> str:
    """One line: where and what was raised, and in which episode."""
    place = place_of(error)  # comes first: the view cuts long lines
    what = f"{place}: " if place else ""
    return f"{what}{type(error).__name__}: {str(error)[:200]} (env {env} episode {episode} step {step})"


def place_of(error: BaseException) -> str:
    """`FILE:LINE` of the env's code that raised: its innermost line outside of libraries. Empty: our own check raised.

    A file below the working directory is relative to it.
    """
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename not in _HOSTING]
    own = [frame for frame in frames if not frame.filename.startswith(_LIBRARIES)] or frames
    if not own:
        return ""
    path, here = own[-1].filename, os.getcwd() + os.sep
    return f"{path.removeprefix(here)}:{own[-1].lineno}"
