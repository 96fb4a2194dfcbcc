"""The first part of a Pokemon block: what it is, and in what state. Packed only when something in it has changed."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

from poke_env.battle.pokemon import Pokemon
from poke_env.battle.status import Status

from env_worker.games.pokemon import layout
from env_worker.games.pokemon.combatants import Body, Profile
from env_worker.games.pokemon.counters import Counters, move_key
from env_worker.games.pokemon.features import status_numbers
from env_worker.games.pokemon.profiles import item_row
from env_worker.games.pokemon.scene import base_speed
from env_worker.games.pokemon.vocabulary import vocabulary

HALF = 2  # bytes of a float16
PAIR_WIDTH = 5  # deals, deals_effectiveness, takes, takes_effectiveness, moves_first
BODY_WIDTH = layout.POKEMON_WIDTH - PAIR_WIDTH
_BODY = struct.Struct(f"<{BODY_WIDTH}e")
_PAD = (0, 0, 0, 0)
_UNUSED = (0.0, 0.0, 0.0, 0.0)
MOVE_NUMBERS = 5  # power, accuracy, priority, physical, special
_NO_NUMBERS = (0.0,) * MOVE_NUMBERS
FNT = Status.FNT


class Card:
    """What the encoder remembers of one Pokemon between decisions."""

    __slots__ = ("fresh", "ids", "key", "profile", "revealed", "seen", "speed", "stats")

    def __init__(self) -> None:
        self.key: tuple[Any, ...] = ()  # what the profile was made from
        self.seen: tuple[Any, ...] = ()  # what the body was packed from
        self.profile = Profile(Body((), (), 0, (), "", ""), ())
        self.ids: tuple[int, ...] = ()  # the block's ids
        self.stats: tuple[float, ...] = ()  # scaled, and the numbers of its moves
        self.speed = 0.0
        self.revealed = False
        self.fresh = True  # the body was packed at this decision

    def renew(self, mon: Pokemon, profile: Profile, item: str | None, moves: list[int], tera: int) -> None:
        """Another profile: ids and stats follow. `moves` are rows, at most four; `tera` a type id."""
        self.profile = profile
        body = profile.body
        rows, types = vocabulary(), body.types
        self.ids = (
            rows.species.get(mon._species, 0),
            rows.ability.get(body.ability, 0),
            item_row(item),
            *moves,
            *_PAD[len(moves) :],
            types[0],
            types[1] if len(types) > 1 else 0,
            tera,
        )
        self.stats = (*[min(stat / 500, 1.0) for stat in body.stats], *_move_numbers(profile))

    def pack(
        self,
        buffer: bytearray,
        start: int,
        gen: int,
        mon: Pokemon,
        state: tuple[float, ...],
        pp: tuple[float, ...],
        revealed: bool,
    ) -> None:
        """Write the body at `start` (numbers). `state`: `Counters.ailment_numbers`; `pp`: of its known moves."""
        body = self.profile.body
        self.speed = base_speed(gen, body, mon)
        self.fresh = True
        hp = mon._current_hp
        _BODY.pack_into(
            buffer,
            start * HALF,
            *self.ids,
            1.0,
            hp / mon._max_hp if hp else 0.0,
            mon._status is FNT,
            bool(mon._active),
            revealed,
            body.terastallized,
            *status_numbers(mon),
            *state,
            mon._level / 100,
            *self.stats,
            *pp,
            *_UNUSED[len(pp) :],
        )  # fmt: skip


def own_pp(counters: Counters, mon: Pokemon, moves: Iterable[str]) -> tuple[float, ...]:
    """`fields.POKEMON moves_pp`, by the slots of a request entry; a move that nobody has read is unused."""
    known = mon.moves
    found = [known.get(move_key(name)) for name in moves]
    return tuple([1.0 if move is None else counters.pp_left(move) for move in found[: layout.MOVE_SLOTS]])


def foe_pp(counters: Counters, mon: Pokemon) -> tuple[float, ...]:
    """`fields.POKEMON moves_pp` of the moves it has shown."""
    return tuple([counters.pp_left(move) for move in list(mon.moves.values())[: layout.MOVE_SLOTS]])


def _move_numbers(profile: Profile) -> list[float]:
    """`fields.POKEMON moves_known`: the first of each move's static numbers, 0 where none is known."""
    numbers: list[float] = []
    for move in profile.moves[: layout.MOVE_SLOTS]:
        numbers += _NO_NUMBERS if move is None else move.static[:MOVE_NUMBERS]
    return numbers + [0.0] * (layout.MOVE_SLOTS * MOVE_NUMBERS - len(numbers))
