"""The observation as the simulator's state (record.mjs) says it must be: slice by slice, own or public facts only.

Written from the simulator's objects alone. Where the observation is approximate on purpose, `APPROXIMATIONS` names it;
docs/pokemon.md has the same list.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tests.support.pokemon.audit.battles import AuditedRow

# What a number must be: this; one of these; anything.
Expected = float | frozenset[float] | None


class Claim(NamedTuple):
    """What one slice must hold. `excused`: the approximation that allows another value, "" for none."""

    name: str
    numbers: Sequence[Expected]
    excused: str = ""


WEATHERS = {
    "sunnyday": 0,
    "desolateland": 0,
    "raindance": 1,
    "primordialsea": 1,
    "sandstorm": 2,
    "snowscape": 3,
    "hail": 3,
    "deltastream": 4,
}


def one_hot(place: int | None, size: int) -> list[float]:
    """All 0 for None."""
    return [float(i == place) for i in range(size)]


def age(turn: int, state: dict[str, Any]) -> float:
    """Turns since an effect began / 8."""
    return min((turn - state["start"]) / 8, 1.0)


def global_claims(row: AuditedRow) -> Iterator[Claim]:
    """Weather."""
    truth = row.truth
    weather = WEATHERS.get(truth["weather"])
    yield Claim("global.weather", one_hot(weather, 5))
    yield Claim("global.weather_turns", [age(truth["turn"], truth["weather_state"]) if truth["weather"] else 0.0])


def claims(row: AuditedRow) -> Iterator[Claim]:
    """All that one observation must hold."""
    yield from global_claims(row)
