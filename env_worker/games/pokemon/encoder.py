"""Writes one seat's battle into the layout: float16 [OBSERVATION_SIZE], fresh at every decision.

A byte buffer lives as long as the battle; blocks are packed into it with `struct` (half floats) and only
where something changed. Matchups between two profiles are computed once a battle.
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
from env_worker.games.pokemon.features import (
    active_numbers,
    field_numbers,
    side_numbers,
    status_numbers,
    weather_numbers,
)
from env_worker.games.pokemon.matchup import Attack, Profile, attack
from env_worker.games.pokemon.movesheet import Scene, move_block, stage_factors
from env_worker.games.pokemon.profiles import foe_profile, item_row, move_row, own_profile
from env_worker.games.pokemon.seat_battle import SeatBattle
from env_worker.games.pokemon.vocabulary import vocabulary

HALF = 2  # bytes of a float16
PAIR_WIDTH = 5  # deals, deals_effectiveness, takes, takes_effectiveness, moves_first
BODY_WIDTH = layout.POKEMON_WIDTH - PAIR_WIDTH
_GLOBAL = struct.Struct(f"<{layout.GLOBAL_WIDTH}e")
_BODY = struct.Struct(f"<{BODY_WIDTH}e")
_PAIR = struct.Struct(f"<{PAIR_WIDTH}e")
_MOVE = struct.Struct(f"<{layout.MOVE_WIDTH}e")
_MASK = struct.Struct(f"<{layout.NUM_ACTIONS}e")
_NO_MOVES = bytes(layout.MOVE_SLOTS * layout.MOVE_WIDTH * HALF)
_NO_PAIR = bytes(PAIR_WIDTH * HALF)
_PAD = (0, 0, 0, 0)


class SeatEncoder:
    """Encodes one seat of one battle.

    Attributes:
        standing: (own alive, foe alive, own hp sum, foe hp sum) at the last encoding; unrevealed foes are
            alive and full. The shaped rewards read it.
    """

    def __init__(self, battle: SeatBattle, gen: int) -> None:
        self._battle = battle
        self._gen = gen
        self._buffer = bytearray(layout.OBSERVATION_SIZE * HALF)
        self._own: list[Profile | None] = [None] * layout.TEAM_SIZE
        self._foe: list[Profile | None] = [None] * layout.TEAM_SIZE
        self._foe_keys: list[tuple[Any, ...]] = [()] * layout.TEAM_SIZE
        self._profiles: dict[Profile, Profile] = {}
        self._attacks: dict[tuple[int, int], tuple[Attack, Attack]] = {}
        self.standing = (6.0, 6.0, 6.0, 6.0)

    def encode(self, request: dict[str, Any], choices: Choices) -> NDArray[np.float16]:
        """The observation at `request`; the battle must be in sync with it."""
        battle = self._battle
        own = list(battle._team.values())
        foes = list(battle._opponent_team.values())[: layout.TEAM_SIZE]
        own_out, foe_out = _active_index(own), _active_index(foes)
        self._write_own(own, own_out)
        self._write_foes(foes)
        self._measure(own, foes)
        scene = self._scene(own, foes, own_out, foe_out)
        self._write_pairs(scene, own, foes, own_out, foe_out)
        self._write_global(request, scene)
        self._write_moves(scene, request, choices, own_out, foe_out)
        _MASK.pack_into(self._buffer, layout.MASK_START * HALF, *choices.mask)
        return np.frombuffer(bytearray(self._buffer), dtype=np.float16)

    def _write_own(self, own: list[Pokemon], own_out: int) -> None:
        battle = self._battle
        dirty = battle.dirty
        if own_out >= 0:
            dirty.add(own_out)
        for index in dirty:
            mon, entry = own[index], battle.entries[index]
            profile = self._intern(own_profile(self._gen, mon, entry))
            self._own[index] = profile
            moves = [move_row(name) for name in entry["moves"][:4]]
            self._write_body(layout.OWN_START, index, mon, profile, moves, profile.tera, mon._revealed)
        dirty.clear()

    def _write_foes(self, foes: list[Pokemon]) -> None:
        for index, mon in enumerate(foes):
            key = (
                mon._active,
                mon._current_hp,
                mon._status,
                mon._item,
                mon._ability,
                mon._temporary_ability,
                mon._species,
                mon._terastallized,
                mon._status_counter,
                len(mon._moves._base_moves),
                len(mon._temporary_types),
                mon._type_1,
            )
            if key == self._foe_keys[index] and not mon._active:
                continue
            self._foe_keys[index] = key
            profile = self._intern(foe_profile(self._gen, mon))
            self._foe[index] = profile
            tera = mon._terastallized_type
            moves = [move_row(name) for name in list(mon.moves)[:4]]
            self._write_body(layout.FOE_START, index, mon, profile, moves, tera.value if tera else 0, True)

    def _intern(self, profile: Profile) -> Profile:
        return self._profiles.setdefault(profile, profile)

    def _write_body(
        self, start: int, index: int, mon: Pokemon, profile: Profile, moves: list[int], tera: int, revealed: bool
    ) -> None:
        rows = vocabulary()
        types, stats = profile.types, profile.stats
        _BODY.pack_into(
            self._buffer,
            (start + index * layout.POKEMON_WIDTH) * HALF,
            rows.species.get(mon._species, 0),
            rows.ability.get(profile.ability, 0),
            item_row(mon._item),
            *moves,
            *_PAD[len(moves) :],
            types[0],
            types[1] if len(types) > 1 else 0,
            tera,
            1.0,
            mon.current_hp_fraction,
            mon._status is Status.FNT,
            bool(mon._active),
            revealed,
            profile.terastallized,
            *status_numbers(mon),
            min(mon._status_counter / 8, 1.0),
            mon._level / 100,
            *[min(stat / 500, 1.0) for stat in stats],
        )

    def _measure(self, own: list[Pokemon], foes: list[Pokemon]) -> None:
        own_alive = sum(mon._status is not Status.FNT for mon in own)
        foe_fainted = sum(mon._status is Status.FNT for mon in foes)
        own_hp = sum(mon.current_hp_fraction for mon in own)
        foe_hp = layout.TEAM_SIZE - len(foes) + sum(mon.current_hp_fraction for mon in foes)
        self.standing = (float(own_alive), float(layout.TEAM_SIZE - foe_fainted), own_hp, foe_hp)

    def _scene(self, own: list[Pokemon], foes: list[Pokemon], own_out: int, foe_out: int) -> Scene:
        battle = self._battle
        own_side = side_numbers(battle._side_conditions)
        foe_side = side_numbers(battle._opponent_side_conditions)
        return Scene(
            gen=self._gen,
            own=own[own_out] if own_out >= 0 else None,
            foe=foes[foe_out] if foe_out >= 0 else None,
            own_side=own_side,
            foe_side=foe_side,
            weather=weather_numbers(battle._weather, battle._turn),
            field=field_numbers(battle._fields, battle._turn),
        )

    def _pair(self, own: Profile, foe: Profile) -> tuple[Attack, Attack]:
        """Own Pokemon on the foe, and the foe on it; the profiles stay alive in `_profiles`."""
        key = (id(own), id(foe))
        pair = self._attacks.get(key)
        if pair is None:
            pair = self._attacks[key] = (attack(self._gen, own, foe), attack(self._gen, foe, own))
        return pair

    def _write_pairs(self, scene: Scene, own: list[Pokemon], foes: list[Pokemon], own_out: int, foe_out: int) -> None:
        """How every Pokemon stands against the other side's active one."""
        foe_active = self._foe[foe_out] if foe_out >= 0 else None
        own_active = self._own[own_out] if own_out >= 0 else None
        for index, mon in enumerate(own):
            self._write_pair(scene, layout.OWN_START, index, self._own[index], foe_active, mon, scene.foe)
        for index, mon in enumerate(foes):
            self._write_pair(scene, layout.FOE_START, index, own_active, self._foe[index], scene.own, mon)

    def _write_pair(
        self,
        scene: Scene,
        start: int,
        index: int,
        own: Profile | None,
        foe: Profile | None,
        own_mon: Pokemon | None,
        foe_mon: Pokemon | None,
    ) -> None:
        offset = (start + index * layout.POKEMON_WIDTH + BODY_WIDTH) * HALF
        if own is None or foe is None or own_mon is None or foe_mon is None:
            self._buffer[offset : offset + len(_NO_PAIR)] = _NO_PAIR
            return
        ours, theirs = self._pair(own, foe)
        physical, special = stage_factors(own_mon, foe_mon, scene.foe_side)
        deals = min(max(ours.physical * physical, ours.special * special), 1.0)
        physical, special = stage_factors(foe_mon, own_mon, scene.own_side)
        takes = min(max(theirs.physical * physical, theirs.special * special), 1.0)
        first = scene.moves_first(own, foe, own_mon, foe_mon)
        if start == layout.OWN_START:
            numbers = (deals, ours.effectiveness / 4, takes, theirs.effectiveness / 4, first)
        else:
            numbers = (takes, theirs.effectiveness / 4, deals, ours.effectiveness / 4, -first)
        _PAIR.pack_into(self._buffer, offset, *numbers)

    def _write_global(self, request: dict[str, Any], scene: Scene) -> None:
        battle = self._battle
        asked = request["active"][0] if "active" in request else {}
        own_alive, foe_alive, own_hp, foe_hp = self.standing
        own_spent = battle._used_tera or battle._used_mega_evolve or battle._used_z_move or battle._used_dynamax
        foe_spent = (
            battle._opponent_used_tera
            or battle._opponent_used_mega_evolve
            or battle._opponent_used_z_move
            or battle._opponent_used_dynamax
        )
        _GLOBAL.pack_into(
            self._buffer,
            0,
            min(battle._turn / 100, 1.0),
            bool(request.get("forceSwitch")),
            any(entry.get("reviving") for entry in request["side"]["pokemon"]),
            bool(asked.get("trapped")),
            bool(asked.get("maybeTrapped")),
            *[bool(asked.get(key)) for key, _ in GIMMICKS],
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
        self._buffer[start : start + len(_NO_MOVES)] = _NO_MOVES
        profile = self._own[own_out] if own_out >= 0 else None
        if profile is None or "active" not in request:
            return
        foe = self._foe[foe_out] if foe_out >= 0 else None
        blows = self._pair(profile, foe)[0].blows if foe is not None else ()
        can_tera = bool(request["active"][0].get("canTerastallize"))
        known = self._battle.entries[own_out]["moves"]
        for slot in range(layout.MOVE_SLOTS):
            entry = choices.move_entries[slot]
            if entry is None and slot >= len(known):
                continue
            usable = bool(choices.mask[FIRST_MOVE + slot])
            name = known[slot] if slot < len(known) else ""
            blow = blows[slot] if slot < len(blows) else None
            numbers = move_block(scene, name, entry, blow, usable, can_tera)
            _MOVE.pack_into(self._buffer, start + slot * layout.MOVE_WIDTH * HALF, *numbers)


def _active_index(team: list[Pokemon]) -> int:
    for index, mon in enumerate(team):
        if mon._active:
            return index
    return -1
