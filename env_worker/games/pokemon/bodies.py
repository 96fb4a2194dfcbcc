"""The first part of a Pokemon block: what it is, and in what state. Packed only when it may have changed."""

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
# A body: what follows from the profile (ids), the state, what follows from the profile (stats, moves), pp.
_IDS, _STATE, _STATS, _PP = struct.Struct("<10e"), struct.Struct("<16e"), struct.Struct("<26e"), struct.Struct("<4e")
_STATE_AT = _IDS.size
_STATS_AT = _STATE_AT + _STATE.size
_PP_AT = _STATS_AT + _STATS.size
assert _PP_AT + _PP.size == BODY_WIDTH * HALF
_PAD = (0, 0, 0, 0)
_UNUSED = (0.0, 0.0, 0.0, 0.0)
MOVE_NUMBERS = 5  # power, accuracy, priority, physical, special
_NO_NUMBERS = (0.0,) * MOVE_NUMBERS
FNT = Status.FNT


class Card:
    """What the encoder remembers of one Pokemon between decisions."""

    __slots__ = ("fresh", "ids", "key", "mon", "profile", "revealed", "speed", "stats", "when")

    def __init__(self) -> None:
        self.mon: Pokemon | None = None  # whose card it is
        self.when = 0  # `SeatView.changed` when the body was packed
        self.key: tuple[Any, ...] = ()  # what the profile was made from
        self.profile = Profile(Body((), (), 0, (), "", ""), ())
        self.ids = b""  # the block's ids
        self.stats = b""  # scaled, and the numbers of its moves
        self.speed = 0.0
        self.revealed = False
        self.fresh = True  # the body was packed at this decision

    def renew(self, mon: Pokemon, profile: Profile, item: str | None, moves: list[int], tera: int) -> None:
        """Another profile: ids and stats follow. `moves` are rows, at most four; `tera` a type id."""
        self.profile = profile
        body = profile.body
        rows, types = vocabulary(), body.types
        self.ids = _IDS.pack(
            rows.species.get(mon._species, 0),
            rows.ability.get(body.ability, 0),
            item_row(item),
            *moves,
            *_PAD[len(moves) :],
            types[0],
            types[1] if len(types) > 1 else 0,
            tera,
        )
        self.stats = _STATS.pack(*[min(stat / 500, 1.0) for stat in body.stats], *_move_numbers(profile))

    def pack(
        self,
        buffer: bytearray,
        start: int,
        gen: int,
        mon: Pokemon,
        counters: Counters,
        pp: tuple[float, ...],
    ) -> None:
        """Write the body at `start` (numbers). `pp`: of its known moves."""
        body = self.profile.body
        self.speed = base_speed(gen, body, mon)
        self.fresh = True
        hp = mon._current_hp
        at = start * HALF
        buffer[at : at + _STATE_AT] = self.ids
        _STATE.pack_into(
            buffer,
            at + _STATE_AT,
            1.0,
            hp / mon._max_hp if hp else 0.0,
            mon._status is FNT,
            bool(mon._active),
            self.revealed,
            body.terastallized,
            *status_numbers(mon),
            *counters.ailment_numbers(mon),
            mon._level / 100,
        )
        buffer[at + _STATS_AT : at + _PP_AT] = self.stats
        _PP.pack_into(buffer, at + _PP_AT, *pp, *_UNUSED[len(pp) :])


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
