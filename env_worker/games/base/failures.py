"""Failures of envs: where each was raised, and whether too many episodes fail."""

from __future__ import annotations

import logging
import re
from collections import Counter, deque
from dataclasses import dataclass
from pathlib import Path

from simul.common.errors import FailingEnvError
from simul.common.runtime.error_place import describe_error, place_of

RECENT_EPISODES = 100  # finished or failed
LEAST_EPISODES = 20  # fewer say nothing about the share of failures
MOST_NAMED = 3
_GAMES = Path(__file__).parents[1]
CALLERS = frozenset(  # they call the game's code
    str(_GAMES / name)
    for name in (
        "base/build.py", "base/checks.py", "base/source.py", "base/hosted_game.py", "base/own_players.py",
        "gymnasium/source.py", "gymnasium/hosted_env.py", "gymnasium/game.py", "gymnasium/spaces.py",
        "gymnasium/consecutive_choices.py", "gymnasium/replays.py", "openspiel/adapter.py", "pettingzoo/adapter.py",
        "pokemon/source/backend_events.py", "pokemon/source/own_code.py", "pokemon/source/own_seat.py",
        "pokemon/source/seats.py",
    )
)  # fmt: skip
_NUMBER = re.compile(r"\d[\d.]*(e[-+]?\d+)?")
_log = logging.getLogger("simul-worker")


@dataclass(eq=False)
class _Started:
    """An episode; `kind` of its failure, empty where it finished, None while it runs."""

    kind: str | None = None


class EpisodeFailures:
    """The failures among the last episodes of a source.

    Episodes count in the order of their start, each once all those before it have ended: failed episodes end sooner, so
    the first that end would not stand for all. The traceback of the first failure of each kind is logged; a kind is an
    exception type and the line that raised it, or else its message, whatever numbers are in it.

    Args:
        max_share: more failed episodes of the last `recent` are an error; 1.0: never.
        envs: number of episodes that run at a time.
        setting: what sets `max_share`, for the error.
        least_failures: fewer are never an error.
    """

    def __init__(
        self, max_share: float, envs: int, *, setting: str = "workers.max_failed_share",
        recent: int = RECENT_EPISODES, least_failures: int = 1,
    ) -> None:  # fmt: skip
        self._max_share = max_share
        self._setting = setting
        self._least_failures = least_failures
        self._most_waiting = 4 * envs + LEAST_EPISODES  # then the oldest, which still runs, counts as finished
        self._waiting: deque[_Started] = deque()  # in the order of their start
        self._running: dict[int, _Started] = {}  # by env
        self._recent: deque[str] = deque(maxlen=recent)  # kind of the failure; empty: finished
        self._kinds: Counter[str] = Counter()
        self._first: dict[str, str] = {}  # place, type and message of the first failure, by kind
        self._named: dict[str, str] = {}  # the first message of a kind, by the message without its numbers

    def add_started(self, env: int) -> None:
        """An episode starts; where the env's last one neither finished nor failed, that one does not count."""
        if (dropped := self._running.pop(env, None)) is not None and dropped in self._waiting:
            self._waiting.remove(dropped)
        self._running[env] = _Started()
        self._waiting.append(self._running[env])
        self._count()

    def add_finished(self, env: int) -> None:
        """The env's episode finished."""
        self._running.pop(env).kind = ""
        self._count()

    def add_failed(self, env: int, error: Exception | str) -> int:
        """The env's episode failed. Returns how many failed in this way; logs the traceback of the first.

        `error`: a text for what another process raised, and has logged.
        """
        kind = self._kind_of(error)
        if not self._kinds[kind]:
            self._first[kind] = describe_error(error, CALLERS)[:200] if isinstance(error, Exception) else kind
            _log.warning("the first %s:", kind, exc_info=error if isinstance(error, Exception) else None)
        self._kinds[kind] += 1
        self._running.pop(env).kind = kind
        self._count()
        return self._kinds[kind]

    def _kind_of(self, error: Exception | str) -> str:
        place = "" if isinstance(error, str) else place_of(error, CALLERS)
        if place:
            return f"{type(error).__name__} at {place}"
        message = error[:200] if isinstance(error, str) else f"{type(error).__name__}: {str(error)[:200]}"
        return self._named.setdefault(_NUMBER.sub("0", message), message)

    def check(self) -> None:
        """Raises FailingEnvError where the share of failed episodes is too large."""
        kinds = Counter(kind for kind in self._recent if kind)
        if len(self._recent) < LEAST_EPISODES or kinds.total() <= self._max_share * len(self._recent):
            return
        if kinds.total() < self._least_failures:
            return
        named = ", ".join(f"{self._first[kind]} ({count} times)" for kind, count in kinds.most_common(MOST_NAMED))
        raise FailingEnvError(
            f"{kinds.total()} of the last {len(self._recent)} episodes failed, more than {self._setting} "
            f"{self._max_share:g}: {named}. The log of the worker shows the first traceback of each."
        )

    def _count(self) -> None:
        while self._waiting and (self._waiting[0].kind is not None or len(self._waiting) > self._most_waiting):
            self._recent.append(self._waiting.popleft().kind or "")


def is_reported(times: int) -> bool:
    """True for the 1st, 10th, 100th, ... failure of a kind: the view does not repeat what it shows already."""
    return set(str(times)[1:]) <= {"0"} and str(times)[0] == "1"


def describe_failure(error: Exception, env: int, episode: int, step: int) -> str:
    """One line: where and what was raised, and in which episode."""
    return f"{describe_error(error, CALLERS)[:300]} (env {env} episode {episode} step {step})"
