"""Which ability, item, effect, field or screen changes which step of the damage formula, and by how much.

In 4096ths, as the games count (pinned simulator: data/abilities, data/items, data/conditions and their mods).
A rule holds for the generations named and where all its facts do.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from simul.env_worker.games.pokemon.damage import rules_of_target as target
from simul.env_worker.games.pokemon.damage import rules_of_user as user
from simul.env_worker.games.pokemon.damage.facts import facts

_STAGES = "power attack defence special_defence final attack_first foe_defence foe_special_defence immune early middle"
STAGE_NAMES = tuple(_STAGES.split())
STAGES = len(STAGE_NAMES)
(
    POWER,
    ATTACK,
    DEFENCE,
    SPECIAL_DEFENCE,
    FINAL,
    ATTACK_FIRST,  # before all others, rounded by itself
    FOE_DEFENCE,
    FOE_SPECIAL_DEFENCE,
    IMMUNE,  # no damage
    EARLY,  # gens 3-4: before 2 is added
    MIDDLE,  # gen 4: after it
) = range(STAGES)


class Rule(NamedTuple):
    """`mask`: facts that must hold; `species`: prefixes of the holder's species id, none = anybody."""

    stage: int
    mod: int
    mask: int
    species: tuple[str, ...] = ()


@cache
def rules(gen: int) -> dict[str, dict[str, tuple[Rule, ...]]]:
    """Rules by who brings them (`user_ability`, `target_item`, ...) and its name, in the order they are applied."""
    return {
        "user_ability": _parse(gen, user.USER_ABILITY),
        "user_item": _parse(gen, user.USER_ITEM + user.alike()),
        "user_effect": _parse(gen, user.EFFECTS),
        "target_ability": _parse(gen, target.TARGET_ABILITY),
        "target_item": _parse(gen, target.TARGET_ITEM + target.berries()),
        "target_effect": _parse(gen, target.TARGET_EFFECTS),
        "screen": _parse(gen, target.SCREENS),
        "field": _parse(gen, user.FIELD),
        "move": _parse(gen, user.MOVE),
    }


def _parse(gen: int, text: str) -> dict[str, tuple[Rule, ...]]:
    table: dict[str, list[Rule]] = {}
    for line in filter(None, text.split("\n")):
        names, stage, mod, asked, gens, *species = (part.strip() for part in line.split("|"))
        first, last = gens.split("-")
        if int(first) <= gen <= int(last):
            rule = Rule(STAGE_NAMES.index(stage), int(mod), facts(asked), tuple(species[0].split()) if species else ())
            for name in names.split():
                table.setdefault(name, []).append(rule)
    return {name: tuple(found) for name, found in table.items()}
