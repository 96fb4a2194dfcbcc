"""Compares observations with the claims of slices.py and keeps the books."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

import numpy as np

from simul.common.protocol.specs import Slice
from simul.env_worker.games.pokemon.doubles import layout as doubles
from simul.env_worker.games.pokemon.encoding import layout
from simul.env_worker.games.pokemon.formats.spec import is_doubles
from tests.support.pokemon.audit.battles import AuditedRow
from tests.support.pokemon.audit.slices import Claim, Expected, claims

EXAMPLES = 5  # kept of each slice


class Audit:
    """What a comparison found, by kind of slice ("own.species" for those of all six).

    Attributes:
        rows: observations compared.
        compared: slices compared.
        wrong: those that differ from the state.
        excused: those that differ where an approximation allows it, by its name.
        examples: the first differences of each kind of slice.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.compared: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()
        self.excused: Counter[str] = Counter()
        self.examples: defaultdict[str, list[str]] = defaultdict(list)

    def read(self, rows: Iterable[AuditedRow]) -> Audit:
        """Compare every row."""
        for row in rows:
            self.rows += 1
            places = _places(is_doubles(row.job.format))
            observation = row.observation.tolist()
            for claim in claims(row):
                place = places[claim.name]
                self._check(row, claim, observation[place.start : place.start + place.size])
        return self

    def _check(self, row: AuditedRow, claim: Claim, found: list[float]) -> None:
        kind = kind_of(claim.name)
        assert len(found) == len(claim.numbers), claim.name
        same = all(map(_agree, claim.numbers, found))
        if claim.excused:
            self.excused[claim.excused] += not same
            return
        self.compared[kind] += 1
        if same:
            return
        self.wrong[kind] += 1
        if len(self.examples[kind]) < EXAMPLES:
            self.examples[kind].append(f"{row.place}: {claim.name} is {found}, the simulator has {claim.numbers}")


def kind_of(name: str) -> str:
    """A slice's name without the number of its block; in doubles the four active Pokemon are own or foe."""
    name = re.sub(r"^(own|foe|move|partner_move)\.\d\.", lambda match: f"{match[1].removeprefix('partner_')}.", name)
    return re.sub(
        r"(self|partner|left_foe|right_foe)_active", lambda m: "foe_active" if "foe" in m[1] else "own_active", name
    )


def _agree(expected: Expected, found: float) -> bool:
    if expected is None:
        return True
    if isinstance(expected, frozenset):
        return any(_half(one) == found for one in expected)
    return _half(expected) == found


def _half(number: float) -> float:
    return float(np.float16(number))


_SINGLES = {part.name: part for part in layout.slices()}
_DOUBLES = {part.name: part for part in doubles.slices()}


def _places(in_doubles: bool) -> dict[str, Slice]:
    return _DOUBLES if in_doubles else _SINGLES
