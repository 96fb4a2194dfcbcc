"""Writes `layout.DAMAGE` of one seat: which own Pokemon attack, and what they do to the foes."""

from __future__ import annotations

import struct

from poke_env.battle.pokemon import Pokemon
from poke_env.battle.status import Status

from env_worker.games.pokemon import layout
from env_worker.games.pokemon.blocks import PokemonBlocks
from env_worker.games.pokemon.bodies import HALF, Card
from env_worker.games.pokemon.combatants import Body
from env_worker.games.pokemon.damage.block import PAIR_NUMBERS, DamageBlock
from env_worker.games.pokemon.damage.reading import (
    needs,
    read_fighter,
    screens_of,
    surroundings,
)
from env_worker.games.pokemon.seat_battle import SeatBattle

_ONE, _ZERO = struct.pack("<e", 1.0), struct.pack("<e", 0.0)
_WHO = tuple(b"".join(_ONE if i == j else _ZERO for j in range(layout.TEAM_SIZE)) for i in range(layout.TEAM_SIZE))
_DEALS = struct.Struct("<e")
_PAIR = HALF * PAIR_NUMBERS
FNT = Status.FNT


class DamageWriter:
    """Of one battle; `attackers`: how many own Pokemon it writes, three (active and likeliest switches) or all six."""

    def __init__(self, buffer: bytearray, gen: int, attackers: int) -> None:
        self._buffer = buffer
        self._gen = gen
        self._attackers = attackers
        self._all = attackers == layout.TEAM_SIZE
        self._nobody = bytes(HALF * layout.width(layout.damage_fields(attackers)))
        self._block = DamageBlock(gen)

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
        block = self._block
        block.forget_if_full()
        who = self._choose(own, own_out)
        moves = [tuple(battle.entries[i]["moves"][: layout.MOVE_SLOTS]) for i in who]
        wants = [needs(self._gen, names) for names in moves]
        calming = (_ability(blocks.own, own_out), _ability(blocks.foe, foe_out))
        around = surroundings(battle._weather, battle._fields, calming)
        fallen = sum([mon._status is FNT for mon in own])
        users = []
        for i, names, want in zip(who, moves, wants):
            body, down = blocks.own[i].profile.body, fallen if want.fallen else 0
            fighter = read_fighter(own[i], body, want.own_hp, i == own_out, down)
            users.append(block.user(fighter, names, self._can_tera(battle, body), around))
        screens = screens_of(battle._opponent_side_conditions)
        exact = any([want.foes_hp for want in wants])
        standing = [j for j, mon in enumerate(foes) if mon._status is not FNT]
        targets = []
        for j in standing:
            fighter = read_fighter(foes[j], blocks.foe[j].profile.body, exact, j == foe_out, 0)
            targets.append(block.foe(fighter, screens, around))
        self._pack(who, standing, block.pairs(users, targets))

    def _choose(self, own: list[Pokemon], own_out: int) -> list[int]:
        """Team positions of the attackers: all that live, or the active one and who stands best against the foe."""
        alive = [i for i, mon in enumerate(own) if mon._status is not FNT]
        if self._all:
            return alive
        bench = sorted([i for i in alive if i != own_out], key=self._standing)
        return ([own_out] if own_out in alive else []) + bench[: self._attackers - 1]

    def _standing(self, index: int) -> float:
        """What it takes less what it deals, as just written: the least is the likeliest switch."""
        start = (layout.OWN_START + index * layout.POKEMON_WIDTH) * HALF
        (deals,) = _DEALS.unpack_from(self._buffer, start + layout.DEALS * HALF)
        (takes,) = _DEALS.unpack_from(self._buffer, start + layout.TAKES * HALF)
        return float(takes) - float(deals)

    def _can_tera(self, battle: SeatBattle, body: Body) -> bool:
        return self._gen == 9 and not battle._used_tera and body.tera > 0 and not body.terastallized

    def _pack(self, who: list[int], standing: list[int], pairs: list[bytes]) -> None:
        buffer, at, width = self._buffer, layout.DAMAGE_START * HALF, len(self._nobody)
        buffer[at : at + width * self._attackers] = self._nobody * self._attackers
        taken = iter(pairs)
        for place, i in enumerate(who):
            first = at + width * (i if self._all else place)
            if not self._all:
                buffer[first : first + len(_WHO[i])] = _WHO[i]
                first += len(_WHO[i])
            for j in standing:
                buffer[first + j * _PAIR : first + (j + 1) * _PAIR] = next(taken)


def _ability(cards: list[Card], out: int) -> str:
    return str(cards[out].profile.body.ability) if out >= 0 else ""
