"""Which teams a worker's training battles are played with, where the format draws them. Pure.

Drawing two teams costs the host as much as ten decisions, so each plays several battles: against another team, with
other dice. The pool moves on all the time, so that a run sees new teams without end.
"""

from __future__ import annotations

import hashlib
import random

WIDTH = 256  # teams that may be drawn at a time; the host keeps four times as many


class TeamPool:
    """Teams are numbered, and a seed names each. Battle n draws two of WIDTH, from 2 n / uses on.

    Args:
        seed: of the worker.
        uses: battles that a team plays on average.
    """

    def __init__(self, seed: str, uses: int) -> None:
        self._seed = seed
        self._uses = uses

    def seeds(self, battle: int, rng: random.Random) -> tuple[list[int], list[int]]:
        """Of the two teams of a battle, never the same; four 16-bit numbers each."""
        oldest = 2 * battle // self._uses
        first, second = rng.sample(range(oldest, oldest + WIDTH), 2)
        return self._seed_of(first), self._seed_of(second)

    def _seed_of(self, team: int) -> list[int]:
        digest = hashlib.blake2b(f"{self._seed}/team/{team}".encode(), digest_size=8).digest()
        return [int.from_bytes(digest[at : at + 2], "little") for at in range(0, 8, 2)]
