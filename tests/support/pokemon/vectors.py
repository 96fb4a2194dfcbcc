"""Golden vectors: what each seat of real battles was told, and what it must observe at each decision.

tests/golden/pokemon/vectors/ holds two files for each set of battles, made by `make_vectors.py`:

    NAME.jsonl.xz   the head, then one seat a line, as the types below
    NAME.rows.xz    uint16 [N, W], little-endian: the bits of float16 observations, one row a decision in the order of
                    the first file; each row is XORed with the one before

A row holds every part that a layout may have: `base`, damage of three attackers (`damage.3`) and of six (`damage.6`),
`sets`. An observation is the base and the parts that its settings ask for, in this order. Some numbers of the base are
others where the damage or the sets are observed, too: these stand once more in `base.damage` and `base.sets`.
"""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simul.common.runtime.installation import ROOT
from simul.env_worker.games.pokemon.formats.spec import is_doubles
from simul.env_worker.games.pokemon.host.tally import RewardFacts, Tally

FOLDER = ROOT / "tests" / "golden" / "pokemon" / "vectors"
PARTS = ("base", "base.damage", "base.sets", "damage.3", "damage.6", "sets")
DEPENDENT = {  # slices of the base that depend on a setting
    "base.damage": re.compile(r"move\.\d\.knock_out_chance"),
    "base.sets": re.compile(r"own\.\d\.(threat|threat_chance|falls)"),
}
SHOWN = 12  # differences that are named
NAMES = sorted(path.name.removesuffix(".jsonl.xz") for path in FOLDER.glob("*.jsonl.xz"))
DOUBLES = [name for name in NAMES if is_doubles(name)]
SINGLES = [name for name in NAMES if not is_doubles(name)]


class Decision(NamedTuple):
    """mask: a character an action, 1 = legal. action: what was chosen."""

    facts: RewardFacts
    mask: str
    action: int


class Record(NamedTuple):
    """Protocol lines, the request behind them (None: the battle is over), its decisions.

    refused: True = the simulator refused the last choice for something hidden, and asks again.
    final: how the battle ended for the seat; None before.
    """

    lines: str
    request: dict[str, Any] | None
    refused: bool
    decisions: list[Decision]
    final: RewardFacts | None


class Seat(NamedTuple):
    """free_switches: so many in a row are not counted. first: the row of its first decision."""

    battle: int
    seat: int
    free_switches: int
    records: list[Record]
    first: int


class Head(NamedTuple):
    """parts: name -> [start, size] within a row. slices: [name, start, size] within a row, all parts."""

    format: str
    gen: int
    encoder_version: int
    parts: dict[str, list[int]]
    slices: list[list[Any]]


@dataclass
class Vectors:
    """One set of battles; rows: uint16 [N, W]."""

    head: Head
    seats: list[Seat]
    rows: NDArray[np.uint16]

    def columns(self, attackers: int, sets: bool) -> NDArray[np.intp]:
        """The places within a row that make an observation with these settings."""
        parts = {name: np.arange(start, start + size) for name, (start, size) in self.head.parts.items()}
        for name, asked in (("base.damage", attackers > 0), ("base.sets", sets)):
            if asked and name in parts:
                parts["base"][dependent(name, self.head.slices)] = parts[name]
        wanted = ("base", *([f"damage.{attackers}"] if attackers else ()), *(["sets"] if sets else ()))
        return np.concatenate([parts[name] for name in wanted])

    def observations(self, attackers: int, sets: bool) -> NDArray[np.float16]:
        """All of them: float16 [N, D]."""
        return self.rows[:, self.columns(attackers, sets)].view(np.float16)

    def differences(self, row: int, columns: NDArray[np.intp], found: NDArray[np.uint16]) -> str:
        """The slices where an observation (its bits) differs from row `row`; '' where none does."""
        expected = self.rows[row, columns]
        if found.shape != expected.shape:
            return f"{found.size} numbers, {expected.size} in the vectors"
        wrong = np.flatnonzero(expected != found)
        told = [self._difference(columns[i], expected[i], found[i]) for i in wrong[:SHOWN]]
        return "; ".join(told) + (f" and {wrong.size - SHOWN} more" if wrong.size > SHOWN else "")

    def _difference(self, column: np.intp, *bits: np.uint16) -> str:
        name, start, _ = next(part for part in self.head.slices if part[1] <= column < part[1] + part[2])
        expected, found = np.array(bits, np.uint16).view(np.float16)
        return f"{name}[{column - start}] is {found}, {expected} in the vectors"


def dependent(part: str, slices: Iterable[Sequence[Any]]) -> list[int]:
    """Places of the base whose numbers for a setting stand in this part. `slices`: name, start, size, base first."""
    found: dict[str, range] = {}
    for name, start, size in slices:
        if DEPENDENT[part].fullmatch(name):
            found.setdefault(name, range(start, start + size))
    return [place for places in found.values() for place in places]


@cache
def read_vectors(name: str, folder: Path = FOLDER) -> Vectors:
    """One set."""
    head, *seats = lzma.decompress((folder / f"{name}.jsonl.xz").read_bytes()).splitlines()
    width = sum(size for _, size in json.loads(head)["parts"].values())
    bits = np.frombuffer(lzma.decompress((folder / f"{name}.rows.xz").read_bytes()), "<u2").reshape(-1, width)
    return Vectors(Head(**json.loads(head)), list(_seats(seats)), np.bitwise_xor.accumulate(bits, axis=0))


def write_vectors(name: str, vectors: Vectors, folder: Path = FOLDER) -> None:
    """The two files of a set."""
    lines = [vectors.head._asdict(), *(seat[:4] for seat in vectors.seats)]
    text = "\n".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False) for line in lines)
    (folder / f"{name}.jsonl.xz").write_bytes(_packed(text.encode()))
    bits = vectors.rows.copy()
    bits[1:] ^= vectors.rows[:-1]
    (folder / f"{name}.rows.xz").write_bytes(_packed(bits.astype("<u2").tobytes()))


def _packed(data: bytes) -> bytes:
    return lzma.compress(data, preset=9 | lzma.PRESET_EXTREME)


def _seats(lines: list[bytes]) -> Iterator[Seat]:
    first = 0
    for line in lines:
        battle, seat, free_switches, records = json.loads(line)
        read = [
            Record(
                text, request, refused, [Decision(_facts(facts), *rest) for facts, *rest in decisions],
                final and _facts(final),
            )
            for text, request, refused, decisions, final in records
        ]  # fmt: skip
        yield Seat(battle, seat, free_switches, read, first)
        first += sum(len(record.decisions) for record in read)


def _facts(raw: list[Any]) -> RewardFacts:
    standing, turn, tally = raw
    return RewardFacts(tuple(standing), turn, Tally._make(tally))
