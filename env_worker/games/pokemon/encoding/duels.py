"""How every own Pokemon stands against every foe: worked out once for each two, and again when one is known better."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from simul.env_worker.games.pokemon.encoding.field_state import Strength
from simul.env_worker.games.pokemon.encoding.layout import TEAM_SIZE
from simul.env_worker.games.pokemon.encoding.matchup import Attack, Blow, blow, exchange_numbers, strongest
from simul.env_worker.games.pokemon.encoding.pokemon_features import HALF, PAIR_WIDTH, Card

OWN, FOE = 0, 1
ORDERS = {order: struct.pack("<e", order) for order in (-1.0, 0.0, 1.0)}  # `moves_first`
_EXCHANGE = struct.Struct(f"<{PAIR_WIDTH - 1}e")
_HALF_EXCHANGE = HALF * (PAIR_WIDTH - 1) // 2

# (strength of the own one, of the foe), then a pair without `moves_first`: as of the own one, and as of the foe.
Exchange = tuple[tuple[Strength, Strength], bytes, bytes]


class Duels:
    """Of one battle. A place [i][j] is that of own.i and foe.j; None: to be worked out."""

    def __init__(self, own: Sequence[Card], foes: Sequence[Card]) -> None:
        self._own, self._foes = own, foes
        self._deals: list[list[Attack | None]] = _table()
        self._takes: list[list[Attack | None]] = _table()
        self._blows: list[list[list[Blow] | None]] = _table()
        self._exchanges: list[list[Exchange | None]] = _table()

    def forget_own(self, i: int) -> None:
        """own.i has another profile."""
        for table in (self._deals, self._takes, self._blows, self._exchanges):
            table[i] = _row()

    def forget_foe(self, j: int, other_body: bool) -> None:
        """foe.j has another profile; what is done to it changes only with its body."""
        for i in range(TEAM_SIZE):
            self._takes[i][j] = self._exchanges[i][j] = None
            if other_body:
                self._deals[i][j] = self._blows[i][j] = None

    def blows(self, i: int, j: int) -> list[Blow]:
        """What each of own.i's moves does to foe.j, by slot."""
        found = self._blows[i][j]
        if found is None:
            target = self._foes[j].armour
            found = self._blows[i][j] = [blow(weapon, target) for weapon in self._own[i].arms.slots]
        return found

    def exchange(self, i: int, j: int, strength: Strength, foe_strength: Strength) -> Exchange:
        """How own.i and foe.j stand against each other; remembered, because the same two meet again."""
        terms = (strength, foe_strength)
        known = self._exchanges[i][j]
        if known is None or known[0] != terms:
            known = self._exchanges[i][j] = self._worked_out(i, j, terms)
        return known

    def _worked_out(self, i: int, j: int, terms: tuple[Strength, Strength]) -> Exchange:
        deals, takes = self._deals[i][j], self._takes[i][j]
        own, foe = self._own[i], self._foes[j]
        if deals is None:
            deals = self._deals[i][j] = strongest(own.arms.all, foe.armour)
        if takes is None:
            takes = self._takes[i][j] = strongest(foe.arms.all, own.armour)
        ours = _EXCHANGE.pack(*exchange_numbers(deals, takes, *terms))
        return terms, ours, ours[_HALF_EXCHANGE:] + ours[:_HALF_EXCHANGE]


def _table() -> Any:
    return [_row() for _ in range(TEAM_SIZE)]


def _row() -> list[Any]:
    return [None] * TEAM_SIZE
