"""Payoffs and ratings of a run's league.json as curves: the latest self, scripted players and past selves."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import permutations
from typing import TYPE_CHECKING, Any

import msgspec

from simul.common.config.matchups import distinct_labels
from simul.launch.monitoring.curves.figures import LATEST_SELF, LEAGUE, Figure
from simul.launch.monitoring.snapshot import Snapshot

if TYPE_CHECKING:
    from simul.launch.ratings.league_file import LeagueFigures

MOST_MEMBERS = 8  # each pair has six columns of curves.csv, for good
MOST_NAMES = 1000  # in one start of a run, whose past selves change
LONGEST_NAME = 60  # characters
NAMES_SAID = (
    f"The league has more than {MOST_NAMES} figures in this start of the run: those of further members are left out "
    "of the curves. `simul status` shows them."
)
_UNUSUAL = re.compile(r"[^A-Za-z0-9_.@-]")


def league_figures(league: LeagueFigures) -> list[Figure]:
    """Ratings, then payoffs, of at most MOST_MEMBERS: the latest self, scripted players, the newest past selves."""
    return [figure for figure in _figures(league) if math.isfinite(figure.value)]


def with_league(snapshot: Snapshot, league: LeagueFigures | None) -> Snapshot:
    """With the figures of a league.json that was read later, in place of those of the run's last report."""
    if league is None:
        return snapshot
    kept = {name: value for name, value in snapshot.figures.items() if not name.startswith(LEAGUE)}
    later = {figure.name: figure.value for figure in league_figures(league)}
    return msgspec.structs.replace(snapshot, figures={**kept, **later})


class LeagueNames:
    """Bounds the names that a start of a run adds to its curves."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._said = False

    def admit(self, figures: list[Figure]) -> tuple[list[Figure], list[str]]:
        """Those whose names are known, or fit; and a sentence, once, where others are left out."""
        admitted = []
        for figure in figures:
            if figure.name in self._known or len(self._known) < MOST_NAMES:
                self._known.add(figure.name)
                admitted.append(figure)
        says = len(admitted) < len(figures) and not self._said
        self._said = self._said or says
        return admitted, [NAMES_SAID] if says else []


def _figures(league: LeagueFigures) -> Iterator[Figure]:
    members = league.members
    if league.latest is not None:
        yield Figure("league/policy_version", float(league.latest))
        yield Figure("league/rank", float(league.best_first.index(members[0]) + 1))
        yield Figure("league/members", float(len(members)))
    names = _names(league)
    for member in members:
        if name := names.get(member["label"]):
            for curve, value in zip(("elo", "elo_low", "elo_high"), (member["elo"], *member["elo_95"])):
                yield Figure(f"league/{curve}/<member>", value, name)
    for row, column in permutations(names, 2):
        if rate := league.rates.get((row, column)):
            for curve, value in (("win_rate", rate.win_rate), ("win_rate_low", rate.low), ("win_rate_high", rate.high)):
                yield Figure(f"league/{curve}/<member>/<opponent>", value, names[row], names[column])


def _names(league: LeagueFigures) -> dict[str, str]:
    """By label, of those that are curves."""
    labels = [member["label"] for member in league.members]
    if league.latest is None:
        chosen = labels[:MOST_MEMBERS]
        return dict(zip(chosen, distinct_labels([_name(label) for label in chosen])))
    scripted: list[Any] = [label for label in labels[1:] if not label.startswith(("past/", "learner@"))]
    selves = [label for label in labels[1:] if label not in scripted]
    chosen = [labels[0], *[*scripted, *selves][: MOST_MEMBERS - 1]]
    return dict(zip(chosen, distinct_labels([LATEST_SELF, *map(_name, chosen[1:])])))


def _name(label: str) -> str:
    return _UNUSUAL.sub("_", label)[:LONGEST_NAME]
