"""A run's league.json for those who show it: ratings of all members, the latest self first, and who beat whom."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any, NamedTuple

from simul.common.errors import ConfigError
from simul.launch.ratings.mirrored_games import wilson_of_games
from simul.launch.ratings.pair_results import LEAGUE_FILE, payoffs, rate, read_results

LOOK_EVERY_SEC = 5.0
DAMAGED = (ArithmeticError, ValueError)  # numbers that each are possible, and have no ratings together
_SELF = re.compile(r"(learner@|past/)(\d{1,15})")  # labels of `simul league`


class Rate(NamedTuple):
    """Of one member's games against another: ties and truncated games are not wins. `low`, `high`: 95% interval."""

    games: int
    wins: int
    win_rate: float
    low: float
    high: float


class LeagueFigures(NamedTuple):
    """What was played under the settings of the newest pair.

    Attributes:
        members: as of `rate`, in the order latest self, earlier selves, scripted players; these, best first.
        rates: by the labels of row and column; a pair that did not meet is missing.
        latest: version of the first member; None where no member is a self of the run.
    """

    members: list[dict[str, Any]]
    rates: dict[tuple[str, str], Rate]
    latest: int | None = None

    @property
    def best_first(self) -> list[dict[str, Any]]:
        """The members by their ratings."""
        return sorted(self.members, key=lambda member: -member["elo"])

    @property
    def payoffs(self) -> list[dict[str, Any]]:
        """`rates` for JSON: who (`first`) against whom (`second`)."""
        return [{"first": first, "second": second, **rate._asdict()} for (first, second), rate in self.rates.items()]


def read_league(root: Path, *, links: bool = True) -> LeagueFigures | None:
    """Figures of the run in `root`; None where nothing was played. Raises ConfigError.

    `links`: False: a link is refused.
    """
    file = root / LEAGUE_FILE
    results = read_results(file, links=links)
    if not results.pairs:
        return None
    settings = results.pairs[-1].settings
    try:
        members = sorted(rate(results, settings).ratings, key=_place)
        keys, labels = [member["key"] for member in members], [member["label"] for member in members]
        rates = {}
        for pair in payoffs(results, settings, keys, labels)["pairs"]:
            first, second = pair["first"], pair["second"]
            rates[first, second] = _rate(pair["wins"], pair)
            rates[second, first] = _rate(pair["losses"], pair)
    except DAMAGED:
        raise ConfigError(f"The results in {file} cannot be rated together. Move it away.") from None
    return LeagueFigures(members, rates, _version(members[0]["label"])) if members else None


def _rate(wins: int, pair: dict[str, Any]) -> Rate:
    games = pair["battles"]
    return Rate(games, wins, wins / games, *wilson_of_games(wins, games, pair["effective_games"]))


def _place(member: dict[str, Any]) -> tuple[int, int]:
    """Stable: members without a version stay in the order of their ratings."""
    version = _version(member["label"])
    is_past = int(member["label"].startswith("past/"))
    return (1, 0) if version is None else (0, -2 * version + is_past)


def _version(label: str) -> int | None:
    found = _SELF.fullmatch(label)
    return int(found[2]) if found else None


class LeagueFile:
    """league.json of a run that is watched, read again where it changed. Links are refused.

    Attributes:
        figures: of the file as it was read last; those before stay where it cannot be read.
        fault: a sentence where it cannot be read; "" otherwise.
    """

    def __init__(self, root: Path) -> None:
        self.figures: LeagueFigures | None = None
        self.fault = ""
        self._root = root
        self._seen: tuple[int, ...] | None = None
        self._thread: threading.Thread | None = None
        self._look_at = float("-inf")

    def poll(self) -> bool:
        """Read it where it changed. True: it was read."""
        if not self._changed():
            return False
        self._read()
        return True

    def poll_beside(self, now: float) -> bool:
        """The same for a loop that must not wait: a thread reads it. True: it has. `now`: monotonic seconds."""
        if self._thread is not None:
            if self._thread.is_alive():
                return False
            self._thread = None
            return True
        if now >= self._look_at:
            self._look_at = now + LOOK_EVERY_SEC
            if self._changed():
                self._thread = threading.Thread(target=self._read, name="simul-league", daemon=True)
                self._thread.start()
        return False

    def _changed(self) -> bool:
        try:
            found = (self._root / LEAGUE_FILE).lstat()
            seen = (found.st_ino, found.st_mtime_ns, found.st_size)
        except OSError:
            seen = None
        changed, self._seen = seen != self._seen, seen
        return changed

    def _read(self) -> None:
        try:
            self.figures, self.fault = read_league(self._root, links=False), ""
        except ConfigError as error:
            self.fault = str(error)
