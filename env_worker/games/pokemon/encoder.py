"""Writes one seat's battle into the layout: float16 [D], fresh at every decision.

A byte buffer lives as long as the battle; blocks are packed into it with `struct` (half floats).
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray
from poke_env.battle.pokemon import Pokemon
from poke_env.battle.status import Status

from env_worker.games.pokemon import layout
from env_worker.games.pokemon.actions import FIRST_MOVE, GIMMICKS, Choices
from env_worker.games.pokemon.blocks import PokemonBlocks
from env_worker.games.pokemon.bodies import HALF
from env_worker.games.pokemon.damage.writer import DamageWriter
from env_worker.games.pokemon.features import active_numbers, gimmicks_spent
from env_worker.games.pokemon.movesheet import (
    PRESENT_WIDTH,
    STATIC_WIDTH,
    OwnMove,
    offered_move,
    present_numbers,
    static_bytes,
)
from env_worker.games.pokemon.scene import Scene, active_factors, read_scene
from env_worker.games.pokemon.seat_battle import SeatBattle
from env_worker.games.pokemon.set_blocks import SetBlocks

_GLOBAL = struct.Struct(f"<{layout.PREVIEW_START}e")  # what only team preview knows stays 0
_PRESENT = struct.Struct(f"<{PRESENT_WIDTH}e")
_MASK = struct.Struct(f"<{layout.NUM_ACTIONS}e")
_MOVE_BYTES, _STATIC_BYTES = layout.MOVE_WIDTH * HALF, STATIC_WIDTH * HALF
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
        scene = read_scene(battle, own[own_out] if own_out >= 0 else None, foes[foe_out] if foe_out >= 0 else None)
        blocks.write_pairs(scene, own, foes, own_out, foe_out)
        if self._damage is not None and "teamPreview" not in request:  # at a preview nobody is out: it stays 0
            self._damage.write(battle, blocks, own, foes, own_out, foe_out)
        self._write_global(request, scene, choices.reviving)
        self._write_moves(scene, request, choices, own_out, foe_out)
        _MASK.pack_into(self._buffer, layout.MASK_START * HALF, *choices.mask)
        return np.frombuffer(bytearray(self._buffer), dtype=np.float16)

    def survey(self) -> None:
        """Bring `standing` up to date, and nothing else."""
        battle = self._battle
        foes, met = battle.foes()
        self._survey(list(battle._team.values())[: layout.TEAM_SIZE], foes[:met])

    def _survey(self, own: list[Pokemon], foes: list[Pokemon]) -> tuple[int, int]:
        """Indices of the active ones; `foes`: those that have been out."""
        own_out, own_alive, own_hp = _survey(own)
        foe_out, foe_alive, foe_hp = _survey(foes)
        unseen = max(self._battle.foe_team_size - len(foes), 0)
        self.standing = (own_alive, foe_alive + unseen, own_hp, foe_hp + unseen)
        return own_out, foe_out

    def _write_global(self, request: dict[str, Any], scene: Scene, reviving: bool) -> None:
        battle = self._battle
        asked = request["active"][0] if "active" in request else {}
        own_alive, foe_alive, own_hp, foe_hp = self.standing
        own_spent, foe_spent = gimmicks_spent(battle)
        _GLOBAL.pack_into(
            self._buffer,
            0,
            min(battle._turn / 100, 1.0),
            "forceSwitch" in request,
            reviving,
            "trapped" in asked,
            "maybeTrapped" in asked,
            *[key in asked for key, _ in GIMMICKS],
            *scene.weather,
            *scene.field,
            *scene.own_side,
            own_alive / 6,
            own_hp / 6,
            own_spent,
            *scene.foe_side,
            foe_alive / 6,
            foe_hp / 6,
            foe_spent,
            *active_numbers(scene.own),
            *active_numbers(scene.foe),
        )

    def _write_moves(self, scene: Scene, request: dict[str, Any], choices: Choices, own_out: int, foe_out: int) -> None:
        start = layout.MOVE_START * HALF
        if own_out < 0 or "active" not in request:
            self._buffer[start : start + len(_NO_MOVES)] = _NO_MOVES
            return
        blocks = self._blocks
        card = blocks.own[own_out]
        infos, blows = card.profile.moves, None
        user = target = None
        if scene.own is not None and scene.foe is not None:
            foe = blocks.foe[foe_out]
            blows = blocks.matchups.blows(card.profile, foe.profile.body)
            user = active_factors(scene.own, card.speed, scene.own_side)
            target = active_factors(scene.foe, foe.speed, scene.foe_side)
        can_tera = "canTerastallize" in request["active"][0]
        known = self._battle.entries[own_out]["moves"]
        for slot in range(layout.MOVE_SLOTS):
            offset = start + slot * _MOVE_BYTES
            entry = choices.move_entries[slot]
            if slot >= len(known):
                if entry is None:
                    self._buffer[offset : offset + _MOVE_BYTES] = _NO_MOVES[:_MOVE_BYTES]
                    continue
                move = OwnMove("", None, None, entry)
            else:
                move = OwnMove(known[slot], infos[slot], blows[slot] if blows else None, entry)
            move = offered_move(self._gen, move)
            self._buffer[offset : offset + _STATIC_BYTES] = static_bytes(self._gen, move.name)
            usable = choices.mask[FIRST_MOVE + slot]
            numbers = present_numbers(scene, move, user, target, usable, can_tera)
            _PRESENT.pack_into(self._buffer, offset + _STATIC_BYTES, *numbers)


def _survey(team: list[Pokemon]) -> tuple[int, float, float]:
    """Of one team: index of the active one (-1: none), how many live, sum of hp fractions."""
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
