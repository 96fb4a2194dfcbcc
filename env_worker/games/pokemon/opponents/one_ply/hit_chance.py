"""Expected share of a move's damage: accuracy, and moves that work only sometimes or have a cost."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from poke_env.battle.move import Move
from poke_env.data import GenData

from simul.env_worker.games.pokemon.damage.types import FACTS, Surroundings
from simul.env_worker.games.pokemon.opponents.one_ply.combatants import Combatant

RAIN, SUN, SNOW = FACTS["rain"], FACTS["sun"], FACTS["snow"]
ONLY_FRESH = ("fakeout", "firstimpression")
ON_SLEEPERS = ("dreameater",)
ASLEEP = ("snore",)
STORMS = ("thunder", "hurricane", "bleakwindstorm", "wildboltstorm", "sandsearstorm")
AT_ONCE_IN = {"solarbeam": SUN, "solarblade": SUN, "electroshot": RAIN}
# Factor on a move's value for the turn it costs, the chance that it fails, or its user.
PRICES = {
    **dict.fromkeys(("futuresight", "doomdesire", "lastresort"), 0.4),
    **dict.fromkeys(("focuspunch", "belch", "synchronoise", "shelltrap"), 0.3),
    **dict.fromkeys(("suckerpunch", "thunderclap", "upperhand"), 0.8),
}
CHARGED, RECHARGED, SELF_DESTROYED = 0.5, 0.7, 0.4


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


def hit_chance(gen: int, name: str, user: Combatant, target: Combatant, around: Surroundings) -> float:
    """Expected share of a move's damage, 0 to 1. `name` empty: an unseen attack."""
    move = hit_terms(gen, name)
    if move.move_id in ONLY_FRESH and not user.fresh:
        return 0.0
    if (move.move_id in ON_SLEEPERS and not target.asleep) or (move.move_id in ASLEEP and not user.asleep):
        return 0.0
    if move.ohko and (target.fighter.level > user.fighter.level or target.fighter.ability == "sturdy"):
        return 0.0
    price = move.price
    if move.charges and user.fighter.item != "powerherb" and not around.facts & AT_ONCE_IN.get(move.move_id, 0):
        price *= CHARGED
    return price * _accuracy(move, user, target, around)


def _accuracy(move: HitTerms, user: Combatant, target: Combatant, around: Surroundings) -> float:
    if move.sure or "noguard" in (user.fighter.ability, target.fighter.ability):
        return 1.0
    if (move.move_id in STORMS and around.facts & RAIN) or (move.move_id == "blizzard" and around.facts & SNOW):
        return 1.0
    accuracy = 0.5 if move.move_id in STORMS[:2] and around.facts & SUN else move.accuracy
    if move.ohko:
        return accuracy
    if user.fighter.ability == "compoundeyes":
        accuracy *= 1.3
    stage = max(-6, min(6, user.aim - target.evasion))
    return min(1.0, accuracy * (3 + max(stage, 0)) / (3 - min(stage, 0)))
