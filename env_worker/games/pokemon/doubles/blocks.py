"""The blocks of one Pokemon and of one move in doubles: what each is, and how it stands against either opponent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from poke_env.battle.pokemon import Pokemon
from poke_env.battle.status import Status

from simul.env_worker.games.pokemon.battle_view.counters import Counters
from simul.env_worker.games.pokemon.battle_view.seat_battle import Entry, Request, SeatView
from simul.env_worker.games.pokemon.damage.types import Body
from simul.env_worker.games.pokemon.doubles.actions import FIRST_MOVE, PER_MOVE, SlotChoices
from simul.env_worker.games.pokemon.encoding.expected_damage import (
    BestDamage,
    DamageProfile,
    Defence,
    MoveDamage,
    Offence,
    best_damage,
    defence_of,
    exchange_numbers,
    move_damage,
    offence_of,
)
from simul.env_worker.games.pokemon.encoding.features import status_numbers
from simul.env_worker.games.pokemon.encoding.field_state import Factors, FieldState, active_factors, base_speed, screens
from simul.env_worker.games.pokemon.encoding.move_features import (
    damage_scale,
    offered_move,
    present_numbers,
    static_numbers,
)
from simul.env_worker.games.pokemon.encoding.pokemon_features import foe_pp, own_pp
from simul.env_worker.games.pokemon.encoding.profiles import foe_profile, item_row, move_row, own_profile, types_of
from simul.env_worker.games.pokemon.tables import doubles_layout as layout
from simul.env_worker.games.pokemon.tables import layout as singles
from simul.env_worker.games.pokemon.tables.vocabulary import vocabulary

Pair = tuple[BestDamage, BestDamage]


class MatchupCache:
    """Memoised by identity: profiles and bodies are interned here and live as long as the battle."""

    def __init__(self, gen: int) -> None:
        self._gen = gen
        self._bodies: dict[Body, Body] = {}
        self._profiles: dict[DamageProfile, DamageProfile] = {}
        self._offences: dict[int, Offence] = {}
        self._defences: dict[int, Defence] = {}
        # A small table for each target: one large table misses the processor's cache.
        self._attacks: dict[int, dict[int, BestDamage]] = {}  # target -> user
        self._move_damages: dict[tuple[int, int], list[MoveDamage]] = {}

    def intern(self, profile: DamageProfile) -> DamageProfile:
        """The one profile that equals this one; only such profiles may be asked about."""
        body = self._bodies.setdefault(profile.body, profile.body)
        profile = profile._replace(body=body)
        return self._profiles.setdefault(profile, profile)

    def pair(self, own: DamageProfile, other: DamageProfile) -> Pair:
        """Best damage of `own` to `other`, and of `other` to `own`."""
        return self._attack(own, other.body), self._attack(other, own.body)

    def move_damages(self, user: DamageProfile, target: Body) -> list[MoveDamage]:
        """Each of a user's moves, by slot."""
        key = (id(user), id(target))
        found = self._move_damages.get(key)
        if found is None:
            armoured = self._target(target)
            found = self._move_damages[key] = [move_damage(move, armoured) for move in self._offence_of(user).slots]
        return found

    def _attack(self, user: DamageProfile, target: Body) -> BestDamage:
        attacks = self._attacks.get(id(target))
        if attacks is None:
            attacks = self._attacks[id(target)] = {}
        found = attacks.get(id(user))
        if found is None:
            found = attacks[id(user)] = best_damage(self._offence_of(user).all, self._target(target))
        return found

    def _offence_of(self, profile: DamageProfile) -> Offence:
        found = self._offences.get(id(profile))
        if found is None:
            found = self._offences[id(profile)] = offence_of(self._gen, profile)
        return found

    def _target(self, body: Body) -> Defence:
        found = self._defences.get(id(body))
        if found is None:
            found = self._defences[id(body)] = defence_of(self._gen, body)
        return found


def matchup_numbers(pair: Pair, own: Factors, other: Factors, trick_room: bool) -> tuple[float, ...]:
    """`layout.POKEMON` from `deals` to `moves_first`."""
    order = 0.0 if own.speed == other.speed else 1.0 if (own.speed > other.speed) != trick_room else -1.0
    return (*exchange_numbers(*pair, own.strength, other.strength), order)


MOVES = 4


class TeamMember(NamedTuple):
    """A Pokemon as it stands now; `slot`: 0 left, 1 right, -1 not on the field; `pp`: of its known moves."""

    mon: Pokemon
    profile: DamageProfile
    factors: Factors
    ids: tuple[int, ...]
    slot: int
    pp: list[float]


ActivePair = list[TeamMember | None]  # left, right; None = empty


def own_member(
    battle: SeatView, matchups: MatchupCache, mon: Pokemon, entry: Entry, slot: int, side: Sequence[float]
) -> TeamMember:
    """A member of the seat's own team; `entry` is its latest request entry, `side` as `side_numbers` gives it."""
    copied = battle.corrections.facts(mon).copied
    profile = matchups.intern(own_profile(battle._gen, mon, entry, types_of(mon), copied))
    ids = _ids(mon, profile, entry["item"], entry["moves"], profile.body.tera)
    pp = own_pp(battle.counters, mon, entry["moves"])
    return TeamMember(mon, profile, _factors(battle._gen, mon, profile, slot, side), ids, slot, pp)


def foe_member(battle: SeatView, matchups: MatchupCache, mon: Pokemon, slot: int, side: Sequence[float]) -> TeamMember:
    """An opponent's Pokemon, as far as it is known."""
    profile = matchups.intern(foe_profile(battle._gen, mon, battle.corrections.facts(mon).copied))
    tera = mon._terastallized_type
    ids = _ids(mon, profile, mon._item, mon.moves, int(tera.value) if tera else 0)
    pp = foe_pp(battle.counters, mon)
    return TeamMember(mon, profile, _factors(battle._gen, mon, profile, slot, side), ids, slot, pp)


def body_numbers(counters: Counters, fighter: TeamMember, revealed: bool) -> list[float]:
    """`doubles_layout.BODY` and the slot."""
    mon, body = fighter.mon, fighter.profile.body
    hp = mon._current_hp
    return [
        *fighter.ids,
        1.0,
        hp / mon._max_hp if hp else 0.0,
        mon._status is Status.FNT,
        fighter.slot >= 0,
        revealed,
        body.terastallized,
        *status_numbers(mon),
        *counters.ailment_numbers(mon),
        mon._level / 100,
        *[min(stat / 500, 1.0) for stat in body.stats],
        *fighter.pp,
        *[0.0] * (MOVES - len(fighter.pp)),
        fighter.slot == 0,
        fighter.slot == 1,
    ]


def pair_numbers(matchups: MatchupCache, own: TeamMember, other: TeamMember | None, trick_room: bool) -> list[float]:
    """`doubles_layout.PAIR_NAMES` of one Pokemon against one that stands opposite; zeros where it is empty."""
    if other is None:
        return [0.0] * 5
    return [*matchup_numbers(matchups.pair(own.profile, other.profile), own.factors, other.factors, trick_room)]


def _factors(gen: int, mon: Pokemon, profile: DamageProfile, slot: int, side: Sequence[float]) -> Factors:
    speed = base_speed(gen, profile.body, mon._status is Status.PAR)
    if slot >= 0:
        return active_factors(mon, speed, side)
    return Factors(0.5 if mon._status is Status.BRN else 1.0, 1.0, *screens(side), speed)


def _ids(mon: Pokemon, profile: DamageProfile, item: str | None, moves: Iterable[str], tera: int) -> tuple[int, ...]:
    rows, body = vocabulary(), profile.body
    known = [move_row(name) for name in list(moves)[:MOVES]]
    return (
        rows.species.get(mon._species, 0),
        rows.ability.get(body.ability, 0),
        item_row(item),
        *known,
        *[0] * (MOVES - len(known)),
        body.types[0],
        body.types[1] if len(body.types) > 1 else 0,
        tera,
    )


_STARTS = {field.name: singles.width(singles.MOVE[:i]) for i, field in enumerate(singles.MOVE)}
_AGAINST = [_STARTS[name] for name in layout.AGAINST_NAMES]
_ALONE = [place for place in range(singles.MOVE_WIDTH) if place not in _AGAINST]
_NO_MOVE = [0.0] * layout.MOVE_WIDTH


class MoveBlocks:
    """Writes `move.*` and `partner_move.*`."""

    def __init__(self, matchups: MatchupCache, gen: int) -> None:
        self._matchups = matchups
        self._gen = gen

    def numbers(
        self,
        request: Request,
        slot: int,
        choices: SlotChoices,
        field_state: FieldState,
        user: TeamMember | None,
        foes: ActivePair,
    ) -> list[float]:
        """All four blocks of the Pokemon in a slot; zeros for an empty slot, or where no move is requested."""
        if user is None or "active" not in request:
            return _NO_MOVE * singles.MOVE_SLOTS
        numbers: list[float] = []
        known = request["side"]["pokemon"][slot]["moves"]
        can_tera = "canTerastallize" in request["active"][slot]
        damages = [self._matchups.move_damages(user.profile, foe.profile.body) if foe else None for foe in foes]
        for k in range(singles.MOVE_SLOTS):
            entry = choices.move_entries[k]
            if k >= len(known) and entry is None:
                numbers += _NO_MOVE
                continue
            name = known[k] if k < len(known) else ""
            info = user.profile.moves[k] if k < len(user.profile.moves) else None
            first = FIRST_MOVE + PER_MOVE * k
            usable = int(any(choices.mask[first : first + PER_MOVE]))
            rows = []
            for foe, of_foe in zip(foes, damages):
                move_damage = of_foe[k] if of_foe and k < len(of_foe) else None
                against = (
                    damage_scale(field_state, user.factors.strength, foe.factors.strength, foe.mon) if foe else None
                )
                move = offered_move(self._gen, (name, info, move_damage), entry)
                present = present_numbers(move, entry, against, usable, can_tera)
                rows.append((*static_numbers(*move[:2]), *present))
            alone = rows[0] if foes[0] else rows[1]
            numbers += [alone[place] for place in _ALONE]
            numbers += [row[place] for row in rows for place in _AGAINST]
        return numbers
