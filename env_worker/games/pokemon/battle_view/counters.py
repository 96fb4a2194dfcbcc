"""Counters that poke-env lacks or keeps differently from the game: turns asleep, stage of bad poison, pp.

They read each protocol line after the battle has. The host's side: `node/tracker/counters.mjs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from poke_env.battle.abstract_battle import AbstractBattle
from poke_env.battle.move import Move
from poke_env.battle.pokemon import Pokemon
from poke_env.battle.status import Status

LONGEST_SLEEP = 7  # turns, in gen 1
LAST_STAGE = 15  # of bad poison: it takes stage / 16 of the hp
SLP, TOX = Status.SLP, Status.TOX
SLEEP_STARTS_ANEW = 5  # the generation in which switching in resets the turns of sleep
POISON_BEHIND_MOVES = 2  # the last generation in which poison hurts behind each move, not at the end of the turn
NO_AILMENT = (0.0, 0.0, 0.0)


class Ailment:
    """Counters of one Pokemon's present status.

    Attributes:
        asleep: times that it could not move.
        resting: it put itself to sleep by Rest.
        hurt: turns of bad poison since it was poisoned or came in (gens 1 and 2: times it did damage).
    """

    __slots__ = ("asleep", "hurt", "resting")

    def __init__(self) -> None:
        self.asleep = 0
        self.resting = False
        self.hurt = 0


class Counters:
    """The counters of one battle as one seat knows it."""

    def __init__(self) -> None:
        self._ailments: dict[Pokemon, Ailment] = {}
        self._corrections: dict[Move, int] = {}  # pp that a request gave, minus what poke-env had counted
        self._full_pp: dict[Move, int] = {}

    def ailment_of(self, mon: Pokemon) -> Ailment:
        """The counters of `mon`, created on first use."""
        found = self._ailments.get(mon)
        if found is None:
            found = self._ailments[mon] = Ailment()
        return found

    def ailment_numbers(self, mon: Pokemon) -> tuple[float, ...]:
        """`layout.POKEMON`: sleep_turns, resting, toxic_stage."""
        status = mon._status
        if status is not SLP and status is not TOX:
            return NO_AILMENT
        ailment = self.ailment_of(mon)
        if status is SLP:
            return (min(ailment.asleep / LONGEST_SLEEP, 1.0), float(ailment.resting), 0.0)
        return (0.0, 0.0, min(max(ailment.hurt, 0) / LAST_STAGE, 1.0))

    def read_pp(self, moves: Mapping[str, Move], offered: list[dict[str, Any]]) -> None:
        """Take over the pp that a request gives for an active Pokemon's moves."""
        for entry in offered:
            if "pp" not in entry:  # a locked move
                continue
            move = moves.get(move_key(entry["id"]))
            if move is None:
                continue
            missed = entry["pp"] - move._current_pp
            if missed or move in self._corrections:
                self._corrections[move] = missed

    def set_pp(self, move: Move, pp: int) -> None:
        """A line says how many pp the move has."""
        move._current_pp = pp
        self._corrections.pop(move, None)

    def pp_left(self, moves: Iterable[Move | None]) -> list[float]:
        """Fractions of pp left: counted uses (two under Pressure), corrected by the last request for own moves.

        A move without an object in poke-env (None) is unused.
        """
        known, corrections, fractions = self._full_pp, self._corrections, []
        for move in moves:
            if move is None:
                fractions.append(1.0)
                continue
            full = known.get(move)
            if full is None:
                full = known[move] = full_pp(move._id, move._gen, move._from_transform)
            left = move._current_pp + corrections.get(move, 0)
            fractions.append(1.0 if left >= full else left / full if left > 0 else 0.0)
        return fractions


@cache
def full_pp(move_id: str, gen: int, copied: bool) -> int:
    """Pp of an unused move."""
    return Move(move_id, gen, from_transform=copied).max_pp


@cache
def move_key(name: str) -> str:
    """The key of poke-env's moves, from a move as requests spell it."""
    return Move.retrieve_id(name)


def _cant(battle: AbstractBattle, counters: Counters, event: list[str]) -> None:
    if event[3] == "slp":
        counters.ailment_of(battle.get_pokemon(event[2])).asleep += 1


def _status(battle: AbstractBattle, counters: Counters, event: list[str]) -> None:
    ailment = counters.ailment_of(battle.get_pokemon(event[2]))
    ailment.asleep = ailment.hurt = 0
    if battle._gen > POISON_BEHIND_MOVES and event[4:5] == ["[from] item: Toxic Orb"]:
        ailment.hurt = -1  # the upkeep that follows is not counted
    ailment.resting = len(event) > 4 and event[4] == "[from] move: Rest"


def _damage(battle: AbstractBattle, counters: Counters, event: list[str]) -> None:
    if battle._gen <= POISON_BEHIND_MOVES and len(event) > 4 and event[4] == "[from] psn":
        counters.ailment_of(battle.get_pokemon(event[2])).hurt += 1


def _upkeep(battle: AbstractBattle, counters: Counters, event: list[str]) -> None:
    """The end of a turn counts: no line tells of damage that an ability prevents."""
    if battle._gen <= POISON_BEHIND_MOVES:
        return
    for mon in battle.all_active_pokemons:
        if mon is not None and mon._status is TOX:
            counters.ailment_of(mon).hurt += 1


def _switch(battle: AbstractBattle, counters: Counters, event: list[str]) -> None:
    ailment = counters.ailment_of(battle.get_pokemon(event[2]))
    ailment.hurt = 0
    if battle._gen == SLEEP_STARTS_ANEW:
        ailment.asleep = 0


COUNTED: dict[str, Callable[[AbstractBattle, Counters, list[str]], None]] = {
    "cant": _cant,
    "-status": _status,
    "-damage": _damage,
    "switch": _switch,
    "drag": _switch,
    "upkeep": _upkeep,
}
