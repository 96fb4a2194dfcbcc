"""Expected share of a move's damage: accuracy, and moves that work only sometimes or have a cost."""

from __future__ import annotations

from simul.env_worker.games.pokemon.damage.types import FACTS, Surroundings
from simul.env_worker.games.pokemon.opponents.one_ply.combatants import Combatant
from simul.env_worker.games.pokemon.tables.hit_terms import HitTerms, hit_terms

RAIN, SUN, SNOW = FACTS["rain"], FACTS["sun"], FACTS["snow"]
ONLY_FRESH = ("fakeout", "firstimpression")
ON_SLEEPERS = ("dreameater",)
ASLEEP = ("snore",)
STORMS = ("thunder", "hurricane", "bleakwindstorm", "wildboltstorm", "sandsearstorm")
AT_ONCE_IN = {"solarbeam": SUN, "solarblade": SUN, "electroshot": RAIN}
CHARGED = 0.5


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
