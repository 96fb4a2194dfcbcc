"""Accuracy and cost of moves for bots; `node/bots/hit_chance.mjs` reads them."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from poke_env.battle.move import Move
from poke_env.data import GenData

# Factor on a move's value for the turn it costs, the chance that it fails, or its user.
PRICES = {
    **dict.fromkeys(("futuresight", "doomdesire", "lastresort"), 0.4),
    **dict.fromkeys(("focuspunch", "belch", "synchronoise", "shelltrap"), 0.3),
    **dict.fromkeys(("suckerpunch", "thunderclap", "upperhand"), 0.8),
}
RECHARGED, SELF_DESTROYED = 0.7, 0.4


class HitTerms(NamedTuple):
    """Accuracy data of one move. sure: True = stages do not change `accuracy`."""

    move_id: str
    accuracy: float
    sure: bool
    priority: int
    target: str
    price: float
    charges: bool
    ohko: bool


NOTHING = HitTerms("", 1.0, True, 0, "normal", 1.0, False, False)


@cache
def hit_terms(gen: int, name: str) -> HitTerms:
    """Look a move up by the name that requests use."""
    move_id = "hiddenpower" if name.startswith("hiddenpower") else Move.retrieve_id(name)
    entry = GenData.from_gen(gen).moves.get(move_id)
    if entry is None:
        return NOTHING
    flags = entry.get("flags", {})
    price = PRICES.get(move_id, 1.0)
    if "recharge" in flags and gen > 1:
        price *= RECHARGED
    if entry.get("selfdestruct"):
        price *= SELF_DESTROYED
    sure = entry["accuracy"] is True
    accuracy = 1.0 if sure else entry["accuracy"] / 100
    ohko = bool(entry.get("ohko"))
    return HitTerms(move_id, accuracy, sure, entry["priority"], entry["target"], price, "charge" in flags, ohko)


def all_hit_terms(gen: int) -> dict[str, HitTerms]:
    """Of every move of a generation, by id."""
    return {move_id: hit_terms(gen, move_id) for move_id in GenData.from_gen(gen).moves}
