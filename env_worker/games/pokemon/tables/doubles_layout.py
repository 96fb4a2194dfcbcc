"""The observation of one slot's decision in doubles, as data; made of the same fields as in singles.

    global | own.0 .. own.5 | foe.0 .. foe.5 | move.0 .. move.3 | partner_move.0 .. 3 | mask

`move.k` are the moves of the slot that decides; `self_active` is its Pokemon, `partner_active` its partner. Foes are
left and right as Showdown numbers them (targets 1 and 2).
"""

from __future__ import annotations

from functools import cache

from simul.common.protocol.specs import Slice
from simul.env_worker.games.pokemon.tables import layout as singles
from simul.env_worker.games.pokemon.tables.layout import MOVE_SLOTS, TEAM_SIZE, Field, lay_out, width

NUM_ACTIONS = 107
SIDES = ("left", "right")
PAIR_NAMES = (
    *("deals", "deals_effectiveness", "takes", "takes_effectiveness", "moves_first"),
    *("threat", "threat_chance", "falls"),
)
BODY_NAMES = (
    *("species", "ability", "item", "moves", "types", "tera_type", "present", "hp", "fainted", "active", "revealed"),
    *("terastallized", "status", "sleep_turns", "resting", "toxic_stage", "level", "stats", "moves_pp"),
)
AGAINST_NAMES = ("effectiveness", "damage", "knock_out_chance", "tera_damage")
FIELD_NAMES = ("weather", "weather_turns", "terrain", "terrain_turns", "trick_room", "trick_room_turns")


def named(fields: tuple[Field, ...], names: tuple[str, ...]) -> tuple[Field, ...]:
    """The fields of these names, in their order."""
    by_name = {field.name: field for field in fields}
    return tuple([by_name[name] for name in names])


def twice(fields: tuple[Field, ...], whom: str) -> tuple[Field, ...]:
    """Once against the left, once against the right one."""
    return tuple(
        [
            field._replace(name=f"{side}.{field.name}", meaning=f"{field.meaning}; here: the {side} {whom}")
            for side in SIDES
            for field in fields
        ]
    )


ASKED = (
    Field("force_switch", "a switch is demanded of it"),
    Field("trapped", "it cannot be switched"),
    Field("maybe_trapped", "switching it may turn out to be impossible"),
    Field("can_gimmick", "mega, z-move, dynamax, terastallize possible for it now", 4),
)
FIRST = (
    Field("first.made", "the left slot has decided (or only passes): what follows is its choice"),
    Field("first.switch", "of own.0 to own.5: it comes in there", TEAM_SIZE),
    Field("first.move", "the move it uses", table="move"),
    Field("first.target", "targets -2, -1, 0, 1, 2", 5),
    Field("first.gimmick", "mega, z-move, dynamax, terastallize", 4),
)
GLOBAL = (
    *named(singles.GLOBAL, ("turn",)),
    Field("right", "the right slot decides"),
    *named(singles.GLOBAL, ("reviving",)),
    *(field._replace(name=f"{who}.{field.name}") for who in ("self", "partner") for field in ASKED),
    *FIRST,
    *named(singles.GLOBAL, FIELD_NAMES),
    *(field._replace(name=f"{who}_side.{field.name}") for who in ("own", "foe") for field in singles.SIDE),
    *(
        field._replace(name=f"{who}_active.{field.name}")
        for who in ("self", "partner", "left_foe", "right_foe")
        for field in singles.ACTIVE
    ),
    *singles.PREVIEW,
)
BODY = named(singles.POKEMON, BODY_NAMES)
PAIR = named(singles.POKEMON, PAIR_NAMES)
POKEMON = (
    *BODY,
    Field("slot", "it stands left, right", 2),
    *twice(PAIR, "opponent"),
)
ALONE = tuple(field for field in singles.MOVE if field.name not in AGAINST_NAMES)
AGAINST = named(singles.MOVE, AGAINST_NAMES)
MOVE = (*ALONE, *twice(AGAINST, "foe"))
MASK = (Field("mask", "1 = legal: pass, switch to own.i (6), then 5 gimmicks x 4 moves x 5 targets", NUM_ACTIONS),)
BLOCKS = (
    ("global", GLOBAL),
    *((f"own.{i}", POKEMON) for i in range(TEAM_SIZE)),
    *((f"foe.{i}", POKEMON) for i in range(TEAM_SIZE)),
    *((f"move.{k}", MOVE) for k in range(MOVE_SLOTS)),
    *((f"partner_move.{k}", MOVE) for k in range(MOVE_SLOTS)),
    ("", MASK),
)
GLOBAL_WIDTH, POKEMON_WIDTH, MOVE_WIDTH = width(GLOBAL), width(POKEMON), width(MOVE)
OBSERVATION_SIZE = GLOBAL_WIDTH + 2 * TEAM_SIZE * POKEMON_WIDTH + 2 * MOVE_SLOTS * MOVE_WIDTH + NUM_ACTIONS


@cache
def slices() -> tuple[Slice, ...]:
    """The layout as the spec publishes it."""
    return lay_out(BLOCKS)
