"""Teambuilders as users write them."""

from __future__ import annotations

from poke_env.teambuilder import Teambuilder

from simul.common.runtime.installation import ROOT

TEXTS = (ROOT / "tests" / "golden" / "pokemon" / "teams" / "gen9ou.txt").read_text().split("=== [gen9ou]")[1:]
FIRST, SECOND = (text.partition("===")[2].strip() for text in TEXTS)


class Alternating(Teambuilder):
    """Packed, then as Showdown exports it."""

    def __init__(self) -> None:
        self._yielded = 0

    def yield_team(self) -> str:
        self._yielded += 1
        return self.join_team(self.parse_showdown_team(FIRST)) if self._yielded % 2 else SECOND


class Illegal(Teambuilder):
    def yield_team(self) -> str:
        return FIRST.replace("Great Tusk", "Mewtwo", 1)
