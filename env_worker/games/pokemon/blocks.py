"""The 12 Pokemon blocks: what each is (body) and how it stands against the opposing active one (pair).

A body is packed again when anything about its Pokemon may have changed (`SeatView.changed`), a pair when one of the
two has, or the field between them; the buffer keeps the rest.
"""

from __future__ import annotations

import struct
from typing import Any

from poke_env.battle.pokemon import Pokemon
from poke_env.battle.status import Status

from env_worker.games.pokemon import layout
from env_worker.games.pokemon.bodies import BODY_WIDTH, HALF, PAIR_WIDTH, Card, foe_pp, own_pp
from env_worker.games.pokemon.combatants import Profile
from env_worker.games.pokemon.counters import Counters
from env_worker.games.pokemon.features import AURORA_VEIL, REFLECT, TRICK_ROOM
from env_worker.games.pokemon.matchup import Matchups, pair_numbers
from env_worker.games.pokemon.profiles import base_types_of, foe_profile, move_row, own_profile, types_of
from env_worker.games.pokemon.scene import Factors, Scene, active_factors, screens
from env_worker.games.pokemon.seat_battle import SeatBattle

_PAIR = struct.Struct(f"<{PAIR_WIDTH}e")
_NO_PAIR = bytes(PAIR_WIDTH * HALF)
BRN = Status.BRN


class PokemonBlocks:
    """Writes `own.*` and `foe.*` of one seat into its buffer."""

    def __init__(self, buffer: bytearray, gen: int) -> None:
        self._buffer = buffer
        self._gen = gen
        self.own = [Card() for _ in range(layout.TEAM_SIZE)]
        self.foe = [Card() for _ in range(layout.TEAM_SIZE)]
        self.matchups = Matchups(gen)
        self._facing: list[tuple[Any, ...]] = [(), ()]
        self._foes = 0  # foe blocks written last time

    def write_own_bodies(self, battle: SeatBattle, own: list[Pokemon]) -> None:
        changed = battle.changed
        for index, mon in enumerate(own):
            card = self.own[index]
            when = changed.get(mon, 0)
            if card.mon is mon and card.when == when:
                continue
            card.mon, card.when = mon, when
            self._write_own_body(battle, index, mon, card)

    def write_foe_bodies(self, battle: SeatBattle, foes: list[Pokemon], met: int) -> None:
        """`met`: so many of them have been out; team preview has shown the others."""
        for index in range(len(foes), self._foes):  # fewer than last time: all that were brought have been out
            self.foe[index] = Card()
            start = (layout.FOE_START + index * layout.POKEMON_WIDTH) * HALF
            self._buffer[start : start + layout.POKEMON_WIDTH * HALF] = bytes(layout.POKEMON_WIDTH * HALF)
        self._foes = len(foes)
        changed = battle.changed
        for index, mon in enumerate(foes):
            card = self.foe[index]
            when = changed.get(mon, 0)
            if card.mon is mon and card.when == when and card.revealed is (index < met):
                continue
            card.mon, card.when, card.revealed = mon, when, index < met
            self._write_foe_body(battle.counters, index, mon, card)

    def _write_own_body(self, battle: SeatBattle, index: int, mon: Pokemon, card: Card) -> None:
        """The profile, ids and stats are made anew when `key` is another: it holds all that they are made from."""
        entry = battle.entries[index]
        types = types_of(mon)
        ability, moves, item = entry.get("ability"), entry["moves"], entry["item"]
        tera = entry.get("terastallized")
        born = base_types_of(mon)  # a forme change shows in them even where terastallizing hides it in `types`
        key = (mon._species, types, born, ability, item, moves, entry["stats"], mon._max_hp, tera, mon._level)
        if key != card.key:
            card.key = key
            rows = [move_row(name) for name in moves[:4]]
            profile = own_profile(self._gen, mon, entry, types)
            card.renew(mon, self.matchups.intern(profile), item, rows, profile.body.tera)
        card.revealed = mon._revealed
        start = layout.OWN_START + index * layout.POKEMON_WIDTH
        card.pack(self._buffer, start, self._gen, mon, battle.counters, own_pp(battle.counters, mon, moves))

    def _write_foe_body(self, counters: Counters, index: int, mon: Pokemon, card: Card) -> None:
        """`key` as for an own one."""
        moves = mon._moves
        key = (
            mon._species,
            mon._item,
            mon._ability,
            mon._temporary_ability,
            mon._forme_change_ability,
            mon._terastallized,
            mon._terastallized_type,
            len(moves._base_moves),
            moves._transform_moves,
            moves._mimic_move,
            len(moves.moves),
            tuple(mon._temporary_types),
            mon._type_1,
            mon._type_2,
            mon._base_stats,
            mon._temporary_base_stats,
            mon._level,
        )
        if key != card.key:
            card.key = key
            rows = [move_row(name) for name in list(moves.moves)[:4]]
            tera = mon._terastallized_type
            profile = self.matchups.intern(foe_profile(self._gen, mon))
            card.renew(mon, profile, mon._item, rows, tera._value_ if tera else 0)
        start = layout.FOE_START + index * layout.POKEMON_WIDTH
        card.pack(self._buffer, start, self._gen, mon, counters, foe_pp(counters, mon))

    def write_pairs(self, scene: Scene, own: list[Pokemon], foes: list[Pokemon], own_out: int, foe_out: int) -> None:
        """How every Pokemon stands against the other side's active one."""
        trick_room = bool(scene.field[TRICK_ROOM])
        mine = self._active(self.own, own, own_out, scene.own_side)
        theirs = self._active(self.foe, foes, foe_out, scene.foe_side)
        self._face(0, layout.OWN_START, self.own, own, own_out, scene.own_side, mine, theirs, trick_room)
        self._face(1, layout.FOE_START, self.foe, foes, foe_out, scene.foe_side, theirs, mine, trick_room)

    def _active(
        self, cards: list[Card], team: list[Pokemon], out: int, side: list[float]
    ) -> tuple[Profile, Factors] | None:
        if out < 0:
            return None
        return cards[out].profile, active_factors(team[out], cards[out].speed, side)

    def _face(
        self,
        which: int,
        start: int,
        cards: list[Card],
        team: list[Pokemon],
        out: int,
        side: list[float],
        active: tuple[Profile, Factors] | None,
        facing: tuple[Profile, Factors] | None,
        trick_room: bool,
    ) -> None:
        """Pairs of one team against the Pokemon it faces; unchanged ones stay as they are."""
        situation = (facing and id(facing[0]), facing and facing[1], side[REFLECT : AURORA_VEIL + 1], trick_room)
        same = situation == self._facing[which]
        self._facing[which] = situation
        screen = screens(side)
        pairs = self.matchups.pairs_with(facing[0]) if facing is not None else {}
        for index, mon in enumerate(team):
            card = cards[index]
            if index != out:
                if same and not card.fresh:
                    continue
                factors = (0.5 if mon._status is BRN else 1.0, 1.0, *screen, card.speed)
            elif active is not None:
                factors = active[1]
            card.fresh = index == out  # an active one's stages are gone when it leaves
            offset = (start + index * layout.POKEMON_WIDTH + BODY_WIDTH) * HALF
            if facing is None:
                self._buffer[offset : offset + len(_NO_PAIR)] = _NO_PAIR
            else:
                pair = pairs.get(id(card.profile)) or self.matchups.pair(card.profile, facing[0])
                _PAIR.pack_into(self._buffer, offset, *pair_numbers(pair, factors, facing[1], trick_room))
