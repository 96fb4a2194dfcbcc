"""What the parts of the audit share: a row as its seat calls things, and what a slice of it must hold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from poke_env.data import GenData

from simul.common.protocol.specs import Slice
from simul.env_worker.games.pokemon.formats.spec import generation, is_doubles
from simul.env_worker.games.pokemon.tables import doubles_layout as doubles
from simul.env_worker.games.pokemon.tables import layout
from simul.env_worker.games.pokemon.tables.movedex import MoveInfo, move_info
from simul.env_worker.games.pokemon.tables.vocabulary import vocabulary
from tests.support.pokemon.audit.battles import AuditedRow, Truth, extras_of


class Span(NamedTuple):
    """Bounds of a number that is known nearly."""

    low: float
    high: float


# What a number must be: this; one of these; within these; anything.
Expected = float | frozenset[float] | Span | None
Numbers = Sequence[Expected]
Mon = dict[str, Any]
Side = dict[str, Any]


class Claim(NamedTuple):
    """What one slice must hold. `excused`: the approximation that allows another value, "" for none."""

    name: str
    numbers: Numbers
    excused: str = ""


def move_row(name: str) -> float:
    """Of a move as the simulator spells it in a list of moves (`return102`)."""
    rows = vocabulary().move
    return rows.get(name) or rows.get(name.removesuffix("null").rstrip("0123456789"), 0)


class View(NamedTuple):
    """One row, with the sides as its seat calls them."""

    gen: int
    doubles: bool
    row: AuditedRow
    truth: Truth
    own: Side
    foe: Side

    @property
    def at_preview(self) -> bool:
        return "legal" not in self.truth

    def observed(self, name: str) -> list[float]:
        """What a slice holds: for claims about what is shown."""
        place = places(self.row.job.format)[name]
        return self.row.observation[place.start : place.start + place.size].tolist()

    @property
    def has_sets(self) -> bool:
        return not self.doubles and extras_of(self.row.job.format).sets

    def foe_in_block(self, block: int) -> Mon | None:
        """Who stands in `foe.{block}`; None where team preview has shown it only, or one looks like another."""
        if block >= len(self.foe["appeared"]):
            return None
        place = self.foe["appeared"][block]
        mon: Mon = self.foe["pokemon"][place]
        return None if mon["disguised"] else real(self.foe, place)

    def has_more(self, whose: str, block: int) -> bool:
        """Whether the row lacks what damage depends on: a third or changed type, Glaive Rush."""
        mon = self.foe_in_block(block) if whose == "foe" else self.own["pokemon"][block]
        if mon is None:
            return block < len(self.foe["appeared"])  # what it looks like may have been changed, too
        born = GenData.from_gen(self.gen).pokedex[mon["base_species"]]["types"]
        return mon["types"] != born or "glaiverush" in mon["volatiles"]


@cache
def places(battle_format: str) -> dict[str, Slice]:
    """The slices of a format's rows by name."""
    parts = doubles.slices() if is_doubles(battle_format) else layout.slices(extras_of(battle_format))
    return {part.name: part for part in parts}


def view_of(row: AuditedRow) -> View:
    sides = row.truth["sides"]
    battle_format = row.job.format
    return View(
        generation(battle_format), is_doubles(battle_format), row, row.truth, sides[row.seat], sides[1 - row.seat]
    )


def real(side: Side, place: int) -> Mon:
    """Who stands where a foe seems to stand: itself, or the Pokemon that looks like it."""
    impostors = [mon for mon in side["pokemon"] if mon["active"] and mon["illusion"] == place]
    return impostors[0] if impostors else side["pokemon"][place]


def numbers_of_moves(moves: Sequence[MoveInfo | None]) -> list[float]:
    """`moves_known`: the first five static numbers of each of four moves."""
    known = [number for info in moves for number in (info.static[:5] if info else [0.0] * 5)]
    return [*known, *[0.0] * (20 - len(known))]


def infos_of(gen: int, names: Sequence[str]) -> list[MoveInfo | None]:
    """Of moves as the simulator spells them."""
    return [move_info(gen, name) for name in names]
