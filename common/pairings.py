"""Who plays whom how often in an evaluation, from `simul eval` to its workers. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import msgspec


class Contestant(msgspec.Struct, frozen=True):
    """A policy that the server offers, or a scripted bot; `label` is what people call it."""

    label: str
    policy: str = ""
    bot: str = ""


class Pairing(msgspec.Struct, frozen=True):
    """`battles` of two contestants, numbered from `start`: in even ones `first` sits at p1, in odd ones at p2."""

    first: Contestant
    second: Contestant
    battles: int
    start: int = 0

    def first_seat(self, battle: int) -> int:
        """0 or 1, of the pairing's battle number `battle`, counted from 0 here."""
        return (self.start + battle) % 2


def round_robin(contestants: Sequence[Contestant], battles: int) -> list[Pairing]:
    """Everybody against everybody else."""
    return [Pairing(first, second, battles) for first, second in combinations(contestants, 2)]


def share_out(pairings: Sequence[Pairing], workers: int) -> list[list[Pairing]]:
    """Every worker's part of every pairing, some perhaps without a battle; the seats stay even over all of them."""
    shares: list[list[Pairing]] = [[] for _ in range(workers)]
    for pairing in pairings:
        start = pairing.start
        for index, share in enumerate(shares):
            battles = pairing.battles // workers + (index < pairing.battles % workers)
            share.append(Pairing(pairing.first, pairing.second, battles, start))
            start += battles
    return shares


def result_key(pairing: int, first_seat: int) -> str:
    """Under which a worker counts the results of `first` in pairing number `pairing`."""
    return f"{pairing}/p{first_seat + 1}"


def encode_pairings(pairings: Sequence[Pairing]) -> str:
    """For a worker's command line."""
    return msgspec.json.encode(pairings).decode()


def decode_pairings(text: str) -> list[Pairing]:
    """What `encode_pairings` wrote."""
    return msgspec.json.decode(text, type=list[Pairing])
