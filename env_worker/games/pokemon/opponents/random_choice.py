"""A random legal choice, made from a request alone: what takes the place of a choice that a scripted player failed to
make.
"""

from __future__ import annotations

import random
from typing import Any

Request = dict[str, Any]


def random_choice(request: Request, rng: random.Random) -> str:
    """A legal choice in the simulator's words, drawn slot by slot. It uses no mega evolution or other gimmick."""
    if request.get("teamPreview"):
        members = list(range(1, len(request["side"]["pokemon"]) + 1))
        rng.shuffle(members)
        return f"team {','.join(map(str, members))}"
    chosen: list[str] = []
    for slot in range(len(request.get("forceSwitch") or request["active"])):
        options = [option for option in _options(request, slot) if option not in chosen or option.startswith("move")]
        chosen.append(rng.choice(options or ["pass"]))
    return ", ".join(chosen)


def _options(request: Request, slot: int) -> list[str]:
    side = request["side"]["pokemon"]
    if "forceSwitch" in request:
        return _switches(request, bool(side[slot].get("reviving"))) if request["forceSwitch"][slot] else []
    asked = request["active"][slot]
    if not asked or _fainted(side[slot]) or side[slot].get("commanding"):
        return []
    return _moves(request, slot) + ([] if asked.get("trapped") else _switches(request, reviving=False))


def _switches(request: Request, reviving: bool) -> list[str]:
    return [
        f"switch {place}"
        for place, entry in enumerate(request["side"]["pokemon"], start=1)
        if _fainted(entry) == reviving and (reviving or not entry["active"])
    ]


def _moves(request: Request, slot: int) -> list[str]:
    asked = request["active"][slot]
    moves = asked["moves"]
    if "maxMoves" in asked and not asked.get("canDynamax"):  # it is dynamaxed: its moves aim as max moves do
        moves = asked["maxMoves"]["maxMoves"]
    return [
        f"move {number}{target}"
        for number, move in enumerate(moves, start=1)
        if not move.get("disabled")
        for target in _targets(move.get("target", ""), request, slot)
    ]


def _targets(kind: str, request: Request, slot: int) -> tuple[str, ...]:
    """Where a move of this target type may be aimed, " 1" or " 2" a foe; "": it finds its target itself."""
    if len(request["active"]) == 1:
        return ("",)
    own, ally = f" -{slot + 1}", f" -{2 - slot}"
    if kind in ("normal", "any", "adjacentFoe"):
        return " 1", " 2"
    if kind == "adjacentAllyOrSelf":
        return (own,)
    return (ally,) if kind == "adjacentAlly" else ("",)


def _fainted(entry: dict[str, Any]) -> bool:
    return str(entry["condition"]).endswith(" fnt")
