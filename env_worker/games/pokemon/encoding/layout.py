"""The observation's layout, as data: one global block, 12 Pokemon blocks, 4 move blocks, the mask, damage, sets.

    global | own.0 .. own.5 | foe.0 .. foe.5 | move.0 .. move.3 | mask | damage.0 .. damage.2 | set.0 .. set.5

Blocks of a kind are equally long and hold the same things at the same offsets, so a network can reshape
them from the names alone. own.i is the Pokemon that action i switches to (team order, stable for the whole
battle); foe.i are the revealed opponents in order of appearance; move.k is the move of actions 6+k, 10+k, ...
set.i says what foe.i may still have; it is there only where the configuration asks for it.
foe.i that only team preview has shown come behind those that have been out.
Everything is what the seat itself knows or may conclude.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from simul.common.config.schema import PokemonConfig
from simul.common.protocol.specs import Slice
from simul.env_worker.games.pokemon.encoding.fields import GLOBAL, MOVE, POKEMON, POSSIBLE, PREVIEW, Field
from simul.env_worker.games.pokemon.encoding.vocabulary import vocabulary

TEAM_SIZE = 6
MOVE_SLOTS = 4
NUM_ACTIONS = 26
ATTACKERS = 3


class Extras(NamedTuple):
    """What a layout holds beyond the blocks that all have: damage of no own Pokemon, of 3 or of 6; foes' sets."""

    attackers: int = ATTACKERS
    sets: bool = False


PLAIN = Extras()


def extras_of(config: PokemonConfig) -> Extras:
    """As configured."""
    return Extras(config.damage_attackers, config.set_knowledge)


MASK = (Field("mask", "1 = legal: switch to own.i (6), move.k plain, mega, z, dynamax, tera (5 x 4)", NUM_ACTIONS),)
_PAIR = "fraction of its full hp: as it is and terastallized, x 4 moves, x mean and variance / 0.01"
DAMAGE = tuple(
    Field(f"foe.{j}", f"the attacker's damage to foe.{j}, {_PAIR}", 4 * MOVE_SLOTS, high=4.0) for j in range(TEAM_SIZE)
)
ATTACKER = (Field("attacker", "own.i that attacks: the active one, then the two who stand best", TEAM_SIZE),)

BLOCKS: tuple[tuple[str, tuple[Field, ...]], ...] = (
    ("global", GLOBAL),
    *((f"own.{i}", POKEMON) for i in range(TEAM_SIZE)),
    *((f"foe.{i}", POKEMON) for i in range(TEAM_SIZE)),
    *((f"move.{k}", MOVE) for k in range(MOVE_SLOTS)),
    ("", MASK),
)


def width(fields: tuple[Field, ...]) -> int:
    """Numbers in one block of these fields."""
    return sum(field.size for field in fields)


GLOBAL_WIDTH = width(GLOBAL)
PREVIEW_START = GLOBAL_WIDTH - width(PREVIEW)
POKEMON_WIDTH = width(POKEMON)
DEALS, TAKES = (
    width(POKEMON[: [field.name for field in POKEMON].index(name)]) for name in ("deals", "takes")
)  # places in a Pokemon's block
MOVE_WIDTH = width(MOVE)
OWN_START = GLOBAL_WIDTH
FOE_START = OWN_START + TEAM_SIZE * POKEMON_WIDTH
MOVE_START = FOE_START + TEAM_SIZE * POKEMON_WIDTH
MASK_START = MOVE_START + MOVE_SLOTS * MOVE_WIDTH
DAMAGE_START = MASK_START + NUM_ACTIONS


def damage_fields(attackers: int) -> tuple[Field, ...]:
    """One attacker's; of six it is known who attacks, own.k is damage.k."""
    return DAMAGE if attackers == TEAM_SIZE else ATTACKER + DAMAGE


def set_start(attackers: int) -> int:
    """Place of `set.0`."""
    return DAMAGE_START + attackers * width(damage_fields(attackers))


def observation_size(extras: Extras) -> int:
    """Numbers in all."""
    return set_start(extras.attackers) + (TEAM_SIZE * width(POSSIBLE) if extras.sets else 0)


OBSERVATION_SIZE = observation_size(PLAIN)


@cache
def slices(extras: Extras = PLAIN) -> tuple[Slice, ...]:
    """The layout as the spec publishes it."""
    damage = damage_fields(extras.attackers)
    return lay_out(
        (
            *BLOCKS,
            *((f"damage.{k}", damage) for k in range(extras.attackers)),
            *((f"set.{i}", POSSIBLE) for i in range(TEAM_SIZE) if extras.sets),
        )
    )


def lay_out(blocks: tuple[tuple[str, tuple[Field, ...]], ...]) -> tuple[Slice, ...]:
    """(prefix, fields) one behind the other."""
    sizes = vocabulary().sizes
    parts: list[Slice] = []
    start = 0
    for prefix, fields in blocks:
        for field in fields:
            rows = sizes[field.table] if field.table else 0
            parts.append(
                Slice(
                    name=f"{prefix}.{field.name}" if prefix else field.name,
                    start=start,
                    size=field.size,
                    kind="id" if field.table else "number",
                    low=field.low,
                    high=float(rows - 1) if rows else field.high,
                    meaning=field.meaning,
                    vocabulary=rows,
                    table=field.table,
                )
            )
            start += field.size
    return tuple(parts)
