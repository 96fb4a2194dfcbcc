"""Rows that the server refused because of what the game gave: a sentence about them, and whether they are too many."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Any

from simul.common.errors import ERR_MASK, ERR_VALUE, FailingEnvError
from simul.common.protocol.decisions import Failure
from simul.env_worker.games.base.failures import LEAST_EPISODES, RECENT_EPISODES, is_reported

FAULTS_OF_GAMES = frozenset({ERR_MASK, ERR_VALUE})


class RefusedRows:
    """Of any EnvSource. Pure.

    Episodes with a refused row end sooner than others, so the first that end do not stand for all: nothing is said of
    the share before several episodes of each env have ended.

    Args:
        game: its name.
        envs: number of episodes that run at a time.
        max_share: more refused episodes of the last RECENT_EPISODES are an error; 1.0: never.
    """

    def __init__(self, game: str, envs: int, max_share: float) -> None:
        self._game = game
        self._least = max(LEAST_EPISODES, 4 * envs)
        self._max_share = max_share
        self._times: Counter[str] = Counter()  # by code
        self._ended: deque[int] = deque(maxlen=RECENT_EPISODES)  # episodes that had ended before each refused one
        self._last = ""

    def add(self, failures: Sequence[Failure], episodes: Mapping[str, Any]) -> list[str]:
        """Rows were refused, and their episodes have ended. Returns sentences: the 1st, 10th, 100th, ... of a code.

        `episodes`: the source's counters, see `EnvSource.metrics`. Raises FailingEnvError where they are too many.
        """
        faults = {(each.env, each.episode): each for each in failures if each.code in FAULTS_OF_GAMES}
        sentences = []
        ended = int(episodes["finished"]) + sum(episodes["aborted"].values())
        for failure in faults.values():
            self._ended.append(ended - 1)
            self._times[failure.code] += 1
            times = self._times[failure.code]
            self._last = (
                f"{self._game}: env {failure.env} seat {failure.seat} step {failure.step}: the server refused the row, "
                f"{failure.message} ({failure.code})"
            )
            if is_reported(times):
                often = f", {times} times so far" if times > 1 else ""
                sentences.append(f"{self._last}{often}; the episode is aborted")
        if faults:
            self._check(ended)
        return sentences

    def _check(self, ended: int) -> None:
        recent = min(ended, RECENT_EPISODES)
        refused = sum(before >= ended - recent for before in self._ended)
        if ended >= self._least and refused > self._max_share * recent:
            raise FailingEnvError(
                f"{refused} of the last {recent} episodes were refused by the server, more than "
                f"workers.max_failed_share {self._max_share:g}. The last: {self._last}."
            )
