"""The 12 Pokemon blocks: each one's own features (body), and its matchup with the opposing active one (pair).

A body is packed again when anything about its Pokemon may have changed (`SeatView.changed`), a pair when one of the
two has, or the field between them; the buffer keeps the rest.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from poke_env.battle.pokemon import Pokemon

from simul.env_worker.games.pokemon.battle_view.seat_battle import SeatBattle
from simul.env_worker.games.pokemon.encoding.expected_damage import (
    BestDamage,
    DamageProfile,
    MoveDamage,
    best_damage,
    exchange_numbers,
    move_damage,
)
from simul.env_worker.games.pokemon.encoding.features import STAGES, TRICK_ROOM
from simul.env_worker.games.pokemon.encoding.field_state import (
    FieldState,
    Strength,
    active_strength,
    bench_strength,
    screens,
)
from simul.env_worker.games.pokemon.encoding.pokemon_features import HALF, PAIR_WIDTH, PokemonBlock, own_pp
from simul.env_worker.games.pokemon.encoding.profiles import (
    POWER_TRICK,
    base_types_of,
    foe_body,
    moves_of,
    own_ability,
    own_body,
    types_of,
)
from simul.env_worker.games.pokemon.tables import layout
from simul.env_worker.games.pokemon.tables.layout import TEAM_SIZE

OWN, FOE = 0, 1
ORDERS = {order: struct.pack("<e", order) for order in (-1.0, 0.0, 1.0)}  # `moves_first`
_EXCHANGE = struct.Struct(f"<{PAIR_WIDTH - 1}e")
_HALF_EXCHANGE = HALF * (PAIR_WIDTH - 1) // 2

# (own strength, foe's strength), then the pair without `moves_first` for the own Pokemon and for the foe.
Exchange = tuple[tuple[Strength, Strength], bytes, bytes]


class MatchupTable:
    """Cached matchups of one battle. [i][j] belongs to own.i and foe.j; None: not computed yet."""

    def __init__(self, own: Sequence[PokemonBlock], foes: Sequence[PokemonBlock]) -> None:
        self._own, self._foes = own, foes
        self._deals: list[list[BestDamage | None]] = _table()
        self._takes: list[list[BestDamage | None]] = _table()
        self._move_damages: list[list[list[MoveDamage] | None]] = _table()
        self._exchanges: list[list[Exchange | None]] = _table()

    def forget_own(self, i: int) -> None:
        """own.i has another profile."""
        for table in (self._deals, self._takes, self._move_damages, self._exchanges):
            table[i] = _row()

    def forget_foe(self, j: int, other_body: bool) -> None:
        """foe.j has another profile; what is done to it changes only with its body."""
        for i in range(TEAM_SIZE):
            self._takes[i][j] = self._exchanges[i][j] = None
            if other_body:
                self._deals[i][j] = self._move_damages[i][j] = None

    def move_damages(self, i: int, j: int) -> list[MoveDamage]:
        """Damage of each of own.i's moves to foe.j, by slot."""
        found = self._move_damages[i][j]
        if found is None:
            target = self._foes[j].defence
            found = self._move_damages[i][j] = [move_damage(move, target) for move in self._own[i].offence.slots]
        return found

    def exchange(self, i: int, j: int, strength: Strength, foe_strength: Strength) -> Exchange:
        """Damage between own.i and foe.j, cached because the same two meet again."""
        terms = (strength, foe_strength)
        known = self._exchanges[i][j]
        if known is None or known[0] != terms:
            known = self._exchanges[i][j] = self._compute(i, j, terms)
        return known

    def _compute(self, i: int, j: int, terms: tuple[Strength, Strength]) -> Exchange:
        deals, takes = self._deals[i][j], self._takes[i][j]
        own, foe = self._own[i], self._foes[j]
        if deals is None:
            deals = self._deals[i][j] = best_damage(own.offence.all, foe.defence)
        if takes is None:
            takes = self._takes[i][j] = best_damage(foe.offence.all, own.defence)
        ours = _EXCHANGE.pack(*exchange_numbers(deals, takes, *terms))
        return terms, ours, ours[_HALF_EXCHANGE:] + ours[:_HALF_EXCHANGE]


def _table() -> Any:
    return [_row() for _ in range(TEAM_SIZE)]


def _row() -> list[Any]:
    return [None] * TEAM_SIZE


_PAIR_BYTES = PAIR_WIDTH * HALF
_EMPTY_PAIR = bytes(_PAIR_BYTES)
_EVEN, _FASTER, _SLOWER = (ORDERS[order] for order in (0.0, 1.0, -1.0))


class ActivePokemon(NamedTuple):
    """The active Pokemon of one side: place in its team, profile, strength and speed now."""

    place: int
    profile: DamageProfile
    strength: Strength
    speed: float


class PokemonBlocks:
    """Writes `own.*` and `foe.*` of one seat into its buffer.

    Attributes:
        own_active, foe_active: since `write_pairs`; None = none.
    """

    def __init__(self, buffer: bytearray, gen: int) -> None:
        self._buffer = buffer
        self._gen = gen
        self.own = [PokemonBlock(buffer, start) for start in _starts(layout.OWN_START)]
        self.foe = [PokemonBlock(buffer, start) for start in _starts(layout.FOE_START)]
        self.matchups = MatchupTable(self.own, self.foe)
        self.own_active: ActivePokemon | None = None
        self.foe_active: ActivePokemon | None = None
        self._facing: list[tuple[Any, ...]] = [(), ()]
        self._foes = 0  # foe blocks written last time

    def write_own_bodies(self, battle: SeatBattle, own: list[Pokemon]) -> None:
        changed = battle.changed
        for index, mon in enumerate(own):
            block = self.own[index]
            when = changed.get(mon, 0)
            if block.mon is mon and block.when == when:
                continue
            block.mon, block.when = mon, when
            self._write_own_body(battle, index, mon, block)

    def write_foe_bodies(self, battle: SeatBattle, foes: list[Pokemon], met: int) -> None:
        """`met`: the first `met` have been out; team preview has shown the others."""
        for index in range(len(foes), self._foes):  # fewer than last time: all that were brought have been out
            start = layout.FOE_START + index * layout.POKEMON_WIDTH
            self.foe[index] = PokemonBlock(self._buffer, start)
            self._buffer[start * HALF : (start + layout.POKEMON_WIDTH) * HALF] = bytes(layout.POKEMON_WIDTH * HALF)
        self._foes = len(foes)
        changed = battle.changed
        for index, mon in enumerate(foes):
            block = self.foe[index]
            when = changed.get(mon, 0)
            if block.mon is mon and block.when == when and block.revealed is (index < met):
                continue
            block.mon, block.when, block.revealed = mon, when, index < met
            self._write_foe_body(battle, index, mon, block)

    def _write_own_body(self, battle: SeatBattle, index: int, mon: Pokemon, block: PokemonBlock) -> None:
        """The body is written again when `key` changes, which holds everything it is made from."""
        entry = battle.entries[index]
        types = types_of(mon)
        born = base_types_of(mon)  # a forme change shows in them even where terastallizing hides it in `types`
        ability, tera, item = own_ability(mon, entry), entry.get("terastallized"), entry["item"]
        names, copied = entry["moves"][: layout.MOVE_SLOTS], battle.corrections.facts(mon).copied
        tricked = POWER_TRICK in mon._effects
        key = (mon._species, types, born, ability, item, entry["stats"], mon._max_hp, tera, mon._level, copied, tricked)
        if key != block.key or names != block.names:
            block.key = key
            body = own_body(self._gen, mon, entry, types, copied)
            block.set_body(self._gen, mon, body, item, body.tera)
            block.set_moves(self._gen, names)
            self.matchups.forget_own(index)
        block.revealed = mon._revealed
        block.write_state(mon, battle.counters, own_pp(battle.counters, mon, names))

    def _write_foe_body(self, battle: SeatBattle, index: int, mon: Pokemon, block: PokemonBlock) -> None:
        """`key` as in `_write_own_body`."""
        counters, copied = battle.counters, battle.corrections.facts(mon).copied
        moves = moves_of(mon)
        names = list(moves)[: layout.MOVE_SLOTS]
        key = (
            mon._species,
            mon._item,
            mon._ability,
            mon._temporary_ability,
            mon._forme_change_ability,
            mon._terastallized,
            mon._terastallized_type,
            tuple(mon._temporary_types),
            mon._type_1,
            mon._type_2,
            mon._base_stats,
            POWER_TRICK in mon._effects,
            copied,
            mon._level,
        )
        other_body = key != block.key
        if other_body:
            block.key = key
            tera = mon._terastallized_type
            block.set_body(self._gen, mon, foe_body(self._gen, mon, copied), mon._item, tera._value_ if tera else 0)
        if other_body or names != block.names:
            block.set_moves(self._gen, names, guess=len(names) < layout.MOVE_SLOTS)
            self.matchups.forget_foe(index, other_body)
        block.write_state(mon, counters, counters.pp_left(list(moves.values())[: layout.MOVE_SLOTS]))

    def write_pairs(
        self, field_state: FieldState, own: list[Pokemon], foes: list[Pokemon], own_out: int, foe_out: int
    ) -> None:
        """Write every Pokemon's matchup with the other side's active one."""
        trick_room = bool(field_state.field[TRICK_ROOM])
        mine = self.own_active = _active(self.own, own, own_out, field_state.own_side)
        theirs = self.foe_active = _active(self.foe, foes, foe_out, field_state.foe_side)
        self._face(OWN, self.own, own, mine, theirs, screens(field_state.own_side), trick_room)
        self._face(FOE, self.foe, foes, theirs, mine, screens(field_state.foe_side), trick_room)

    def _face(
        self,
        whose: int,
        blocks: list[PokemonBlock],
        team: list[Pokemon],
        active: ActivePokemon | None,
        facing: ActivePokemon | None,
        screen: tuple[float, float],
        trick_room: bool,
    ) -> None:
        """Pairs of one team against the Pokemon it faces; unchanged ones of the bench stay as they are."""
        out = -1 if active is None else active.place
        situation = (facing, screen, trick_room)
        same = situation == self._facing[whose]
        self._facing[whose] = situation
        buffer, exchange = self._buffer, self.matchups.exchange
        for index, mon in enumerate(team):
            block = blocks[index]
            if same and not block.fresh:
                continue
            block.fresh = index == out  # an active one's stages are gone when it leaves
            if facing is None:
                buffer[block.pair_at : block.pair_at + _PAIR_BYTES] = _EMPTY_PAIR
                continue
            opposite, _, foe_strength, foe_speed = facing
            if active is not None and index == out:
                _, _, strength, speed = active
            else:
                strength, speed = bench_strength(mon, screen), block.speed
            if whose == OWN:
                pair = exchange(index, opposite, strength, foe_strength)[1]
            else:
                pair = exchange(opposite, index, foe_strength, strength)[2]
            if speed == foe_speed:
                order = _EVEN
            else:
                order = _FASTER if (speed > foe_speed) != trick_room else _SLOWER
            buffer[block.pair_at : block.pair_at + _PAIR_BYTES] = pair + order


def _active(blocks: list[PokemonBlock], team: list[Pokemon], out: int, side: Sequence[float]) -> ActivePokemon | None:
    if out < 0:
        return None
    mon, block = team[out], blocks[out]
    block.fresh = True
    return ActivePokemon(
        out, block.profile, active_strength(mon, screens(side)), block.speed * STAGES[mon._boosts["spe"] + 6]
    )


def _starts(first: int) -> list[int]:
    return [first + index * layout.POKEMON_WIDTH for index in range(layout.TEAM_SIZE)]
