"""The 12 Pokemon blocks: what each is (body) and how it stands against the opposing active one (pair).

A body is packed again when anything about its Pokemon may have changed (`SeatView.changed`), a pair when one of the
two has, or the field between them; the buffer keeps the rest.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from poke_env.battle.pokemon import Pokemon

from simul.env_worker.games.pokemon.battle_view.counters import Counters
from simul.env_worker.games.pokemon.battle_view.seat_battle import SeatBattle
from simul.env_worker.games.pokemon.encoding import layout
from simul.env_worker.games.pokemon.encoding.expected_damage import (
    Attack,
    Blow,
    Profile,
    blow,
    exchange_numbers,
    strongest,
)
from simul.env_worker.games.pokemon.encoding.features import STAGES, TRICK_ROOM
from simul.env_worker.games.pokemon.encoding.field_state import (
    Scene,
    Strength,
    active_strength,
    bench_strength,
    screens,
)
from simul.env_worker.games.pokemon.encoding.layout import TEAM_SIZE
from simul.env_worker.games.pokemon.encoding.pokemon_features import HALF, PAIR_WIDTH, Card, own_pp
from simul.env_worker.games.pokemon.encoding.profiles import base_types_of, foe_body, moves_of, own_body, types_of

OWN, FOE = 0, 1
ORDERS = {order: struct.pack("<e", order) for order in (-1.0, 0.0, 1.0)}  # `moves_first`
_EXCHANGE = struct.Struct(f"<{PAIR_WIDTH - 1}e")
_HALF_EXCHANGE = HALF * (PAIR_WIDTH - 1) // 2

# (strength of the own one, of the foe), then a pair without `moves_first`: as of the own one, and as of the foe.
Exchange = tuple[tuple[Strength, Strength], bytes, bytes]


class Duels:
    """Of one battle. A place [i][j] is that of own.i and foe.j; None: to be worked out."""

    def __init__(self, own: Sequence[Card], foes: Sequence[Card]) -> None:
        self._own, self._foes = own, foes
        self._deals: list[list[Attack | None]] = _table()
        self._takes: list[list[Attack | None]] = _table()
        self._blows: list[list[list[Blow] | None]] = _table()
        self._exchanges: list[list[Exchange | None]] = _table()

    def forget_own(self, i: int) -> None:
        """own.i has another profile."""
        for table in (self._deals, self._takes, self._blows, self._exchanges):
            table[i] = _row()

    def forget_foe(self, j: int, other_body: bool) -> None:
        """foe.j has another profile; what is done to it changes only with its body."""
        for i in range(TEAM_SIZE):
            self._takes[i][j] = self._exchanges[i][j] = None
            if other_body:
                self._deals[i][j] = self._blows[i][j] = None

    def blows(self, i: int, j: int) -> list[Blow]:
        """What each of own.i's moves does to foe.j, by slot."""
        found = self._blows[i][j]
        if found is None:
            target = self._foes[j].armour
            found = self._blows[i][j] = [blow(weapon, target) for weapon in self._own[i].arms.slots]
        return found

    def exchange(self, i: int, j: int, strength: Strength, foe_strength: Strength) -> Exchange:
        """How own.i and foe.j stand against each other; remembered, because the same two meet again."""
        terms = (strength, foe_strength)
        known = self._exchanges[i][j]
        if known is None or known[0] != terms:
            known = self._exchanges[i][j] = self._worked_out(i, j, terms)
        return known

    def _worked_out(self, i: int, j: int, terms: tuple[Strength, Strength]) -> Exchange:
        deals, takes = self._deals[i][j], self._takes[i][j]
        own, foe = self._own[i], self._foes[j]
        if deals is None:
            deals = self._deals[i][j] = strongest(own.arms.all, foe.armour)
        if takes is None:
            takes = self._takes[i][j] = strongest(foe.arms.all, own.armour)
        ours = _EXCHANGE.pack(*exchange_numbers(deals, takes, *terms))
        return terms, ours, ours[_HALF_EXCHANGE:] + ours[:_HALF_EXCHANGE]


def _table() -> Any:
    return [_row() for _ in range(TEAM_SIZE)]


def _row() -> list[Any]:
    return [None] * TEAM_SIZE


_PAIR_BYTES = PAIR_WIDTH * HALF
_NO_PAIR = bytes(_PAIR_BYTES)
_EVEN, _FASTER, _SLOWER = (ORDERS[order] for order in (0.0, 1.0, -1.0))


class Active(NamedTuple):
    """Who is out on one side: place in its team, what is known of it, strength and speed now."""

    place: int
    profile: Profile
    strength: Strength
    speed: float


class PokemonBlocks:
    """Writes `own.*` and `foe.*` of one seat into its buffer.

    Attributes:
        own_active, foe_active: since `write_pairs`; None where nobody is out.
    """

    def __init__(self, buffer: bytearray, gen: int) -> None:
        self._buffer = buffer
        self._gen = gen
        self.own = [Card(buffer, start) for start in _starts(layout.OWN_START)]
        self.foe = [Card(buffer, start) for start in _starts(layout.FOE_START)]
        self.duels = Duels(self.own, self.foe)
        self.own_active: Active | None = None
        self.foe_active: Active | None = None
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
            start = layout.FOE_START + index * layout.POKEMON_WIDTH
            self.foe[index] = Card(self._buffer, start)
            self._buffer[start * HALF : (start + layout.POKEMON_WIDTH) * HALF] = bytes(layout.POKEMON_WIDTH * HALF)
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
        """What it is is written anew when `key` is another: it holds all that a body is made from."""
        entry = battle.entries[index]
        types = types_of(mon)
        born = base_types_of(mon)  # a forme change shows in them even where terastallizing hides it in `types`
        ability, tera, item = entry.get("ability"), entry.get("terastallized"), entry["item"]
        names = entry["moves"][: layout.MOVE_SLOTS]
        key = (mon._species, types, born, ability, item, entry["stats"], mon._max_hp, tera, mon._level)
        if key != card.key or names != card.names:
            card.key = key
            body = own_body(mon, entry, types)
            card.embody(self._gen, mon, body, item, body.tera)
            card.arm(self._gen, names)
            self.duels.forget_own(index)
        card.revealed = mon._revealed
        card.pack(mon, battle.counters, own_pp(battle.counters, mon, names))

    def _write_foe_body(self, counters: Counters, index: int, mon: Pokemon, card: Card) -> None:
        """`key` as for an own one."""
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
            mon._temporary_base_stats,
            mon._level,
        )
        other_body = key != card.key
        if other_body:
            card.key = key
            tera = mon._terastallized_type
            card.embody(self._gen, mon, foe_body(self._gen, mon), mon._item, tera._value_ if tera else 0)
        if other_body or names != card.names:
            card.arm(self._gen, names, guess=len(names) < layout.MOVE_SLOTS)
            self.duels.forget_foe(index, other_body)
        card.pack(mon, counters, counters.pp_left(list(moves.values())[: layout.MOVE_SLOTS]))

    def write_pairs(self, scene: Scene, own: list[Pokemon], foes: list[Pokemon], own_out: int, foe_out: int) -> None:
        """How every Pokemon stands against the other side's active one."""
        trick_room = bool(scene.field[TRICK_ROOM])
        mine = self.own_active = _active(self.own, own, own_out, scene.own_side)
        theirs = self.foe_active = _active(self.foe, foes, foe_out, scene.foe_side)
        self._face(OWN, self.own, own, mine, theirs, screens(scene.own_side), trick_room)
        self._face(FOE, self.foe, foes, theirs, mine, screens(scene.foe_side), trick_room)

    def _face(
        self,
        whose: int,
        cards: list[Card],
        team: list[Pokemon],
        active: Active | None,
        facing: Active | None,
        screen: tuple[float, float],
        trick_room: bool,
    ) -> None:
        """Pairs of one team against the Pokemon it faces; unchanged ones of the bench stay as they are."""
        out = -1 if active is None else active.place
        situation = (facing, screen, trick_room)
        same = situation == self._facing[whose]
        self._facing[whose] = situation
        buffer, exchange = self._buffer, self.duels.exchange
        for index, mon in enumerate(team):
            card = cards[index]
            if same and not card.fresh:
                continue
            card.fresh = index == out  # an active one's stages are gone when it leaves
            if facing is None:
                buffer[card.pair_at : card.pair_at + _PAIR_BYTES] = _NO_PAIR
                continue
            opposite, _, foe_strength, foe_speed = facing
            if active is not None and index == out:
                _, _, strength, speed = active
            else:
                strength, speed = bench_strength(mon, screen), card.speed
            if whose == OWN:
                pair = exchange(index, opposite, strength, foe_strength)[1]
            else:
                pair = exchange(opposite, index, foe_strength, strength)[2]
            if speed == foe_speed:
                order = _EVEN
            else:
                order = _FASTER if (speed > foe_speed) != trick_room else _SLOWER
            buffer[card.pair_at : card.pair_at + _PAIR_BYTES] = pair + order


def _active(cards: list[Card], team: list[Pokemon], out: int, side: Sequence[float]) -> Active | None:
    if out < 0:
        return None
    mon, card = team[out], cards[out]
    card.fresh = True
    return Active(out, card.profile, active_strength(mon, screens(side)), card.speed * STAGES[mon._boosts["spe"] + 6])


def _starts(first: int) -> list[int]:
    return [first + index * layout.POKEMON_WIDTH for index in range(layout.TEAM_SIZE)]
