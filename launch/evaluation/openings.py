"""What a result says of drawn openings, and of games that repeat. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from simul.common.config.matchups import IDENTITY_BITS
from simul.launch.processes.role_reports import Metrics


def opening_figures(plies: Sequence[int], identities: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Of all workers together: `opening_plies`, and `game_identities` where every one of them has listed its own."""
    if not plies:
        return {}
    listed = {"game_identities": [one for each in identities for one in each]} if len(identities) == len(plies) else {}
    return {"opening_plies": max(plies), **listed}


def distinct_games(figures: Metrics, index: int) -> int | None:
    """How many different games pairing number `index` had; None where that was not counted."""
    if "game_identities" not in figures:
        return None
    return len({each for each in figures["game_identities"] if each >> IDENTITY_BITS == index})


def whole_deals(games: int, seats: int) -> tuple[int, str]:
    """So many games, or the next more that play each deal from every seat; and what is said of more, else ""."""
    played = -(-games // seats) * seats
    said = f"{games} games are no whole number of deals for {seats} seats: {played} of each pair are asked for"
    return played, said if played > games else ""


def openings_text(result: Mapping[str, Any]) -> str:
    """The first line of a result whose games begin with drawn plies, or repeat; else ""."""
    games = sum(pair["battles"] for pair in result["pairs"])
    counted = [pair["distinct_games"] for pair in result["pairs"]]
    distinct = sum(counted) if counted and None not in counted else None
    count = "" if distinct is None else f"{distinct} of {games} games are distinct"
    if result["openings"]:
        plies = "ply" if result["openings"] == 1 else "plies"
        seats = "is played from every seat" if result["pairs"][0]["mirrored"] else "is of one game"
        line = f"each opening of up to {result['openings']} random {plies} {seats}"
        return f"{line}; {count}" if count else line
    if distinct is not None and distinct < games:
        return f"{count}, the others repeat them: --openings N begins each with N random plies"
    return ""
