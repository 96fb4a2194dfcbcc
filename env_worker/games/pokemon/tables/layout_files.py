"""The files made from the layout: the offsets that the host writes at, and docs/observation.md.

python -m simul.env_worker.games.pokemon.tables.layout_files    writes both again; a test finds stale ones
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from simul.common.runtime.installation import ROOT
from simul.env_worker.games.pokemon.install.folder import HOST_FOLDER
from simul.env_worker.games.pokemon.tables import doubles_layout as doubles
from simul.env_worker.games.pokemon.tables import layout
from simul.env_worker.games.pokemon.tables.layout import Field, width

Block = tuple[Field, ...]
MODULE = HOST_FOLDER / "encoder" / "layout.mjs"
PAGE = ROOT / "docs" / "observation.md"
HOST_BLOCKS: dict[str, Block] = {
    "GLOBAL": layout.GLOBAL,
    "SIDE": layout.SIDE,
    "ACTIVE": layout.ACTIVE,
    "LAST": layout.LAST,
    "POKEMON": layout.POKEMON,
    "PAIR": doubles.PAIR,
    "MOVE": layout.MOVE,
    "AGAINST": doubles.AGAINST,
    "TARGET": layout.DAMAGE[:1],
    "POSSIBLE": layout.POSSIBLE,
    "DOUBLES_GLOBAL": doubles.GLOBAL,
    "ASKED": doubles.ASKED,
    "FIRST": tuple(field._replace(name=field.name.removeprefix("first.")) for field in doubles.FIRST),
    "DOUBLES_POKEMON": doubles.POKEMON,
    "DOUBLES_MOVE": doubles.MOVE,
}
INTRODUCTION = """# The Pokémon observation

Made from `env_worker/games/pokemon/tables/layout.py`, which is the layout: the host's encoder writes at offsets made
from it, and `GameSpec.layout` gives every slice its name. A row is `float16`; everything in it is what the seat itself
knows or may conclude.

`[0, 1]` is the range of a number; `ids of TABLE` are row numbers of an embedding table, 0 where unknown. *At* counts
from the start of the block.
"""
SINGLES = """## Singles: {size} numbers

`global | own.0 .. own.5 | foe.0 .. foe.5 | move.0 .. move.3 | mask | damage.0 .. | set.0 .. set.5`

own.i is the Pokémon that action i switches to, in team order, the same for the whole battle. foe.i are the opponents
that have been out, in order of appearance; those that only team preview has shown come behind. move.k is the move of
actions 6+k, 10+k, ... `damage` is there unless `damage_attackers` is 0, `set` with `set_knowledge` only.
"""
DOUBLES = """## Doubles: {size} numbers

`global | own.0 .. own.5 | foe.0 .. foe.5 | move.0 .. move.3 | partner_move.0 .. partner_move.3 | mask`

One row for each slot that decides, the left one first. move.k are the moves of that slot, `self_active` is its
Pokémon, `partner_active` its partner. Foes are left and right as Showdown numbers them (targets 1 and 2).
"""


@cache
def fingerprint() -> str:
    """Of all that the host knows of the layout; it says it in its greeting."""
    return hashlib.sha256(_module_body().encode()).hexdigest()[:16]


def module() -> str:
    """The text of `node/encoder/layout.mjs`."""
    return (
        "// Where each field of a block stands, how many numbers it has (1 where nothing is said), and what they are\n"
        "// divided by. From tables/layout.py by `python -m simul.env_worker.games.pokemon.tables.layout_files`.\n\n"
        f"export const FINGERPRINT = '{fingerprint()}';\n{_module_body()}"
    )


def page() -> str:
    """The text of docs/observation.md."""
    singles = layout.observation_size(layout.PLAIN)
    parts = [INTRODUCTION, SINGLES.format(size=singles)]
    parts += [_table(*block) for block in _singles()]
    parts.append(DOUBLES.format(size=doubles.OBSERVATION_SIZE))
    parts += [_table(*block) for block in _doubles()]
    return "\n".join(parts)


def _module_body() -> str:
    return "".join(f"\nexport const {name} = {{{_entries(fields)}\n}};\n" for name, fields in HOST_BLOCKS.items())


def _entries(fields: Block) -> str:
    scales = {field.name: field.scale for field in fields if field.scale != 1 and "." not in field.name}
    sizes = {field.name: field.size for field in fields if field.size > 1 and "." not in field.name}
    groups: dict[str, Mapping[str, float]] = {"at": dict(_offsets(fields)), "size": sizes, "scale": scales}
    lines = [f"\n\twidth: {width(fields)},"]
    for group, entries in groups.items():
        if entries:
            inner = "".join(f"\n\t\t{name}: {json.dumps(value)}," for name, value in entries.items())
            lines.append(f"\n\t{group}: {{{inner}\n\t}},")
    return "".join(lines)


def _offsets(fields: Block) -> Iterator[tuple[str, int]]:
    """Of each field; of `own_side.hazards` and its like, where the block `own_side` starts."""
    start, seen = 0, ""
    for field in fields:
        name = field.name.partition(".")[0]
        if name != seen:
            yield name, start
        seen = name
        start += field.size


def _singles() -> Iterator[tuple[str, Block]]:
    yield "global", layout.GLOBAL
    yield "own.i, foe.i", layout.POKEMON
    yield "move.k", layout.MOVE
    yield "mask", layout.MASK
    yield "damage.j", layout.damage_fields(layout.ATTACKERS)
    yield "set.i", layout.POSSIBLE


def _doubles() -> Iterator[tuple[str, Block]]:
    yield "global in doubles", doubles.GLOBAL
    yield "own.i, foe.i in doubles", doubles.POKEMON
    yield "move.k, partner_move.k in doubles", doubles.MOVE
    yield "mask in doubles", doubles.MASK


def _table(name: str, fields: Block) -> str:
    rows = [f"### {name}: {width(fields)}\n", "| At | Name | Size | Range | Meaning |", "|---|---|---|---|---|"]
    start = 0
    for field in fields:
        what = f"ids of `{field.table}`" if field.table else f"[{field.low:g}, {field.high:g}]"
        meaning = field.meaning.format(scale=field.scale)
        rows.append(f"| {start} | `{field.name}` | {field.size} | {what} | {meaning} |")
        start += field.size
    return "\n".join(rows) + "\n"


def files() -> dict[Path, str]:
    """Each file and its text."""
    return {MODULE: module(), PAGE: page()}


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
