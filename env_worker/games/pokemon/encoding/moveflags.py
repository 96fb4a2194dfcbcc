"""Yes-or-no facts about a move, and chances of what it may do: `fields.MOVE_FLAGS`, in that order."""

from __future__ import annotations

from typing import Any

_NAMED = ("sound", "punch", "bite", "slicing", "bullet", "pulse", "powder", "wind", "dance")
_MORE_NAMED = ("bypasssub", "protect", "reflectable", "defrost")
_SELF_TARGETS = ("self", "allies", "allySide", "adjacentAllyOrSelf")
_STATUSES = (("brn",), ("frz",), ("par",), ("psn", "tox"), ("slp",))

Entry = dict[str, Any]


def move_flags(entry: Entry, flags: dict[str, Any], effects: list[Entry]) -> tuple[float, ...]:
    """Of one entry of the move data; `effects`: its secondary effects."""
    return (
        *[float(name in flags) for name in _NAMED],
        *[float(name in flags) for name in _MORE_NAMED],
        float(entry["accuracy"] is True),
        float(entry.get("critRatio", 1) > 1 or bool(entry.get("willCrit"))),
        float("multihit" in entry),
        float("damage" in entry or "damageCallback" in entry or "ohko" in entry),
        float(entry.get("target") in _SELF_TARGETS),
        float("charge" in flags),
        float("recharge" in flags),
        *[_chance(entry, effects, "status", statuses) for statuses in _STATUSES],
        _chance(entry, effects, "volatileStatus", ("flinch",)),
        float(entry.get("volatileStatus") == "partiallytrapped"),
    )


def _chance(entry: Entry, effects: list[Entry], key: str, wanted: tuple[str, ...]) -> float:
    """How likely one of these follows when the move hits."""
    if entry.get(key) in wanted:
        return 1.0
    return max([effect.get("chance", 100) / 100 for effect in effects if effect.get(key) in wanted], default=0.0)
