"""What a `move` line costs, from gen 3 on: pp by move.

A move that is chosen costs one pp, and one more for each foe at which it aims that has Pressure. A move that another
one calls costs nothing; from gen 4 on its caller pays for Pressure. The host's side: `node/tracker/move_event.mjs`.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from poke_env.data import GenData

from simul.env_worker.games.pokemon.battle_view.counters import move_key

FIRST_GEN = 3  # of these rules
LAST_GEN_WITH_FREE_CALLS = 3  # Pressure does not act on moves that others call
AIMED = frozenset(["adjacentFoe", "all", "allAdjacent", "allAdjacentFoes", "any", "normal", "randomNormal", "scripted"])
AT_ALL_FOES = frozenset(["all", "allAdjacent", "allAdjacentFoes"])
# Causes of moves that their users have chosen all the same: brought forward, or combined with another one.
CHOSEN = ("Grass Pledge", "Water Pledge", "Fire Pledge", "Round", "Pursuit", "Quick Claw")
NO_TARGET = "[notarget]"


class Aim(NamedTuple):
    """Whose Pressure a move meets. aimed: of foes at all; at_all_foes: of all of them, else of its target."""

    aimed: bool
    at_all_foes: bool


@cache
def aim(gen: int, name: str) -> Aim:
    """Of a move by the name that lines use; nothing is known of Z-moves."""
    entry = GenData.from_gen(gen).moves.get(move_key(name))
    if entry is None:
        return Aim(False, False)
    presses = "mustpressure" in entry["flags"]
    return Aim(presses or entry["target"] in AIMED, presses or entry["target"] in AT_ALL_FOES)


def cause_of(part: str) -> str:
    """The move, ability or item that a part of a `move` line names as its cause, "" for none."""
    return part.removeprefix("[from]").rpartition(": ")[2].strip() if part.startswith("[from]") else ""


def pp_costs(gen: int, event: list[str], pressure: int) -> dict[str, int]:
    """What a `move` line takes, by the keys of poke-env's moves. `pressure`: foes whose Pressure the move meets."""
    key = move_key(event[3])
    part = next((part for part in event[4:] if part.startswith("[from]")), "")
    if not part:
        return {key: 1 + pressure}
    cause = cause_of(part)
    chosen = cause in CHOSEN or cause == event[3]
    if gen <= LAST_GEN_WITH_FREE_CALLS:
        return {key: 1 + (pressure if cause == "Pursuit" else 0)} if chosen else {}
    costs = {move_key(cause): pressure} if part.startswith("[from] move: ") else {}
    if chosen:
        costs[key] = costs.get(key, 0) + 1
    return costs
