"""poke-env's offline `Battle` for one seat, with shorter paths where the time goes.

It reads the seat's protocol lines, then the seat's request, and nothing else. Differences from the stock class: lines
without state are skipped before they are copied, common lines take a shorter path (`protocol_lines.SHORT_WAYS`), no
replay is kept, and own Pokemon with an unchanged request entry are not parsed again. A test compares the state with
that of the stock class.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from poke_env.battle.abstract_battle import AbstractBattle
from poke_env.battle.battle import Battle
from poke_env.battle.double_battle import DoubleBattle
from poke_env.battle.pokemon import Pokemon

from simul.env_worker.games.pokemon.battle_view.corrections import CORRECTED, Corrections, Slots
from simul.env_worker.games.pokemon.battle_view.counters import COUNTED, Counters
from simul.env_worker.games.pokemon.battle_view.protocol_lines import (
    LOCAL_LINES,
    PARSE_FAILURES,
    SHORT_WAYS,
    SKIPPED_LINES,
    active_of,
    set_hp,
)

Entry = dict[str, Any]  # one of request["side"]["pokemon"]


def put_in_order(team: dict[str, Pokemon], positions: dict[str, int]) -> None:
    """Put the team in the request's order; under Illusion a lead was named by another's name before the request."""
    ordered = sorted(team.items(), key=lambda item: positions.get(item[0], len(positions)))
    team.clear()
    team.update(ordered)


def update_from_entry(mon: Pokemon, entry: Entry) -> None:
    """Does what `update_from_request` does, without parsing moves that have not changed."""
    last = mon._last_request
    moves = mon._moves
    if not last or last["moves"] != entry["moves"] or moves._transform_moves is not None or moves._mimic_move:
        mon.update_from_request(entry)
        return
    mon._active = entry["active"]
    if mon.ability is None:
        mon.ability = entry["baseAbility"]
    if "ability" in entry and entry["ability"] != entry["baseAbility"]:
        mon.temporary_ability = entry["ability"]
    mon._last_request = entry
    set_hp(mon, entry["condition"], store=True)
    mon._name = entry["ident"][4:]
    mon._item = entry["item"]
    mon._update_from_details(entry["details"])
    if "stats" in entry:
        mon._stats.update(entry["stats"])


TEAM_SIZE = 6
Request = dict[str, Any]

logging.getLogger("poke-env").setLevel(logging.ERROR)  # it warns of every unknown effect, in the hot path


class SeatView(AbstractBattle):
    """One seat's view of one battle, whatever poke-env's class for it.

    Attributes:
        counters: what poke-env does not count.
        corrections: of what poke-env gets wrong.
        changed: Pokemon -> number of the feed or sync in which it, its counters or its request entry may last have
            changed; caches compare it. A missing Pokemon has not changed since it was created.
        entries: latest request entry of each own Pokemon, in team order (that of the first request).
        parse_errors: event name -> number of lines that poke-env could not parse.
        position: team position of an own Pokemon, by its ident: the action that switches to it.
    """

    _common: Mapping[str, Callable[[Any, list[str]], bool]] = {}

    def __init__(self, role: str, gen: int) -> None:
        super().__init__("battle", role, None, gen=gen)
        self._player_role = role
        self._replay_data: deque[list[str]] = deque(maxlen=0)
        self.counters = Counters()
        self.corrections = Corrections(self, self.counters, self._mark)
        self.changed: dict[Pokemon, int] = {}
        self.entries: list[Entry] = []
        self.parse_errors: dict[str, int] = {}
        self._positions: dict[str, int] = {}  # ident -> team position
        self.position: Callable[[str], int] = self._positions.__getitem__
        self._now = 0  # counts what is fed and synced

    def feed(self, lines: str) -> None:
        """Read the seat's protocol lines and mark the Pokemon that they may change."""
        self._now += 1
        self._mark([mon for team in (self._team, self._opponent_team) for mon in team.values() if mon._active])
        read, correct = self._read, self.corrections.read
        for line in lines.split("\n"):
            event = line.split("|")
            if len(event) < 2 or (kind := event[1]) in SKIPPED_LINES:
                continue
            try:
                if kind in CORRECTED:
                    correct(event, read)
                else:
                    read(event)
                if kind in COUNTED:
                    COUNTED[kind](self, self.counters, event)
            except PARSE_FAILURES:
                self.parse_errors[kind] = self.parse_errors.get(kind, 0) + 1
            if kind not in LOCAL_LINES:
                self._mark([*self._team.values(), *self._opponent_team.values(), *self._teampreview_opponent_team])

    def _read(self, event: list[str]) -> None:
        short = self._common.get(event[1])
        if short is None or not short(self, event):
            self.parse_message(event)

    def get_pokemon(
        self, identifier: str, force_self_team: bool = False, details: str = "", request: Entry | None = None
    ) -> Pokemon:
        """The stock look-up; marks the Pokemon, since its caller may change it."""
        mon = super().get_pokemon(identifier, force_self_team, details, request)
        self.changed[mon] = self._now
        return mon

    @property
    def foe_team_size(self) -> int:
        """Pokemon the opponent brings."""
        return self._team_size.get("p1" if self._player_role == "p2" else "p2", TEAM_SIZE)

    def foes(self) -> tuple[list[Pokemon], int]:
        """Opponents: those that have been out, in order of appearance, and how many that are; then those that
        only team preview has shown, unless all that were brought are known."""
        foes = list(self._opponent_team.values())[:TEAM_SIZE]
        met = len(foes)
        if not self._teampreview_opponent_team or met >= self.foe_team_size:
            return foes, met
        known = [mon.base_species for mon in foes]
        for mon in self._teampreview_opponent_team:
            name = mon.base_species
            if name in known:
                known.remove(name)
            else:
                foes.append(mon)
        return foes[:TEAM_SIZE], met

    def _register_teampreview_pokemon(self, player: str, details: str) -> None:
        """Set full hp too; the stock method leaves it unset."""
        super()._register_teampreview_pokemon(player, details)
        if player != self._player_role:
            self._teampreview_opponent_team[-1].set_hp_status("100/100")

    def sync(self, request: Request) -> None:
        """Bring the own team in line with a request; what else it says is read from the request itself."""
        self._now += 1
        side: list[Entry] = request["side"]["pokemon"]
        seeming = None if self._positions else self.corrections.before_request()
        mons = [self._team.get(entry["ident"]) for entry in side]
        if None in mons or len(self._positions) < len(side):
            mons = self._meet(side)
        self._correct_active(side, mons, seeming)
        for entry, mon in zip(side, mons):
            if mon is None:  # poke-env confuses some species (Porygon, Porygon-Z), and one of the two is missing
                self.parse_errors["request"] = self.parse_errors.get("request", 0) + 1
                continue
            last = mon._last_request
            same = (last is entry or last == entry) and mon._last_details == entry["details"]
            if entry["active"] or not same or self._was_named(mon):
                forme, details = mon._species, mon._last_details
                update_from_entry(mon, entry)
                self.corrections.keep_forme(mon, forme, details)
                self.entries[self._positions[entry["ident"]]] = entry
                self.changed[mon] = self._now
        if seeming is not None:
            self.corrections.name_copied_abilities()
        for mon, asked in zip(mons, request.get("active", ())):
            if mon is not None and asked:
                self.counters.read_pp(mon.moves, asked["moves"])
                self.corrections.offered(mon, asked["moves"])

    def _was_named(self, mon: Pokemon) -> bool:
        """Whether lines since the last request may have changed a Pokemon that they did not mean."""
        return False

    def parse_request(self, request: Request, strict_battle_tracking: bool = False) -> None:
        """What the bots read instead of `sync`: the stock method, corrected."""
        self.corrections.request(request, super().parse_request)

    def _meet(self, side: list[Entry]) -> list[Pokemon | None]:
        """Add Pokemon that no earlier request named to the team; returns the team in the request's order."""
        positions = self._positions
        first = not positions
        for entry in side:
            ident = entry["ident"]
            if ident not in self._team:
                self.get_pokemon(ident, force_self_team=True, details=entry["details"], request=entry)
            if ident not in positions:
                positions[ident] = len(positions)
                self.entries.append(entry)
        if first:
            put_in_order(self._team, positions)
        return [self._team.get(entry["ident"]) for entry in side]

    def _correct_active(self, side: list[Entry], mons: list[Pokemon | None], seeming: Slots | None) -> None:
        """Illusion: only the request knows who is really out. `seeming`: who was before a first request."""
        wrong = [mon for entry, mon in zip(side, mons) if mon is not None and mon._active != entry["active"]]
        if not wrong:
            return
        self._mark(wrong)
        first = seeming is not None
        seeming = seeming or self.corrections.before_request()
        came = [mon for mon in wrong if not mon._active]
        for mon in wrong:
            if mon._active:
                mon.was_illusioned(self._fields)
                if mon._last_request:  # Regenerator has not healed it
                    set_hp(mon, mon._last_request["condition"])
                self.corrections.left_field(mon)
        for mon in came:
            mon._active = True  # not `switch_in`: the other side has seen its disguise, not it
        out = [mon for entry, mon in zip(side, mons) if mon is not None and entry["active"]]
        self.corrections.after_request(seeming, out if first else came)

    def _mark(self, mons: Iterable[Pokemon]) -> None:
        for mon in mons:
            self.changed[mon] = self._now


class SeatBattle(SeatView, Battle):
    """One seat's view of one battle of singles."""

    _common = SHORT_WAYS

    def get_pokemon(
        self, identifier: str, force_self_team: bool = False, details: str = "", request: Entry | None = None
    ) -> Pokemon:
        """The stock look-up, with a short cut for known Pokemon that cannot be under Illusion."""
        if identifier[3] != " ":
            ident = identifier[:2] + identifier[3:]
            mon = self._opponent_team.get(ident)
            if mon is None:
                mon = self._team.get(ident)
                if mon is not None and not mon._active and active_of(self._team) is not None:  # perhaps Illusion
                    mon = None
            if mon is not None:
                self.changed[mon] = self._now
                return mon
        return super().get_pokemon(identifier, force_self_team, details, request)


class SeatDoubleBattle(SeatView, DoubleBattle):
    """One seat's view of one battle of doubles."""

    _synced = 0  # when the last request was read

    def sync(self, request: Request) -> None:
        """Bring the own team in line with a request; its first two entries are the left and the right slot."""
        super().sync(request)
        self._synced = self._now
        if request.get("teamPreview"):
            return
        for letter, entry in zip("ab", request["side"]["pokemon"]):
            self._active_pokemon[f"{self._player_role}{letter}"] = self._team[entry["ident"]]

    def _was_named(self, mon: Pokemon) -> bool:
        """A partner in disguise is called by another's name."""
        return self.changed.get(mon, 0) > self._synced
