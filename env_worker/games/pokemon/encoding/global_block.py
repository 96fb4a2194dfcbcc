"""The global block of singles: the turn, the request, weather and field, both sides, both active Pokemon.

The preview's part stays 0. Parts that are mostly 0 have a ready-made constant.
"""

from __future__ import annotations

import struct
from typing import Any

from poke_env.battle.pokemon import Pokemon

from simul.env_worker.games.pokemon.battle_view.corrections import Corrections
from simul.env_worker.games.pokemon.battle_view.seat_battle import SeatBattle
from simul.env_worker.games.pokemon.encoding.actions import GIMMICKS
from simul.env_worker.games.pokemon.encoding.features import (
    NO_ACTIVE,
    NO_FIELD,
    NO_SIDE,
    NO_WEATHER,
    active_numbers,
    gimmicks_spent,
    is_plain,
    plain_active_numbers,
)
from simul.env_worker.games.pokemon.encoding.field_state import FieldState
from simul.env_worker.games.pokemon.host.tally import Standing
from simul.env_worker.games.pokemon.tables import layout

_HEAD, _TOTALS = struct.Struct("<9e"), struct.Struct("<3e")
_FIELD = struct.Struct(f"<{len(NO_WEATHER) + len(NO_FIELD)}e")
_SIDE = struct.Struct(f"<{len(NO_SIDE)}e")
_ACTIVE = struct.Struct(f"<{len(NO_ACTIVE)}e")
_PLAIN_ACTIVE = struct.Struct(f"<e{_ACTIVE.size - 6 * 2}x5e")  # zeros where stages and volatiles stand
_BLANK_FIELD, _BLANK_SIDE, _BLANK_ACTIVE = bytes(_FIELD.size), bytes(_SIDE.size), bytes(_ACTIVE.size)
_BYTES = _HEAD.size + _FIELD.size + 2 * (_SIDE.size + _TOTALS.size + _ACTIVE.size)
_MEGA, _Z_MOVE, _DYNAMAX, _TERA = (key for key, _ in GIMMICKS)
_NOTHING: dict[str, Any] = {}
assert _BYTES == 2 * layout.PREVIEW_START


def write_global(
    buffer: bytearray,
    battle: SeatBattle,
    request: dict[str, Any],
    field_state: FieldState,
    standing: Standing,
    reviving: bool,
) -> None:
    """`standing`: as `SeatEncoder.standing`; `reviving`: the switch that is asked for brings back a fainted one."""
    asked = request["active"][0] if "active" in request else _NOTHING
    turn = battle._turn / 100
    head = _HEAD.pack(
        turn if turn < 1.0 else 1.0,
        "forceSwitch" in request,
        reviving,
        "trapped" in asked,
        "maybeTrapped" in asked,
        _MEGA in asked,
        _Z_MOVE in asked,
        _DYNAMAX in asked,
        _TERA in asked,
    )
    field, own_side, foe_side = _BLANK_FIELD, _BLANK_SIDE, _BLANK_SIDE
    if field_state.weather is not NO_WEATHER or field_state.field is not NO_FIELD:
        field = _FIELD.pack(*field_state.weather, *field_state.field)
    if field_state.own_side is not NO_SIDE:
        own_side = _SIDE.pack(*field_state.own_side)
    if field_state.foe_side is not NO_SIDE:
        foe_side = _SIDE.pack(*field_state.foe_side)
    own_alive, foe_alive, own_hp, foe_hp = standing
    own_spent, foe_spent = gimmicks_spent(battle)
    own_totals = _TOTALS.pack(own_alive / 6, own_hp / 6, own_spent)
    foe_totals = _TOTALS.pack(foe_alive / 6, foe_hp / 6, foe_spent)
    own, foe = _active(field_state.own, battle.corrections), _active(field_state.foe, battle.corrections)
    buffer[:_BYTES] = b"".join((head, field, own_side, own_totals, foe_side, foe_totals, own, foe))


def _active(mon: Pokemon | None, corrections: Corrections) -> bytes:
    if mon is None:
        return _BLANK_ACTIVE
    if is_plain(mon):
        return _PLAIN_ACTIVE.pack(*plain_active_numbers(mon, corrections))
    return _ACTIVE.pack(*active_numbers(mon, corrections))
