"""The first part of a Pokemon block: what it is, and in what state. Packed only when it may have changed."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from poke_env.battle.pokemon import Pokemon
from poke_env.battle.status import Status

from simul.env_worker.games.pokemon.battle_view.counters import Counters, move_key
from simul.env_worker.games.pokemon.damage.types import Body
from simul.env_worker.games.pokemon.encoding.expected_damage import (
    DamageProfile,
    Defence,
    MoveOffence,
    Offence,
    defence_of,
    offence_of,
)
from simul.env_worker.games.pokemon.encoding.features import status_numbers
from simul.env_worker.games.pokemon.encoding.field_state import base_speed
from simul.env_worker.games.pokemon.encoding.profiles import item_row, move_row, moves_of
from simul.env_worker.games.pokemon.tables import layout
from simul.env_worker.games.pokemon.tables.movedex import MoveInfo, move_info
from simul.env_worker.games.pokemon.tables.vocabulary import vocabulary

HALF = 2  # bytes of a float16
PAIR_WIDTH = 5  # deals, deals_effectiveness, takes, takes_effectiveness, moves_first
BODY_WIDTH = layout.POKEMON_WIDTH - PAIR_WIDTH
MOVE_NUMBERS = 5  # power, accuracy, priority, physical, special
# A body: ids (kind, moves, types), the state, stats, numbers of the known moves, pp.
_KIND, _TYPES, _STATE, _STATS = (struct.Struct(f"<{count}e") for count in (3, 3, 16, 6))
_MOVES = _PP = struct.Struct(f"<{layout.MOVE_SLOTS}e")
_MOVE = struct.Struct(f"<{MOVE_NUMBERS}e")
_KNOWN_BYTES = layout.MOVE_SLOTS * _MOVE.size
_TYPES_AT = _KIND.size + _MOVES.size
_STATE_AT = _TYPES_AT + _TYPES.size
_STATS_AT = _STATE_AT + _STATE.size
_KNOWN_AT = _STATS_AT + _STATS.size
_PP_AT = _KNOWN_AT + _KNOWN_BYTES
assert _PP_AT + _PP.size == BODY_WIDTH * HALF
_NO_MOVES = (0,) * layout.MOVE_SLOTS
_UNUSED = (0.0,) * layout.MOVE_SLOTS
_NO_AILMENT = (0.0,) * 9  # status (6), sleep_turns, resting, toxic_stage
_NO_PROFILE = DamageProfile(Body((), (), 0, (), "", ""), ())
FNT, PAR = Status.FNT, Status.PAR


class PokemonBlock:
    """What the encoder remembers of one Pokemon between decisions; `start`: of its block in the buffer, in numbers."""

    __slots__ = (
        "_at",
        "_buffer",
        "_made",
        "_slowed",
        "_unslowed",
        "defence",
        "fresh",
        "key",
        "mon",
        "names",
        "offence",
        "pair_at",
        "profile",
        "revealed",
        "speed",
        "when",
    )  # fmt: skip

    def __init__(self, buffer: bytearray, start: int) -> None:
        self._buffer = buffer
        self._at = start * HALF
        self.pair_at = self._at + BODY_WIDTH * HALF
        self.mon: Pokemon | None = None  # whose block it is
        self.when = 0  # `SeatView.changed` when the body was packed
        self.key: tuple[Any, ...] = ()  # what `profile.body` was made from
        self.names: list[str] | None = None  # of its moves, as the profile was made from them
        self.profile = _NO_PROFILE
        self.offence: Offence
        self.defence: Defence
        self._made: dict[MoveInfo, MoveOffence] = {}
        self._unslowed = self._slowed = self.speed = 0.0  # without and with paralysis, now
        self.revealed = False
        self.fresh = True  # the body was packed since its pair was

    def set_body(self, gen: int, mon: Pokemon, body: Body, item: str | None, tera: int) -> None:
        """Another body: ids, stats and what it is hit in follow. Its moves must be given next. `tera`: a type id."""
        rows, types, at = vocabulary(), body.types, self._at
        kind = (rows.species.get(mon._species, 0), rows.ability.get(body.ability, 0), item_row(item))
        _KIND.pack_into(self._buffer, at, *kind)
        _TYPES.pack_into(self._buffer, at + _TYPES_AT, types[0], types[1] if len(types) > 1 else 0, tera)
        scaled = [stat / 500 if stat < 500 else 1.0 for stat in body.stats]
        _STATS.pack_into(self._buffer, at + _STATS_AT, *scaled)
        self.profile = DamageProfile(body, ())
        self.defence = defence_of(gen, body)
        self._made = {}
        self._unslowed, self._slowed = base_speed(gen, body, False), base_speed(gen, body, True)

    def set_moves(self, gen: int, names: list[str], guess: bool = False) -> None:
        """Other moves, at most four; their ids and numbers follow, and the damage profile, whose `guess` this is."""
        self.names = names
        moves = tuple([move_info(gen, name) for name in names])
        self.profile = DamageProfile(self.profile.body, moves, guess)
        self.offence = offence_of(gen, self.profile, self._made)
        rows = [move_row(name) for name in names]
        _MOVES.pack_into(self._buffer, self._at + _KIND.size, *rows, *_NO_MOVES[len(rows) :])
        known = b"".join([_known_move(move) for move in moves]).ljust(_KNOWN_BYTES, b"\0")
        self._buffer[self._at + _KNOWN_AT : self._at + _PP_AT] = known

    def write_state(self, mon: Pokemon, counters: Counters, pp: Sequence[float]) -> None:
        """Write its state. `pp`: of its known moves."""
        buffer, at, status, hp = self._buffer, self._at, mon._status, mon._current_hp
        self.speed = self._slowed if status is PAR else self._unslowed
        self.fresh = True
        _STATE.pack_into(
            buffer,
            at + _STATE_AT,
            1.0,
            hp / mon._max_hp if hp else 0.0,
            status is FNT,
            bool(mon._active),
            self.revealed,
            self.profile.body.terastallized,
            *(_NO_AILMENT if status is None else (*status_numbers(mon), *counters.ailment_numbers(mon))),
            mon._level / 100,
        )
        _PP.pack_into(buffer, at + _PP_AT, *pp, *_UNUSED[len(pp) :])


def own_pp(counters: Counters, mon: Pokemon, moves: Iterable[str]) -> list[float]:
    """`layout.POKEMON moves_pp`, by the slots of a request entry."""
    known = moves_of(mon)
    return counters.pp_left([known.get(move_key(name)) for name in moves][: layout.MOVE_SLOTS])


def foe_pp(counters: Counters, mon: Pokemon) -> list[float]:
    """`layout.POKEMON moves_pp` of the moves it has shown."""
    return counters.pp_left(list(moves_of(mon).values())[: layout.MOVE_SLOTS])


@cache
def _known_move(move: MoveInfo | None) -> bytes:
    """`layout.POKEMON moves_known` of one move: the first of its static numbers."""
    return bytes(_MOVE.size) if move is None else _MOVE.pack(*move.static[:MOVE_NUMBERS])
