"""Compares observations with the claims of slices.py and keeps the books."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache

from tests.support.pokemon.audit.battles import AuditedRow
from tests.support.pokemon.audit.derived import derived_claims
from tests.support.pokemon.audit.foes import foe_team_claims
from tests.support.pokemon.audit.request_claims import move_claims, partner_move_claims, preview_claims, request_claims
from tests.support.pokemon.audit.slices import active_claims, field_claims, last_claims, own_team_claims, side_claims
from tests.support.pokemon.audit.view import Claim, Expected, Span, places, view_of

HALF_PRECISION = 2.0**-11
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
            known = places(row.job.format)
            observation = row.observation.tolist()
            for claim in claims(row):
                place = known[claim.name]
                self._check(row, claim, observation[place.start : place.start + place.size])
        return self

    def _check(self, row: AuditedRow, claim: Claim, found: list[float]) -> None:
        kind = kind_of(claim.name)
        assert len(found) == len(claim.numbers), claim.name
        same = all(map(agrees, claim.numbers, found))
        if claim.excused:
            self.excused[claim.excused] += not same
            return
        self.compared[kind] += 1
        if same:
            return
        self.wrong[kind] += 1
        if len(self.examples[kind]) < EXAMPLES:
            self.examples[kind].append(f"{row.place}: {claim.name} is {found}, the simulator has {claim.numbers}")


def kinds() -> list[str]:
    """All kinds of slices, of both layouts."""
    found = {kind_of(name) for name in (*places("gen9randombattle"), *places("gen9doublescustomgame"))}
    return sorted(found)


def claims(row: AuditedRow) -> Iterator[Claim]:
    """All that one observation must hold."""
    view = view_of(row)
    yield from field_claims(view)
    yield from preview_claims(view)
    if not view.at_preview:
        yield from request_claims(view)
        yield from move_claims(view)
        if view.doubles:
            yield from partner_move_claims(view)
    yield from side_claims(view, "own")
    yield from side_claims(view, "foe")
    yield from active_claims(view)
    if not view.doubles:
        yield from last_claims(view, "own")
        yield from last_claims(view, "foe")
    yield from own_team_claims(view)
    yield from foe_team_claims(view)
    yield from derived_claims(view)


@cache
def kind_of(name: str) -> str:
    """A slice's name without `global` and the number of its block; in doubles the active Pokemon are own or foe."""
    name = re.sub(r"^(partner_)?(own|foe|move|damage|set)\.\d\.", r"\2.", name).removeprefix("global.")
    name = re.sub(r"^(damage\.foe)\.\d", r"\1", name)
    name = re.sub(r"^(self|partner)\.", "", name)
    return re.sub(
        r"^(self|partner|left_foe|right_foe)_active", lambda m: f"{'foe' if 'foe' in m[1] else 'own'}_active", name
    )


def agrees(expected: Expected, found: float) -> bool:
    if expected is None:
        return True
    if isinstance(expected, frozenset):
        return any(_close(one, found) for one in expected)
    if isinstance(expected, Span):
        return expected.low <= found <= expected.high
    return _close(expected, found)


def _close(expected: float, found: float) -> bool:
    """Equal as half floats; ids, which are below 2048, therefore are equal."""
    return abs(expected - found) <= HALF_PRECISION * abs(expected)
