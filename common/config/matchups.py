"""Pairings of an evaluation: who plays whom how often, from `simul eval` to its workers. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations, count

import msgspec

from simul.common.config.search import SearchConfig

IDENTITY_BITS = 48  # of a game in a worker's report, below the number of its pairing


class Contestant(msgspec.Struct, frozen=True):
    """A policy that the server offers, or a scripted bot; `label` is its name in results.

    `search`: with which the policy plays; `points_of_value`: see `Config`; where they are not the configuration's.
    """

    label: str
    policy: str = ""
    bot: str = ""
    search: SearchConfig | None = None
    points_of_value: float | None = None


class Pairing(msgspec.Struct, frozen=True):
    """`battles` of two contestants, numbered from `start`: `first` sits at one seat, `second` at all others.

    `first` takes seat 0, 1, ..., seats - 1 in turn, and begins again. With two seats: p1 in even battles, else p2.

    `mirrored`: battles in which `first` takes every seat once have the same seeds.
    """

    first: Contestant
    second: Contestant
    battles: int
    start: int = 0
    mirrored: bool = True
    seats: int = 2

    def first_seat(self, battle: int) -> int:
        """Where `first` sits in the pairing's battle number `battle`, counted from 0 here."""
        return (self.start + battle) % self.seats

    def seated(self, battle: int) -> tuple[Contestant, ...]:
        """Who plays each seat."""
        first_seat = self.first_seat(battle)
        return tuple(self.first if seat == first_seat else self.second for seat in range(self.seats))

    def mirror(self, battle: int) -> int | None:
        """Number of the group of battles that share this one's seeds; None where every battle has its own."""
        return (self.start + battle) // self.seats if self.mirrored else None


def distinct_labels(names: Sequence[str]) -> list[str]:
    """`names`, where one that comes again has its number behind it: `random`, `random#2`."""
    labels: list[str] = []
    for name in names:
        numbered = (f"{name}#{number}" for number in count(2))
        labels.append(next(label for label in chain([name], numbered) if label not in labels))
    return labels


def round_robin(
    contestants: Sequence[Contestant], battles: int, *, mirrored: bool = True, seats: int = 2
) -> list[Pairing]:
    """Every contestant against every other one."""
    return [Pairing(*two, battles, mirrored=mirrored, seats=seats) for two in combinations(contestants, 2)]


def share_out(pairings: Sequence[Pairing], workers: int) -> list[list[Pairing]]:
    """Every worker's part of every pairing, in whole groups of battles; parts may be empty, the last has the rest."""
    shares: list[list[Pairing]] = [[] for _ in range(workers)]
    for pairing in pairings:
        start, left, seats = pairing.start, pairing.battles, pairing.seats
        groups = -(-left // seats)
        for index, share in enumerate(shares):
            battles = min(seats * (groups // workers + (index < groups % workers)), left)
            share.append(msgspec.structs.replace(pairing, battles=battles, start=start))
            start, left = start + battles, left - battles
    return shares


def only_bots(pairings: Sequence[Pairing]) -> bool:
    """True if there are pairings and all contestants are scripted, so that no server is needed."""
    return bool(pairings) and not any(pairing.first.policy or pairing.second.policy for pairing in pairings)


def searches_of(pairings: Sequence[Pairing]) -> dict[str, SearchConfig]:
    """Settings of the policies that have their own, by policy."""
    return {each.policy: each.search for each in _contestants(pairings) if each.search is not None}


def points_of_values(pairings: Sequence[Pairing]) -> dict[str, float]:
    """Of the policies that have their own, by policy."""
    own = ((each.policy, each.points_of_value) for each in _contestants(pairings))
    return {policy: points for policy, points in own if points is not None}


def _contestants(pairings: Sequence[Pairing]) -> list[Contestant]:
    return [each for pairing in pairings for each in (pairing.first, pairing.second)]


def result_key(pairing: int, first_seat: int) -> str:
    """Key under which a worker counts the results of `first` in pairing number `pairing`."""
    return f"{pairing}/p{first_seat + 1}"


def encode_pairings(pairings: Sequence[Pairing]) -> str:
    """JSON for a worker's command line."""
    return msgspec.json.encode(pairings).decode()


def decode_pairings(text: str) -> list[Pairing]:
    """The pairings that `encode_pairings` encoded."""
    return msgspec.json.decode(text, type=list[Pairing])
