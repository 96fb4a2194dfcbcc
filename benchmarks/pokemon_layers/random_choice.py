"""A random legal choice taken from a singles request alone, without poke-env and without a mask."""

from __future__ import annotations

import random
from typing import Any

GIMMICKS = (("canTerastallize", " terastallize"), ("canMegaEvo", " mega"), ("canDynamax", " dynamax"))


def legal_choices(request: dict[str, Any]) -> list[str]:
    """What the simulator would take, in its own words."""
    side = request["side"]["pokemon"]
    if "active" not in request:
        return _switches(side, fainted=any(entry.get("reviving") for entry in side))
    active = request["active"][0]
    moves = [f"move {slot}" for slot, move in enumerate(active["moves"], 1) if not move.get("disabled")]
    choices = [move + word for key, word in GIMMICKS if active.get(key) for move in moves] + moves
    if zmoves := active.get("canZMove"):
        choices += [f"move {slot} zmove" for slot, zmove in enumerate(zmoves, 1) if zmove and f"move {slot}" in moves]
    return choices if active.get("trapped") else choices + _switches(side, fainted=False)


def random_choice(request: dict[str, Any], rng: random.Random) -> str:
    """One of them; `default` for a team preview."""
    if request.get("teamPreview"):
        return "default"
    choices = legal_choices(request)
    return choices[int(rng.random() * len(choices))]


def _switches(side: list[dict[str, Any]], *, fainted: bool) -> list[str]:
    return [
        f"switch {slot}"
        for slot, entry in enumerate(side, 1)
        if not entry["active"] and entry["condition"].endswith(" fnt") == fainted
    ]
