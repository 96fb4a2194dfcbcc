"""Writes one seat's battle into the layout: float16 [D], fresh at every decision.

A byte buffer lives as long as the battle; blocks are packed into it with `struct` (half floats).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from poke_env.battle.pokemon import Pokemon
from poke_env.battle.status import Status

from simul.env_worker.games.pokemon.battle_view.seat_battle import SeatBattle
from simul.env_worker.games.pokemon.encoding.actions import FIRST_MOVE, Choices
from simul.env_worker.games.pokemon.encoding.blocks import PokemonBlocks
from simul.env_worker.games.pokemon.encoding.damage_block import DamageWriter
from simul.env_worker.games.pokemon.encoding.expected_damage import MoveDamage
from simul.env_worker.games.pokemon.encoding.field_state import FieldState, read_field_state
from simul.env_worker.games.pokemon.encoding.global_block import write_global
from simul.env_worker.games.pokemon.encoding.move_features import (
    NO_MOVE,
    PRESENT_WIDTH,
    DamageScale,
    OwnMove,
    damage_scale,
    offered_move,
    present_numbers,
    static_bytes,
)
from simul.env_worker.games.pokemon.encoding.pokemon_features import HALF
from simul.env_worker.games.pokemon.encoding.set_knowledge import SetBlocks
from simul.env_worker.games.pokemon.tables import layout

_PRESENT = struct.Struct(f"<{PRESENT_WIDTH}e")
_FLOAT16 = np.dtype(np.float16)
_MASK_HIGH_BYTES = slice(layout.MASK_START * HALF + 1, (layout.MASK_START + layout.NUM_ACTIONS) * HALF, HALF)
_HIGH_BYTE_OF = bytes.maketrans(b"\0\1", b"\0\x3c")  # 1 is 0x3c00
_MOVE_BYTES = layout.MOVE_WIDTH * HALF
_NO_DAMAGES = (None,) * layout.MOVE_SLOTS
_NO_MOVES = bytes(layout.MOVE_SLOTS * _MOVE_BYTES)
FNT = Status.FNT


class SeatEncoder:
    """Encodes one seat of one battle.

    Attributes:
        standing: (own alive, foe alive, own hp sum, foe hp sum) at the last encoding; unrevealed foes are
            alive and full. The shaped rewards read it.
    """

    def __init__(self, battle: SeatBattle, gen: int, extras: layout.Extras = layout.PLAIN) -> None:
        self._battle = battle
        self._gen = gen
        self._buffer = bytearray(layout.observation_size(extras) * HALF)
        self._blocks = PokemonBlocks(self._buffer, gen)
        self._damage = DamageWriter(self._buffer, gen, extras.attackers) if extras.attackers else None
        self._sets = SetBlocks(self._buffer, gen, layout.set_start(extras.attackers)) if extras.sets else None
        self.standing = (6.0, 6.0, 6.0, 6.0)

    def encode(self, request: dict[str, Any], choices: Choices) -> NDArray[np.float16]:
        """The observation at `request`; the battle must be in sync with it."""
        battle, blocks = self._battle, self._blocks
        own = list(battle._team.values())[: layout.TEAM_SIZE]
        foes, met = battle.foes()
        own_out, foe_out = self._survey(own, foes[:met])
        blocks.write_own_bodies(battle, own)
        blocks.write_foe_bodies(battle, foes, met)
        if self._sets is not None:
            self._sets.write(foes)
        field_state = read_field_state(
            battle, own[own_out] if own_out >= 0 else None, foes[foe_out] if foe_out >= 0 else None
        )
        blocks.write_pairs(field_state, own, foes, own_out, foe_out)
        if (
            self._damage is not None and "teamPreview" not in request
        ):  # no Pokemon is active at a preview: the block stays 0
            self._damage.write(battle, blocks, own, foes, own_out, foe_out)
        write_global(self._buffer, battle, request, field_state, self.standing, choices.reviving)
        self._write_moves(field_state, request, choices, own_out, foe_out)
        self._buffer[_MASK_HIGH_BYTES] = choices.mask.translate(_HIGH_BYTE_OF)
        return np.frombuffer(bytearray(self._buffer), _FLOAT16)

    def survey(self) -> None:
        """Update `standing` only."""
        battle = self._battle
        foes, met = battle.foes()
        self._survey(list(battle._team.values())[: layout.TEAM_SIZE], foes[:met])

    def _survey(self, own: list[Pokemon], foes: list[Pokemon]) -> tuple[int, int]:
        """Indices of the active ones; `foes`: those that have been out."""
        own_out, own_alive, own_hp = _survey(own)
        foe_out, foe_alive, foe_hp = _survey(foes)
        unseen = max(self._battle.foe_team_size - len(foes) - self._battle.corrections.hidden_faints, 0)
        self.standing = (own_alive, foe_alive + unseen, own_hp, foe_hp + unseen)
        return own_out, foe_out

    def _write_moves(
        self, field_state: FieldState, request: dict[str, Any], choices: Choices, own_out: int, foe_out: int
    ) -> None:
        buffer, offset = self._buffer, layout.MOVE_START * HALF
        if own_out < 0 or "active" not in request:
            buffer[offset : offset + len(_NO_MOVES)] = _NO_MOVES
            return
        own, can_tera = self._own_moves(own_out, foe_out), "canTerastallize" in request["active"][0]
        against = self._damage_scale(field_state)
        for slot, entry in enumerate(choices.move_entries):
            move = own[slot] if slot < len(own) else NO_MOVE
            if entry is not None:
                move = offered_move(self._gen, move, entry)
            block = _NO_MOVES[:_MOVE_BYTES]
            if move[0]:
                numbers = present_numbers(move, entry, against, choices.mask[FIRST_MOVE + slot], can_tera)
                block = static_bytes(self._gen, move[0]) + _PRESENT.pack(*numbers)
            buffer[offset : offset + _MOVE_BYTES] = block
            offset += _MOVE_BYTES

    def _own_moves(self, own_out: int, foe_out: int) -> list[OwnMove]:
        """The active Pokemon's, as they meet the foe that is out."""
        blocks = self._blocks
        damages: Sequence[MoveDamage | None] = (
            blocks.matchups.move_damages(own_out, foe_out) if foe_out >= 0 else _NO_DAMAGES
        )
        return list(zip(self._battle.entries[own_out]["moves"], blocks.own[own_out].profile.moves, damages))

    def _damage_scale(self, field_state: FieldState) -> DamageScale | None:
        """None where either side has no active Pokemon."""
        user, target = self._blocks.own_active, self._blocks.foe_active
        if user is None or target is None or field_state.foe is None:
            return None
        return damage_scale(field_state, user.strength, target.strength, field_state.foe)


def _survey(team: list[Pokemon]) -> tuple[int, float, float]:
    """Of one team: index of the active one (-1: none), number alive, sum of hp fractions."""
    out, alive, total = -1, 0.0, 0.0
    for index, mon in enumerate(team):
        if mon._active and out < 0:
            out = index
        if mon._status is not FNT:
            alive += 1.0
        hp = mon._current_hp
        if hp:
            total += hp / mon._max_hp
    return out, alive, total
