"""One Pokemon of a battle of doubles as numbers: what it is, and how it stands against an opponent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from poke_env.battle.pokemon import Pokemon
from poke_env.battle.status import Status

from simul.env_worker.games.pokemon.battle_view.counters import Counters
from simul.env_worker.games.pokemon.battle_view.own_team import Entry
from simul.env_worker.games.pokemon.battle_view.profiles import foe_profile, item_row, move_row, own_profile, types_of
from simul.env_worker.games.pokemon.battle_view.seat_battle import SeatView
from simul.env_worker.games.pokemon.doubles import matchups as between
from simul.env_worker.games.pokemon.doubles.matchups import Matchups
from simul.env_worker.games.pokemon.encoding.combatants import Profile
from simul.env_worker.games.pokemon.encoding.features import status_numbers
from simul.env_worker.games.pokemon.encoding.field_state import Factors, active_factors, base_speed, screens
from simul.env_worker.games.pokemon.encoding.pokemon_features import foe_pp, own_pp
from simul.env_worker.games.pokemon.encoding.vocabulary import vocabulary

MOVES = 4


class Fighter(NamedTuple):
    """A Pokemon as it stands now; `slot`: 0 left, 1 right, -1 not on the field; `pp`: of its known moves."""

    mon: Pokemon
    profile: Profile
    factors: Factors
    ids: tuple[int, ...]
    slot: int
    pp: list[float]


Standers = list[Fighter | None]  # left, right; None where nobody stands


def own_fighter(
    battle: SeatView, matchups: Matchups, mon: Pokemon, entry: Entry, slot: int, side: Sequence[float]
) -> Fighter:
    """A member of the seat's own team; `entry` is its latest request entry, `side` as `side_numbers` gives it."""
    profile = matchups.intern(own_profile(battle._gen, mon, entry, types_of(mon)))
    ids = _ids(mon, profile, entry["item"], entry["moves"], profile.body.tera)
    pp = own_pp(battle.counters, mon, entry["moves"])
    return Fighter(mon, profile, _factors(battle._gen, mon, profile, slot, side), ids, slot, pp)


def foe_fighter(battle: SeatView, matchups: Matchups, mon: Pokemon, slot: int, side: Sequence[float]) -> Fighter:
    """An opponent, as far as it is known."""
    profile = matchups.intern(foe_profile(battle._gen, mon))
    tera = mon._terastallized_type
    ids = _ids(mon, profile, mon._item, mon.moves, int(tera.value) if tera else 0)
    pp = foe_pp(battle.counters, mon)
    return Fighter(mon, profile, _factors(battle._gen, mon, profile, slot, side), ids, slot, pp)


def body_numbers(counters: Counters, fighter: Fighter, revealed: bool) -> list[float]:
    """`doubles.layout.BODY` and the slot."""
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


def pair_numbers(matchups: Matchups, own: Fighter, other: Fighter | None, trick_room: bool) -> list[float]:
    """`doubles.layout.PAIR_NAMES` of one Pokemon against one that stands opposite; zero where nobody does."""
    if other is None:
        return [0.0] * 5
    return [*between.pair_numbers(matchups.pair(own.profile, other.profile), own.factors, other.factors, trick_room)]


def _factors(gen: int, mon: Pokemon, profile: Profile, slot: int, side: Sequence[float]) -> Factors:
    speed = base_speed(gen, profile.body, mon._status is Status.PAR)
    if slot >= 0:
        return active_factors(mon, speed, side)
    return Factors(0.5 if mon._status is Status.BRN else 1.0, 1.0, *screens(side), speed)


def _ids(mon: Pokemon, profile: Profile, item: str | None, moves: Iterable[str], tera: int) -> tuple[int, ...]:
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
