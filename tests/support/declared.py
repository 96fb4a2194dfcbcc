"""A game that declares everything a layout can: numbers, ids of two tables, entities with a mask and without."""

from __future__ import annotations

import msgspec

from simul.common.protocol.specs import EntityGroup, GameSpec, Slice

UNITS, TOWERS = 5, 2


def _layout() -> tuple[Slice, ...]:
    parts, at = [], 0

    def add(name: str, size: int, **more) -> None:
        nonlocal at
        parts.append(Slice(name, at, size, **more))
        at += size

    add("score", 2)
    add("class", 1, kind="id", high=49.0, vocabulary=50, table="class")
    for i in range(UNITS):
        add(f"unit.{i}.kind", 1, kind="id", high=6.0, vocabulary=7, table="kind")
        add(f"unit.{i}.place", 2, low=-1.0)
        add(f"unit.{i}.present", 1)
    for i in range(TOWERS):
        add(f"tower.{i}", 1, kind="id", high=6.0, vocabulary=7, table="kind")
    add("last_classes", 2, kind="id", high=49.0, vocabulary=50, table="class")
    return tuple(parts)


LAYOUT = _layout()
FIRST = LAYOUT[2].start  # of the units
DECLARED = GameSpec(
    "declared", LAYOUT[-1].start + 2, 5, layout=LAYOUT,
    entities=(EntityGroup("unit", UNITS, "present"), EntityGroup("tower", TOWERS)),
)  # fmt: skip
ONLY_ENTITIES = GameSpec(
    "only entities", 4 * UNITS, 5, entities=DECLARED.entities[:1],
    layout=tuple(
        msgspec.structs.replace(part, start=part.start - FIRST) for part in LAYOUT if part.name.startswith("unit.")
    ),
)  # fmt: skip
