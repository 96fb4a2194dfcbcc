"""A user as all its weapons see it: what is reckoned once for its four moves."""

from __future__ import annotations

from typing import NamedTuple

from simul.env_worker.games.pokemon.damage.facts import FACTS, facts
from simul.env_worker.games.pokemon.damage.fighter import Fighter, Surroundings
from simul.env_worker.games.pokemon.damage.rules import Rule
from simul.env_worker.games.pokemon.damage.state import STELLAR, grounded, held, simple
from simul.env_worker.games.pokemon.damage.tables import Tables

_SETTLED = facts(
    "user_pinched user_weak user_status user_burned user_poisoned user_grounded "
    "sun rain sand snow electric_terrain grassy_terrain misty_terrain psychic_terrain"
)


class Wielder(NamedTuple):
    """A user as it is now: what all its weapons have in common.

    Attributes:
        facts: of user and field; `spared`: facts of a move that its ability does away with.
        before, after: rules that may apply, in the order the modifiers are chained; the move's come between.
    """

    user: Fighter
    around: Surroundings
    facts: int
    spared: int
    before: tuple[Rule, ...]
    after: tuple[Rule, ...]


def wielder(tables: Tables, user: Fighter, around: Surroundings) -> Wielder:
    """`user` on this field."""
    gen, user = tables.gen, simple(tables.gen, user)
    known, item = tables.rules, held(user)
    found = known["field"].get("any", ()) if around.facts else ()
    if not (item.startswith("choice") and "DYNAMAX" in user.effects):
        found += tuple(
            [r for r in known["user_item"].get(item, ()) if not r.species or user.species.startswith(r.species)]
        )
    for effect in user.effects:
        found += known["user_effect"].get(effect, ())
    true = around.facts | _user_facts(gen, user, around)
    first = known["user_ability"].get(user.ability, ())
    return Wielder(user, around, true, _spared(gen, user.ability), _possible(first, true), _possible(found, true))


def terastallized(tables: Tables, hands: Wielder) -> Wielder:
    """The same user after terastallizing; a stellar one keeps its types."""
    gen, user, around = tables.gen, hands.user, hands.around
    types = user.types if user.tera == STELLAR else (user.tera,)
    user = user._replace(types=types, terastallized=True)
    if grounded(gen, user, around) == bool(hands.facts & FACTS["user_grounded"]):
        return hands._replace(user=user)
    return wielder(tables, user, around)


def _spared(gen: int, ability: str) -> int:
    if ability == "infiltrator" and gen >= 5:
        return FACTS["meets_screens"]
    return FACTS["secondary"] if ability == "sheerforce" and gen <= 4 else 0


def _user_facts(gen: int, user: Fighter, around: Surroundings) -> int:
    facts = 0
    if 3 * user.hp <= user.max_hp:
        facts |= FACTS["user_pinched"]
    if 2 * user.hp <= user.max_hp:
        facts |= FACTS["user_weak"]
    if user.status and not (user.status == "SLP" and gen >= 3 and user.ability != "guts"):
        facts |= FACTS["user_status"]
    if user.status == "BRN":
        facts |= FACTS["user_burned"]
    elif user.status in ("PSN", "TOX"):
        facts |= FACTS["user_poisoned"]
    if grounded(gen, user, around):
        facts |= FACTS["user_grounded"]
    return facts


def _possible(found: tuple[Rule, ...], true: int) -> tuple[Rule, ...]:
    """Those whose facts of user and field hold."""
    return tuple([rule for rule in found if not rule.mask & _SETTLED & ~true])
