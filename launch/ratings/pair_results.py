"""Results of pairs of contestants, kept in a file: `simul league` and `simul eval --elo` add to it, and rate all of it.

Results are stored, not ratings: those are computed anew from all pairs together. Results count together where the games
had the same settings, see `settings_of` of `evaluation/player_keys.py`. The file may come from others: whatever is in
it is only numbers and labels.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from simul.common.config.matchups import distinct_labels
from simul.common.errors import ConfigError
from simul.common.runtime.decode_errors import DECODE_ERRORS
from simul.common.runtime.private_files import read_regular, replace_file
from simul.launch.ratings.elo import elo_ratings
from simul.launch.ratings.mirrored_games import OUTCOMES, count_groups, effective_games

LEAGUE_FILE = "league.json"  # in a run directory
MOST_BYTES = 16 << 20
MOST_CONTESTANTS = 200  # rated together, those that played last; the cost grows with the cube
DIGITS = 16  # of a hash
MOST_SAID = 200  # characters of what is wrong with a file: names of others may be in it

LONGEST = 300  # characters of a key or a label
Key = Annotated[str, Meta(min_length=1, max_length=LONGEST)]
Label = Annotated[str, Meta(min_length=1, max_length=LONGEST)]
Settings = Annotated[str, Meta(pattern=f"^[0-9a-f]{{{DIGITS}}}$")]
Count = Annotated[int, Meta(ge=0, le=10**9)]


class PairResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Games of two contestants under the same settings.

    Attributes:
        first, second: keys of the contestants, see `evaluation/player_keys.py`.
        seats: of the game; `first` sat at one of them.
        scheduled: games that were to be played, whole ones from every seat; the next one has this number.
        wins, losses, ties, truncated: of `first`.
        beaten: sum over the games of the share of the other seats that `first` beat.
        openings: drawn plies at most, at the start of each game.
        groups: of games with the same seeds, `first` at each seat once: their number by games won; {} without groups.
        distinct: games that differ from all others; 0: not counted, or too many.
    """

    first: Key
    second: Key
    settings: Settings
    seats: Annotated[int, Meta(ge=2, le=1000)]
    scheduled: Count
    wins: Count
    losses: Count
    ties: Count
    truncated: Count
    beaten: Annotated[float, Meta(ge=0.0, le=1e9)]
    openings: Count = 0
    groups: dict[str, Count] = {}
    distinct: Count = 0

    @property
    def games(self) -> int:
        """That were played out or truncated."""
        return self.wins + self.losses + self.ties + self.truncated

    @property
    def effective_games(self) -> float:
        """As many independent games have as wide an interval."""
        worth = float(self.games)
        if self.openings and self.groups:
            worth = effective_games(count_groups(self.groups, self.seats), self.seats)
        return min(worth, self.distinct or worth)

    def plus(self, later: PairResult) -> PairResult:
        """With further games of the same pair, `first` in both."""
        names = ("scheduled", *OUTCOMES, "beaten")
        sums = {name: getattr(self, name) + getattr(later, name) for name in names}
        groups = {
            wins: self.groups.get(wins, 0) + later.groups.get(wins, 0) for wins in {**self.groups, **later.groups}
        }
        openings = max(self.openings, later.openings)
        distinct = 0
        if self.distinct or later.distinct:
            both = self.distinct or self.games, later.distinct or later.games  # not counted: too many of them differ
            distinct = sum(both) if openings else max(both)  # without openings the same games come again
        return msgspec.structs.replace(self, **sums, groups=groups, openings=openings, distinct=distinct)


class PairResults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a file. `contestants`: labels by key. `pairs`: the newest last, one of two and their settings."""

    format: Literal["simul pair results, version 1"] = "simul pair results, version 1"
    contestants: Annotated[dict[Key, Label], Meta(max_length=10_000)] = {}
    pairs: Annotated[list[PairResult], Meta(max_length=100_000)] = []

    def of(self, settings: str) -> list[PairResult]:
        """Pairs that were played under these settings."""
        return [pair for pair in self.pairs if pair.settings == settings]

    def between(self, one: str, other: str, settings: str) -> PairResult | None:
        """What two have played, whichever is `first`; None for nothing."""
        both = {one, other}
        return next((pair for pair in self.of(settings) if {pair.first, pair.second} == both), None)

    def labels(self, keys: Collection[str]) -> dict[str, str]:
        """Distinct labels by key."""
        return dict(zip(keys, distinct_labels([self.contestants[key] for key in keys])))

    def with_pair(self, labels: Mapping[str, str], pair: PairResult) -> PairResults:
        """With the games of `pair` added to those of the same two; `labels`: of its contestants, by key."""
        contestants = {**self.contestants, **{key: label[:LONGEST] for key, label in labels.items()}}
        known = self.between(pair.first, pair.second, pair.settings)
        others = [each for each in self.pairs if each is not known]
        return msgspec.structs.replace(
            self, contestants=contestants, pairs=[*others, pair if known is None else known.plus(pair)]
        )


class Known(NamedTuple):
    """What is known of some contestants.

    Attributes:
        keys: of the contestants, by label.
        missing: games that were asked for, and not played out.
    """

    results: PairResults
    settings: str
    keys: dict[str, str]
    missing: int = 0


class Ratings(NamedTuple):
    """Of all contestants that met, some of them through others.

    Attributes:
        ratings: as of `elo_ratings`, with `key` and `games`.
        apart: labels of those that met none of the rated ones, not even through others.
        older: how many are left out, because more than MOST_CONTESTANTS have played since.
    """

    ratings: list[dict[str, Any]]
    apart: list[str]
    older: int = 0


def read_results(file: Path, *, links: bool = True) -> PairResults:
    """The content of `file`; nothing where there is none. Raises ConfigError. `links`: False: a link is refused."""
    try:
        found = msgspec.json.decode(read_regular(file, MOST_BYTES, links=links), type=PairResults)
    except FileNotFoundError:
        return PairResults()
    except OSError as error:
        raise ConfigError(f"The results {file} cannot be read: {error.strerror}.") from None
    except DECODE_ERRORS as error:
        raise _damaged(file, str(error)[:MOST_SAID].rstrip(".")) from None
    if fault := next(filter(None, map(lambda pair: _fault(pair, found), found.pairs)), ""):
        raise _damaged(file, fault)
    if len({(frozenset((pair.first, pair.second)), pair.settings) for pair in found.pairs}) < len(found.pairs):
        raise _damaged(file, "a pair is there twice")
    return found


def add_result(file: Path, labels: Mapping[str, str], pair: PairResult) -> PairResults:
    """Add a pair's games to the file, which is replaced as a whole; returns what it holds. Raises ConfigError.

    `pair.first` is that of the pair in the file, where it is there.
    """
    results = read_results(file).with_pair(labels, pair)
    write_results(file, results)
    return results


def write_results(file: Path, results: PairResults) -> None:
    """Replace the file as a whole. Raises ConfigError."""
    try:
        replace_file(file, msgspec.json.format(msgspec.json.encode(results)))
    except OSError as error:
        raise ConfigError(f"The results {file} cannot be written: {error.strerror}.") from None


def rate(results: PairResults, settings: str, of_interest: Sequence[str] = ()) -> Ratings:
    """Ratings from all pairs under `settings`, of those that met `of_interest`, by default those of the newest pair."""
    pairs = [pair for pair in results.of(settings) if pair.games]
    played = dict.fromkeys(key for pair in reversed(pairs) for key in (pair.first, pair.second))
    newest_first = [*(key for key in of_interest if key in played), *played]
    keys = list(dict.fromkeys(newest_first))[:MOST_CONTESTANTS]
    kept = set(keys)
    pairs = [pair for pair in pairs if pair.first in kept and pair.second in kept]
    met = _connected(keys[0], pairs) if keys else set()
    labels = results.labels([key for key in results.contestants if key in kept])
    rated = {label: key for key, label in labels.items() if key in met}
    duels = [
        (labels[pair.first], labels[pair.second], pair.effective_games, pair.beaten / pair.games)
        for pair in pairs
        if pair.first in met
    ]
    found = [
        {"key": rated[each["label"]], **each, "games": _games_of(rated[each["label"]], pairs)}
        for each in elo_ratings(list(rated), duels)
    ]
    return Ratings(found, [label for key, label in labels.items() if key not in met], len(played) - len(keys))


def payoffs(results: PairResults, settings: str, keys: Sequence[str], labels: Sequence[str]) -> dict[str, Any]:
    """Contestants and pairs of the payoff matrix of `keys`, in the shape of `simul eval --json`."""
    named = dict(zip(keys, labels))
    pairs = [
        {
            "first": named[pair.first], "second": named[pair.second], "battles": pair.games, "wanted": pair.games,
            **{name: getattr(pair, name) for name in OUTCOMES}, "effective_games": pair.effective_games,
            "mean_beaten": pair.beaten / pair.games, "openings": pair.openings,
            "distinct_games": pair.distinct or None, "mirrored": bool(pair.groups),
        }
        for pair in results.of(settings)
        if pair.games and pair.first in named and pair.second in named
    ]  # fmt: skip
    contestants = [{"label": label, "key": key} for key, label in named.items()]
    return {"contestants": contestants, "pairs": pairs, "aborted": {}, "standings": []}


def _games_of(key: str, pairs: Sequence[PairResult]) -> int:
    return sum(pair.games for pair in pairs if key in (pair.first, pair.second))


def _connected(begin: str, pairs: Sequence[PairResult]) -> set[str]:
    """Keys of those that met `begin`, or met one that did, and so on."""
    neighbours: dict[str, set[str]] = {}
    for pair in pairs:
        neighbours.setdefault(pair.first, set()).add(pair.second)
        neighbours.setdefault(pair.second, set()).add(pair.first)
    found, left = set(), [begin]
    while left:
        if (key := left.pop()) not in found:
            found.add(key)
            left += neighbours.get(key, ())
    return found


def _fault(pair: PairResult, results: PairResults) -> str:
    """What is wrong with numbers that each are possible; "" for nothing."""
    if not {pair.first, pair.second} <= results.contestants.keys() or pair.first == pair.second:
        return "a pair is not of two contestants that it names"
    if pair.beaten > pair.games * (1 + 1e-9) or pair.scheduled < pair.games:
        return "the games of a pair do not add up"
    won = {str(wins): wins for wins in range(pair.seats + 1)}
    if not pair.groups.keys() <= won.keys() or sum(pair.groups.values()) * pair.seats > pair.games:
        return "the groups of a pair do not add up"
    return ""


def _damaged(file: Path, why: str) -> ConfigError:
    return ConfigError(
        f"{file} does not hold results of pairs, as `simul league` and `simul eval --elo` write them: {why}. Move it "
        "away, or name another file."
    )
