"""A league.json as `simul league` leaves it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import msgspec

from simul.launch.ratings.pair_results import LEAGUE_FILE, PairResult, PairResults

SETTINGS = "0" * 16
MEMBERS = ("past/100", "random", "learner@300", "past/200")  # in no order


def write_league(root: Path, members: Sequence[str] = MEMBERS, games: int = 100, share: float = 0.75) -> Path:
    """Each of `members` wins `share` of its games against each that comes later. Returns the file."""
    won = round(games * share)
    pairs = [
        PairResult(one, other, SETTINGS, 2, games, won, games - won, 0, 0, beaten=float(won))
        for one, other in combinations(members, 2)
    ]
    file = root / LEAGUE_FILE
    file.write_bytes(msgspec.json.encode(PairResults(contestants={name: name for name in members}, pairs=pairs)))
    return file
