"""One seat's battle at one request, as the damage formula reads it: Pokemon that may attack or be hit."""

from __future__ import annotations

from typing import NamedTuple

from poke_env.battle.double_battle import DoubleBattle
from poke_env.battle.field import Field
from poke_env.battle.pokemon import Pokemon
from poke_env.battle.side_condition import SideCondition
from poke_env.battle.status import Status

from simul.env_worker.games.pokemon.battle_view.seat_battle import Entry, Request, SeatView
from simul.env_worker.games.pokemon.damage.from_battle import (
    WEATHER_CANCELLERS,
    damage_inputs,
    fighter,
    fighter_inputs,
    screens_of,
    surroundings,
)
from simul.env_worker.games.pokemon.damage.types import Fighter, Surroundings
from simul.env_worker.games.pokemon.encoding.profiles import foe_profile, own_profile, types_of

MOVES = 4


class Combatant(NamedTuple):
    """One Pokemon.

    Attributes:
        names: its moves as requests spell them; guess: True = it may have unseen attacks of its types.
        hp: share of its full hp that is left.
        aim, evasion: stages of accuracy and evasion.
        fresh: it has had no turn since it came in.
        asleep: it has the status sleep.
    """

    fighter: Fighter
    names: tuple[str, ...]
    hp: float = 1.0
    guess: bool = False
    aim: int = 0
    evasion: int = 0
    fresh: bool = False
    asleep: bool = False


class View(NamedTuple):
    """What the seat knows of both sides.

    Attributes:
        bench: the own team in the request's order, None where poke-env has lost one.
        foes: those that are out (left, right in doubles), None = empty.
        own_screens, foe_screens: reflect, lightscreen, auroraveil.
        winds: own, foes': 2 where a side has a tailwind, else 1.
    """

    around: Surroundings
    bench: tuple[Combatant | None, ...]
    foes: tuple[Combatant | None, ...]
    own_screens: tuple[str, ...] = ()
    foe_screens: tuple[str, ...] = ()
    winds: tuple[int, int] = (1, 1)
    trick_room: bool = False


def read_view(gen: int, battle: SeatView, request: Request) -> View:
    """Read a battle that has parsed `request`."""
    side: list[Entry] = request["side"]["pokemon"]
    exact = any([damage_inputs(gen, tuple(entry["moves"][:MOVES])).foes_hp for entry in side])
    own, theirs = battle._side_conditions, battle._opponent_side_conditions
    return View(
        around=surroundings(battle._weather, battle._fields, (_weather_canceller(battle, side), "")),
        bench=tuple([_own(gen, battle, entry) for entry in side]),
        foes=tuple([_foe(gen, battle, mon, exact) for mon in foes_out(battle)]),
        own_screens=screens_of(own),
        foe_screens=screens_of(theirs),
        winds=(1 + (SideCondition.TAILWIND in own), 1 + (SideCondition.TAILWIND in theirs)),
        trick_room=Field.TRICK_ROOM in battle._fields,
    )


def foes_out(battle: SeatView) -> list[Pokemon | None]:
    """One in singles, left and right in doubles; None = empty."""
    out = battle.opponent_active_pokemon
    mons = out if isinstance(battle, DoubleBattle) else [out]
    return [mon if mon is not None and mon._status is not Status.FNT else None for mon in mons]


def shown_foes(gen: int, battle: SeatView) -> list[Combatant]:
    """The foes that team preview shows."""
    found = [_foe(gen, battle, mon, exact=False) for mon in battle._teampreview_opponent_team]
    return [foe for foe in found if foe is not None]


def _own(gen: int, battle: SeatView, entry: Entry) -> Combatant | None:
    mon = battle._team.get(entry["ident"])
    if mon is None:
        return None
    names = tuple(entry["moves"][:MOVES])
    want = damage_inputs(gen, names)
    down = sum([other._status is Status.FNT for other in battle._team.values()]) if want.fallen else 0
    body = own_profile(gen, mon, entry, types_of(mon), battle.corrections.facts(mon).copied).body
    return _combatant(
        mon, fighter(fighter_inputs(mon, body, want.own_hp, entry["active"], down)), names, out=entry["active"]
    )


def _foe(gen: int, battle: SeatView, mon: Pokemon | None, exact: bool) -> Combatant | None:
    if mon is None:
        return None
    profile = foe_profile(gen, mon, battle.corrections.facts(mon).copied)
    names = tuple(list(mon.moves)[:MOVES])
    want = damage_inputs(gen, names)
    down = sum([other._status is Status.FNT for other in battle._opponent_team.values()]) if want.fallen else 0
    seen = fighter_inputs(mon, profile.body, exact or want.own_hp, mon._active, down)
    return _combatant(mon, fighter(seen), names, out=mon._active)._replace(guess=profile.guess)


def _combatant(mon: Pokemon, fighter: Fighter, names: tuple[str, ...], *, out: bool) -> Combatant:
    boosts = mon._boosts if out else {}
    return Combatant(
        fighter,
        names,
        hp=(mon._current_hp or 0) / (mon._max_hp or 1),
        aim=boosts.get("accuracy", 0),
        evasion=boosts.get("evasion", 0),
        fresh=out and mon.first_turn,
        asleep=mon._status is Status.SLP,
    )


def _weather_canceller(battle: SeatView, side: list[Entry]) -> str:
    """The ability of an active Pokemon that suppresses the weather; empty for none."""
    abilities = [entry.get("ability") or entry.get("baseAbility", "") for entry in side if entry["active"]]
    abilities += [mon.ability or "" for mon in foes_out(battle) if mon is not None]
    return next((ability for ability in abilities if ability in WEATHER_CANCELLERS), "")
