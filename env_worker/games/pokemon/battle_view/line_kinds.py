"""Which lines of the protocol mean what to a seat."""

from __future__ import annotations

from poke_env.battle.battle import Battle

# Routed by the source itself, or without any state in them (t: has the clock, win and tie come from the host).
SKIPPED = frozenset(Battle.MESSAGES_TO_IGNORE) | {
    "bigerror", "error", "gen", "inactive", "message", "-message", "player", "raw", "request", "rule", "showteam",
    "start", "t:", "tie", "tier", "title", "uhtmlchange", "win",
}  # fmt: skip
# Lines that change nobody but whom they name and who is on the field.
LOCAL = frozenset({
    "-ability", "-activate", "-boost", "-clearallboost", "-clearboost", "-clearnegativeboost", "-clearpositiveboost",
    "-curestatus", "-damage", "-end", "-endability", "-enditem", "-fieldend", "-fieldstart", "-heal", "-immune",
    "-mustrecharge", "-prepare", "-setboost", "-sethp", "-sideend", "-sidestart", "-singlemove", "-singleturn",
    "-start", "-status", "-terastallize", "-unboost", "-weather", "cant", "drag", "faint", "move", "switch",
    "teamsize", "turn",
})  # fmt: skip
# What poke-env raises on protocol it does not understand; the line is skipped and counted.
PARSE_FAILURES = (AssertionError, AttributeError, IndexError, KeyError, NotImplementedError, TypeError, ValueError)
