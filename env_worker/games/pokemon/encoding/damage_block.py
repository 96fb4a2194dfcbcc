"""Writes `layout.DAMAGE` of one seat: which own Pokemon attack, and what they do to the foes."""

from __future__ import annotations

import struct
from typing import Any

from poke_env.battle.pokemon import Pokemon
from poke_env.battle.status import Status

from simul.env_worker.games.pokemon.battle_view.seat_battle import SeatBattle
from simul.env_worker.games.pokemon.damage.from_battle import (
    DamageInputs,
    damage_inputs,
    fighter,
    fighter_inputs,
    screens_of,
    surroundings,
)
from simul.env_worker.games.pokemon.damage.pairs import PAIR_NUMBERS, Attacker, Defender, PairDamageCache
from simul.env_worker.games.pokemon.damage.types import NO_SURROUNDINGS, Surroundings
from simul.env_worker.games.pokemon.encoding.blocks import PokemonBlocks
from simul.env_worker.games.pokemon.encoding.expected_damage import DamageProfile
from simul.env_worker.games.pokemon.encoding.pokemon_features import HALF, PokemonBlock
from simul.env_worker.games.pokemon.tables import layout

_ONE, _ZERO = struct.pack("<e", 1.0), struct.pack("<e", 0.0)
_WHO = tuple(b"".join(_ONE if i == j else _ZERO for j in range(layout.TEAM_SIZE)) for i in range(layout.TEAM_SIZE))
_DEALS_AND_TAKES = struct.Struct(f"<e{HALF * (layout.TAKES - layout.DEALS - 1)}xe")
_MOST_REMEMBERED = 1024
_PAIR = HALF * PAIR_NUMBERS
_NO_NUMBERS = bytes(_PAIR)
FNT = Status.FNT


class _User:
    """An own Pokemon as it was last written. `seen`: inputs of its attacker, without the names of its moves.

    `mark`: equal while neither it nor the field has changed.
    """

    __slots__ = ("attacker", "mark", "names", "needs", "profile", "seen")

    def __init__(self) -> None:
        self.profile: DamageProfile | None = None  # names and needs change only with it
        self.names: tuple[str, ...] = ()
        self.needs = DamageInputs(False, False, False)
        self.mark: tuple[Any, ...] = ()
        self.seen: tuple[Any, ...] = ()
        self.attacker: Attacker | None = None


class _Foe:
    """A foe as it was last written; fields as in `_User`."""

    __slots__ = ("defender", "mark", "seen")

    def __init__(self) -> None:
        self.mark: tuple[Any, ...] = ()
        self.seen: tuple[Any, ...] = ()
        self.defender: Defender | None = None


class DamageWriter:
    """Writes for one battle; `attackers`: own Pokemon it writes, 3 (active and likeliest switches) or all 6."""

    def __init__(self, buffer: bytearray, gen: int, attackers: int) -> None:
        self._buffer = buffer
        self._gen = gen
        self._attackers = attackers
        self._all = attackers == layout.TEAM_SIZE
        self._width = HALF * layout.width(layout.damage_fields(attackers))
        self._placed: list[tuple[int, Attacker] | None] = [None] * attackers
        self._defenders: list[Defender | None] = [None] * layout.TEAM_SIZE
        self._start_afresh()

    def _start_afresh(self) -> None:
        self._pairs = PairDamageCache(self._gen)
        self._own = [_User() for _ in range(layout.TEAM_SIZE)]
        self._foes = [_Foe() for _ in range(layout.TEAM_SIZE)]
        self._around = NO_SURROUNDINGS

    def write(
        self,
        battle: SeatBattle,
        blocks: PokemonBlocks,
        own: list[Pokemon],
        foes: list[Pokemon],
        own_out: int,
        foe_out: int,
    ) -> None:
        """All of the block; bodies and pairs of `blocks` must have been written."""
        if self._pairs.remembered > _MOST_REMEMBERED:
            self._start_afresh()
        alive = [i for i, mon in enumerate(own) if mon._status is not FNT]
        who = self._choose(alive, own_out)
        around = self._surroundings(battle, blocks, own_out, foe_out)
        down = len(own) - len(alive)
        attackers = [self._attacker(i, battle, blocks.own[i], own[i], i == own_out, down, around) for i in who]
        screens = screens_of(battle._opponent_side_conditions)
        exact = any([self._own[i].needs.foes_hp for i in who])
        defenders: list[Defender | None] = [None] * layout.TEAM_SIZE
        for j, mon in enumerate(foes):
            if mon._status is not FNT:
                defenders[j] = self._defender(self._foes[j], blocks.foe[j], mon, exact, j == foe_out, screens, around)
        self._pack(who, attackers, defenders)

    def _attacker(
        self, i: int, battle: SeatBattle, block: PokemonBlock, mon: Pokemon, out: bool, down: int, around: Surroundings
    ) -> Attacker:
        user, profile = self._own[i], block.profile
        mark = (mon, block.when, out, down, battle._used_tera, around)
        if user.attacker is not None and mark == user.mark:
            return user.attacker
        user.mark, body = mark, profile.body
        if profile is not user.profile:
            user.profile = profile
            user.names = tuple(battle.entries[i]["moves"][: layout.MOVE_SLOTS])
            user.needs = damage_inputs(self._gen, user.names)
            user.attacker = None
        look = fighter_inputs(mon, body, user.needs.own_hp, out, down if user.needs.fallen else 0)
        can_tera = self._gen == 9 and not battle._used_tera and body.tera > 0 and not body.terastallized
        seen = (look, can_tera, around)
        if user.attacker is None or seen != user.seen:
            user.seen = seen
            user.attacker = self._pairs.attacker(fighter(look), user.names, can_tera, around)
        return user.attacker

    def _defender(
        self,
        foe: _Foe,
        block: PokemonBlock,
        mon: Pokemon,
        exact: bool,
        out: bool,
        screens: tuple[str, ...],
        around: Surroundings,
    ) -> Defender:
        mark = (mon, block.when, exact, out, screens, around)
        if foe.defender is not None and mark == foe.mark:
            return foe.defender
        foe.mark = mark
        seen = (fighter_inputs(mon, block.profile.body, exact, out, 0), screens, around)
        if foe.defender is None or seen != foe.seen:
            foe.seen = seen
            foe.defender = self._pairs.defender(fighter(seen[0]), *seen[1:])
        return foe.defender

    def _surroundings(self, battle: SeatBattle, blocks: PokemonBlocks, own_out: int, foe_out: int) -> Surroundings:
        """Keeps one object while the value is equal, which makes comparisons quick."""
        calming = (_ability(blocks.own, own_out), _ability(blocks.foe, foe_out))
        around = surroundings(battle._weather, battle._fields, calming)
        if around != self._around:
            self._around = around
        return self._around

    def _choose(self, alive: list[int], own_out: int) -> list[int]:
        """Team positions of the attackers: all alive, or the active one and the best against the foe."""
        if self._all:
            return alive
        bench = sorted([i for i in alive if i != own_out], key=self._standing)
        return ([own_out] if own_out in alive else []) + bench[: self._attackers - 1]

    def _standing(self, index: int) -> float:
        """Damage taken less damage dealt, as just written: the lowest is the likeliest switch."""
        start = (layout.OWN_START + index * layout.POKEMON_WIDTH + layout.DEALS) * HALF
        deals, takes = _DEALS_AND_TAKES.unpack_from(self._buffer, start)
        return float(takes) - float(deals)

    def _pack(self, who: list[int], attackers: list[Attacker], defenders: list[Defender | None]) -> None:
        """Write what has changed; the buffer keeps the rest."""
        placed: list[tuple[int, Attacker] | None] = [None] * self._attackers
        for place, (i, attacker) in enumerate(zip(who, attackers)):
            placed[i if self._all else place] = (i, attacker)
        other_defenders = defenders != self._defenders
        for place, (now, before) in enumerate(zip(placed, self._placed)):
            if now is None:
                if before is not None:
                    self._clear(place)
            elif now != before or other_defenders:
                self._pack_place(place, *now, defenders, now == before)
        self._placed, self._defenders = placed, defenders

    def _pack_place(self, place: int, i: int, attacker: Attacker, defenders: list[Defender | None], same: bool) -> None:
        buffer, at = self._buffer, self._start(place)
        if not self._all:
            buffer[at : at + len(_WHO[i])] = _WHO[i]
            at += len(_WHO[i])
        for defender, before in zip(defenders, self._defenders):
            if not same or defender is not before:
                numbers = _NO_NUMBERS if defender is None else self._pairs.numbers(attacker, defender)
                buffer[at : at + _PAIR] = numbers
            at += _PAIR

    def _clear(self, place: int) -> None:
        at = self._start(place)
        self._buffer[at : at + self._width] = bytes(self._width)

    def _start(self, place: int) -> int:
        return layout.DAMAGE_START * HALF + self._width * place


def _ability(blocks: list[PokemonBlock], out: int) -> str:
    return str(blocks[out].profile.body.ability) if out >= 0 else ""
