"""Drawn openings of evaluated games, and how many of these games differ. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from simul.common.config.automatic import AUTO
from simul.common.config.matchups import IDENTITY_BITS
from simul.common.config.schema import Auto
from simul.env_worker.games.base.turn_game import TurnGame

PLIES = 4  # of `evaluation.openings: auto`
LISTED = 2000  # identities that fit a report beside the other figures: 9 bytes each, 64 KiB in all


def opening_plies(asked: int | Auto, game: TurnGame) -> int:
    """How many random plies begin an evaluated game. `asked`: `evaluation.openings`."""
    if asked != AUTO:
        return asked
    return PLIES if game.deterministic else 0


class Openings:
    """What an evaluation's worker reports of its games: `plies`, and the identities of those that differ.

    Attributes:
        listed: True where games may repeat: they have openings, or are `deterministic`.
    """

    def __init__(self, plies: int, *, deterministic: bool) -> None:
        self.plies = plies
        self.listed = deterministic or plies > 0
        self._games: dict[int, None] = {}  # in the order of the games

    def add(self, pairing: int, game: TurnGame, seed: int, taken: Sequence[Mapping[int, int]]) -> None:
        """A game is over. Two games are the same where the same actions were taken and, with chance, in one seed."""
        if len(self._games) > LISTED:
            return
        facts = (0 if game.deterministic else seed, [sorted(actions.items()) for actions in taken])
        digest = hashlib.blake2b(repr(facts).encode(), digest_size=IDENTITY_BITS // 8).digest()
        self._games[pairing << IDENTITY_BITS | int.from_bytes(digest)] = None

    def figures(self) -> dict[str, Any]:
        """`opening_plies`, and `game_identities`: of the pairing and the game; not of more that differ than LISTED."""
        listed = {"game_identities": list(self._games)} if self.listed and len(self._games) <= LISTED else {}
        return {"opening_plies": self.plies, **listed}
