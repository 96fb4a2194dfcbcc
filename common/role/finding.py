"""What the checks of `simul doctor` find; those of a game print theirs as JSON."""

from __future__ import annotations

import msgspec


class Finding(msgspec.Struct, frozen=True):
    """One check: its name, what it found, and the command that fixes it ("": nothing is wrong)."""

    name: str
    found: str
    fix: str = ""
