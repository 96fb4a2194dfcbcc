"""poke-env's own `Battle` of one seat, fed with that seat's lines: what poke-env's scripted players and users read.

It is not corrected, because published figures against these players were made with it. What it gets wrong changes
almost no choice of theirs (benchmarks/RESULTS.md).
"""

from __future__ import annotations

import logging
from collections import deque

from poke_env.battle.abstract_battle import AbstractBattle
from poke_env.battle.battle import Battle
from poke_env.battle.double_battle import DoubleBattle
from poke_env.player import Player

# poke-env's Player reads the first itself; the others name accounts, which would change the seat's role.
ROOM_LINES = Player.MESSAGES_TO_IGNORE | {"bigerror", "error", "request", "showteam", "tie", "win"} | {"player", "raw"}

logging.getLogger("poke-env").setLevel(logging.ERROR)  # it warns of every unknown effect, in the hot path


class StockReader(AbstractBattle):
    """One seat's battle, whatever poke-env's class for it.

    Attributes:
        parse_errors: event name -> number of lines that poke-env could not parse; they are skipped.
    """

    def __init__(self, role: str, gen: int, tag: str = "battle") -> None:
        super().__init__(tag, role, None, gen=gen)
        self._player_role = role
        self._replay_data: deque[list[str]] = deque(maxlen=0)
        self.parse_errors: dict[str, int] = {}

    def feed(self, lines: str, *, strict: bool = False) -> None:
        """Read the seat's protocol lines. `strict`: raises what poke-env raises."""
        for line in lines.split("\n"):
            event = line.split("|")
            if len(event) < 2 or (kind := event[1]) in ROOM_LINES:
                continue
            try:
                self.parse_message(event)
            except Exception:  # poke-env may raise anything
                if strict:
                    raise
                self.parse_errors[kind] = self.parse_errors.get(kind, 0) + 1


class StockBattle(StockReader, Battle):
    """One seat's battle of singles."""


class StockDoubleBattle(StockReader, DoubleBattle):
    """One seat's battle of doubles."""


def stock_battle(role: str, gen: int, *, doubles: bool, tag: str = "battle") -> StockReader:
    """A battle that has not begun; `role`: p1 or p2."""
    return (StockDoubleBattle if doubles else StockBattle)(role, gen, tag)
