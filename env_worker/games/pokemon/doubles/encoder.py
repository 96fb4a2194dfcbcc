"""Writes one slot's decision into the layout of doubles: float16 [OBSERVATION_SIZE], fresh at every decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from poke_env.battle.pokemon import Pokemon
from poke_env.battle.status import Status

from simul.env_worker.games.pokemon.battle_view.seat_battle import Request, SeatDoubleBattle
from simul.env_worker.games.pokemon.doubles.actions import TARGETS, SlotChoices, meaning
from simul.env_worker.games.pokemon.doubles.blocks import (
    ActivePair,
    MatchupCache,
    MoveBlocks,
    TeamMember,
    body_numbers,
    foe_member,
    own_member,
    pair_numbers,
)
from simul.env_worker.games.pokemon.encoding.actions import GIMMICKS
from simul.env_worker.games.pokemon.encoding.features import TRICK_ROOM, active_numbers, gimmicks_spent
from simul.env_worker.games.pokemon.encoding.field_state import FieldState, read_field_state
from simul.env_worker.games.pokemon.encoding.profiles import move_row
from simul.env_worker.games.pokemon.host.tally import Standing
from simul.env_worker.games.pokemon.tables import doubles_layout as layout
from simul.env_worker.games.pokemon.tables import layout as singles

_NO_PREVIEW = [0.0] * singles.width(singles.PREVIEW)


class SlotDecision(Protocol):
    """Which slot decides (0 left, 1 right), its choices and the other's, the left one's action once it is made."""

    @property
    def slot(self) -> int: ...
    @property
    def choices(self) -> SlotChoices: ...
    @property
    def others(self) -> SlotChoices: ...
    @property
    def first(self) -> int | None: ...


class DoubleEncoder:
    """Encodes one seat of one battle.

    Attributes:
        standing: (own alive, foe alive, own hp sum, foe hp sum) at the last encoding, as in singles.
    """

    def __init__(self, battle: SeatDoubleBattle, gen: int) -> None:
        self._battle = battle
        self._matchups = MatchupCache(gen)
        self._moves = MoveBlocks(self._matchups, gen)
        self.standing = (6.0, 6.0, 6.0, 6.0)

    def encode(self, request: Request, asked: SlotDecision) -> NDArray[np.float16]:
        """The observation of the slot that decides; the battle must be in sync with the request."""
        battle = self._battle
        own_mons = list(battle._team.values())[: layout.TEAM_SIZE]
        foe_mons, met = battle.foes()
        self.survey()
        field_state = read_field_state(battle, None, None)
        own, foes = self._own(request, own_mons, field_state), self._foes(foe_mons, field_state)
        standing, facing = _standers(own), _standers(foes)
        trick_room = bool(field_state.field[TRICK_ROOM])
        numbers = self._global(request, asked, field_state, standing, facing)
        for team, opposite, known in ((own, facing, len(own)), (foes, standing, met)):
            for index, fighter in enumerate(team):
                revealed = fighter.mon._revealed if team is own else index < known
                numbers += body_numbers(battle.counters, fighter, revealed)
                for other in opposite:
                    numbers += pair_numbers(self._matchups, fighter, other, trick_room)
            numbers += [0.0] * (layout.POKEMON_WIDTH * (layout.TEAM_SIZE - len(team)))
        for slot, choices in ((asked.slot, asked.choices), (1 - asked.slot, asked.others)):
            numbers += self._moves.numbers(request, slot, choices, field_state, standing[slot], facing)
        numbers += asked.choices.mask
        assert len(numbers) == layout.OBSERVATION_SIZE
        return np.array(numbers, dtype=np.float16)

    def survey(self) -> Standing:
        """Update `standing` only."""
        battle = self._battle
        foes, met = battle.foes()
        unseen = max(battle.foe_team_size - met - battle.corrections.hidden_faints, 0)
        own_alive, own_hp = _survey(list(battle._team.values())[: layout.TEAM_SIZE])
        foe_alive, foe_hp = _survey(foes[:met])
        self.standing = (own_alive, foe_alive + unseen, own_hp, foe_hp + unseen)
        return self.standing

    def _own(self, request: Request, mons: list[Pokemon], field_state: FieldState) -> list[TeamMember]:
        battle = self._battle
        slots = {}
        if not request.get("teamPreview"):
            slots = {battle.position(entry["ident"]): slot for slot, entry in enumerate(request["side"]["pokemon"][:2])}
        return [
            own_member(
                battle, self._matchups, mon, battle.entries[index],
                -1 if mon._status is Status.FNT else slots.get(index, -1), field_state.own_side,
            )
            for index, mon in enumerate(mons)
        ]  # fmt: skip

    def _foes(self, mons: list[Pokemon], field_state: FieldState) -> list[TeamMember]:
        battle = self._battle
        out = battle.opponent_active_pokemon
        slots = {id(mon): slot for slot, mon in enumerate(out) if mon is not None}
        return [foe_member(battle, self._matchups, mon, slots.get(id(mon), -1), field_state.foe_side) for mon in mons]

    def _global(
        self, request: Request, asked: SlotDecision, field_state: FieldState, own: ActivePair, foes: ActivePair
    ) -> list[float]:
        battle = self._battle
        own_alive, foe_alive, own_hp, foe_hp = self.standing
        own_spent, foe_spent = gimmicks_spent(battle)
        actives = (own[asked.slot], own[1 - asked.slot], *foes)
        return [
            min(battle._turn / 100, 1.0),
            asked.slot == 1,
            asked.choices.reviving,
            *_demands(request, asked.slot),
            *_demands(request, 1 - asked.slot),
            *self._first(asked),
            *field_state.weather,
            *field_state.field,
            *field_state.own_side,
            own_alive / 6,
            own_hp / 6,
            own_spent,
            *field_state.foe_side,
            foe_alive / 6,
            foe_hp / 6,
            foe_spent,
            *[n for one in actives for n in active_numbers(one.mon if one else None, battle.corrections)],
            *_NO_PREVIEW,
        ]

    def _first(self, asked: SlotDecision) -> list[float]:
        """`doubles_layout.FIRST`: what the left slot has chosen."""
        chosen = meaning(asked.first) if asked.first is not None else None
        if chosen is None:
            return [0.0] * 17
        entry = asked.others.move_entries[chosen.move] if chosen.move >= 0 else None
        return [
            1.0,
            *[float(chosen.member == i) for i in range(layout.TEAM_SIZE)],
            float(move_row(entry["id"])) if entry is not None else 0.0,
            *[float(chosen.move >= 0 and chosen.target == target) for target in TARGETS],
            *[float(chosen.gimmick == kind) for kind in range(1, 1 + len(GIMMICKS))],
        ]


def _demands(request: Request, slot: int) -> list[float]:
    """`doubles_layout.ASKED` of one slot."""
    active = request.get("active") or ()
    asked = (active[slot] if slot < len(active) else None) or {}
    demanded = request.get("forceSwitch", ())
    return [
        slot < len(demanded) and demanded[slot],
        "trapped" in asked,
        "maybeTrapped" in asked,
        *[key in asked for key, _ in GIMMICKS],
    ]


def _standers(team: Sequence[TeamMember]) -> ActivePair:
    found: ActivePair = [None, None]
    for fighter in team:
        if fighter.slot >= 0:
            found[fighter.slot] = fighter
    return found


def _survey(team: list[Pokemon]) -> tuple[float, float]:
    """Number alive, and sum of hp fractions."""
    alive = sum(mon._status is not Status.FNT for mon in team)
    return float(alive), sum(mon._current_hp / mon._max_hp for mon in team if mon._current_hp)
