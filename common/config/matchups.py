"""Pairings of an evaluation: who plays whom how often, from `simul eval` to its workers. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import msgspec


class Contestant(msgspec.Struct, frozen=True):
    """A policy that the server offers, or a scripted bot; `label` is its name in results."""

    label: str
    policy: str = ""
    bot: str = ""


class Pairing(msgspec.Struct, frozen=True):
    """`battles` of two contestants, numbered from `start`: in even ones `first` sits at p1, in odd ones at p2.

    `mirrored`: battles 2n and 2n + 1 have the same seeds, and each contestant plays both sides.
    """

    first: Contestant
    second: Contestant
    battles: int
    start: int = 0
    mirrored: bool = True

    def first_seat(self, battle: int) -> int:
        """0 or 1, of the pairing's battle number `battle`, counted from 0 here."""
        return (self.start + battle) % 2

    def mirror(self, battle: int) -> int | None:
        """Number of the pair of battles that share this one's seeds; None where every battle has its own."""
        return (self.start + battle) // 2 if self.mirrored else None


def round_robin(contestants: Sequence[Contestant], battles: int, *, mirrored: bool = True) -> list[Pairing]:
    """Every contestant against every other one."""
    return [Pairing(first, second, battles, mirrored=mirrored) for first, second in combinations(contestants, 2)]


def share_out(pairings: Sequence[Pairing], workers: int) -> list[list[Pairing]]:
    """Every worker's part of every pairing, in pairs of battles; parts may be empty, the last has the odd battle."""
    shares: list[list[Pairing]] = [[] for _ in range(workers)]
    for pairing in pairings:
        start, left, twos = pairing.start, pairing.battles, (pairing.battles + 1) // 2
        for index, share in enumerate(shares):
            battles = min(2 * (twos // workers + (index < twos % workers)), left)
            share.append(msgspec.structs.replace(pairing, battles=battles, start=start))
            start, left = start + battles, left - battles
    return shares


def only_bots(pairings: Sequence[Pairing]) -> bool:
    """True if there are pairings and all contestants are scripted, so that no server is needed."""
    return bool(pairings) and not any(pairing.first.policy or pairing.second.policy for pairing in pairings)


def result_key(pairing: int, first_seat: int) -> str:
    """Key under which a worker counts the results of `first` in pairing number `pairing`."""
    return f"{pairing}/p{first_seat + 1}"


def encode_pairings(pairings: Sequence[Pairing]) -> str:
    """JSON for a worker's command line."""
    return msgspec.json.encode(pairings).decode()


def decode_pairings(text: str) -> list[Pairing]:
    """The pairings that `encode_pairings` encoded."""
    return msgspec.json.decode(text, type=list[Pairing])
