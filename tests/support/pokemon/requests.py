"""Requests made up for a test: everything that a simulator would say, of a team of Pokemon with two moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Entry = dict[str, Any]
Request = dict[str, Any]
STATS = dict.fromkeys(("atk", "def", "spa", "spd", "spe"), 200)
MOVES = ("tackle", "splash")
TARGETS = {"tackle": "normal", "splash": "self"}


def entry(
    species: str, active: bool = False, fainted: bool = False, moves: Sequence[str] = MOVES, **more: Any
) -> Entry:
    """A Pokemon of one's own, p1's unless said."""
    return {
        "ident": f"p1: {species}", "details": f"{species}, L80, M", "condition": "0 fnt" if fainted else "100/100",
        "active": active, "stats": STATS, "moves": list(moves), "baseAbility": "pressure", "ability": "pressure",
        "item": "", "pokeball": "pokeball", **more,
    }  # fmt: skip


def team_of(*active: str, bench: Sequence[str] = (), fainted: Sequence[str] = ()) -> list[Entry]:
    """Of species: those on the field, then those behind them."""
    return [entry(name, place < len(active), name in fainted) for place, name in enumerate((*active, *bench))]


def offer(*names: str, disabled: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Moves as a request offers them."""
    return [
        {"move": name.title(), "id": name, "pp": 10, "maxpp": 10, "target": TARGETS.get(name, "normal"),
         "disabled": name in disabled}
        for name in names
    ]  # fmt: skip


def turn(team: list[Entry], moves: list[dict[str, Any]] | None = None, **asked: Any) -> Request:
    """A choice of everybody on the field; `asked`: what each of them may or may not do besides its moves."""
    each = {"moves": moves or offer(*MOVES), **asked}
    return {"active": [each for one in team if one["active"]], "side": {"name": "p1", "id": "p1", "pokemon": team}}


def forced(team: list[Entry], *demanded: bool) -> Request:
    """A switch of the slots that are demanded."""
    return {"forceSwitch": list(demanded), "side": {"name": "p1", "id": "p1", "pokemon": team}}
