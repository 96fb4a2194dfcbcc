"""What the agent hands to poke-env: a choice, a team."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from poke_env.player import BattleOrder
from poke_env.teambuilder import Teambuilder


@dataclass
class SlotOrder(BattleOrder):
    """A choice by slot of the request, in the server's words."""

    words: str

    @property
    def message(self) -> str:
        return self.words


class PackedTeams(Teambuilder):
    """Hands out one of several packed teams."""

    def __init__(self, packed: Sequence[str]) -> None:
        self._packed = packed

    def yield_team(self) -> str:
        return random.choice(self._packed)
