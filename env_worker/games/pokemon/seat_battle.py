"""poke-env's offline `Battle` for one seat, fed by hand and trimmed where the time goes.

The seat's protocol lines come first, then its request; nothing else is ever read. Against the stock class:
events that carry no state are skipped before they are copied, no replay is kept, and own Pokemon whose
request entry did not change are not parsed again. A test compares the state with the stock class.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import Any

from poke_env.battle.abstract_battle import AbstractBattle
from poke_env.battle.battle import Battle
from poke_env.battle.pokemon import Pokemon

from env_worker.games.pokemon.counters import COUNTED, Counters

TEAM_SIZE = 6
Entry = dict[str, Any]  # one of request["side"]["pokemon"]
Request = dict[str, Any]

# Routed by the source itself, or without any state in them (t: has the clock, win and tie come from the host).
SKIPPED = frozenset(Battle.MESSAGES_TO_IGNORE) | {
    "bigerror",
    "error",
    "gen",
    "inactive",
    "message",
    "-message",
    "player",
    "raw",
    "request",
    "rule",
    "showteam",
    "start",
    "t:",
    "tie",
    "tier",
    "title",
    "uhtmlchange",
    "win",
}
# What poke-env raises on protocol it does not understand; the line is skipped and counted.
PARSE_FAILURES = (AssertionError, AttributeError, IndexError, KeyError, NotImplementedError, TypeError, ValueError)

logging.getLogger("poke-env").setLevel(logging.ERROR)  # it warns of every unknown effect, in the hot path


class SeatView(AbstractBattle):
    """One seat's view of one battle, whatever poke-env's class for it.

    Attributes:
        counters: what poke-env does not count.
        dirty: team positions whose request entry changed since the encoder last looked.
        entries: latest request entry of each own Pokemon, in team order (that of the first request).
        parse_errors: event name -> lines poke-env could not take.
    """

    def __init__(self, role: str, gen: int) -> None:
        super().__init__("battle", role, None, gen=gen)
        self._player_role = role
        self._replay_data: deque[list[str]] = deque(maxlen=0)
        self.counters = Counters()
        self.dirty: set[int] = set()
        self.entries: list[Entry] = []
        self.parse_errors: dict[str, int] = {}
        self._positions: dict[str, int] = {}  # ident -> team position

    def feed(self, lines: str) -> None:
        """Take the seat's protocol lines."""
        parse = self.parse_message
        for line in lines.split("\n"):
            event = line.split("|")
            if len(event) < 2 or event[1] in SKIPPED:
                continue
            try:
                parse(event)
                if (count := COUNTED.get(event[1])) is not None:
                    count(self, event)
            except PARSE_FAILURES:
                self.parse_errors[event[1]] = self.parse_errors.get(event[1], 0) + 1

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
        """The stock method leaves them without hp."""
        super()._register_teampreview_pokemon(player, details)
        if player != self._player_role:
            self._teampreview_opponent_team[-1].set_hp_status("100/100")

    def position(self, ident: str) -> int:
        """Team position of an own Pokemon: the action that switches to it."""
        return self._positions[ident]

    def sync(self, request: Request) -> None:
        """Bring the own team in line with a request; what else it says is read from the request itself."""
        team, positions = self._team, self._positions
        first = not positions
        left: list[Pokemon] = []
        came: list[Pokemon] = []
        side: list[Entry] = request["side"]["pokemon"]
        for entry in side:
            ident = entry["ident"]
            mon = team.get(ident)
            if mon is None:
                mon = self.get_pokemon(ident, force_self_team=True, details=entry["details"], request=entry)
            if entry["active"] != mon._active:  # Illusion: only the request knows who is really out
                (came if entry["active"] else left).append(mon)
            if ident not in positions:
                positions[ident] = len(positions)
                self.entries.append(entry)
                self.dirty.add(positions[ident])
        if first:
            _order(self._team, positions)
        for mon in left:
            mon.was_illusioned(self._fields)
        for mon in came:
            mon.switch_in()
        for entry in side:
            mon = self._team.get(entry["ident"])
            if mon is None:  # poke-env takes some neighbours (Porygon, Porygon-Z) for one, and the other is gone
                self.parse_errors["request"] = self.parse_errors.get("request", 0) + 1
                continue
            if entry["active"] or mon._last_request != entry or mon._last_details != entry["details"]:
                _update(mon, entry)
                position = positions[entry["ident"]]
                self.entries[position] = entry
                self.dirty.add(position)
        for entry, asked in zip(side, request.get("active", ())):
            mon = self._team.get(entry["ident"])
            if mon is not None and asked:
                self.counters.read_pp(mon.moves, asked["moves"])


class SeatBattle(SeatView, Battle):
    """One seat's view of one battle of singles."""

    def get_pokemon(
        self, identifier: str, force_self_team: bool = False, details: str = "", request: Entry | None = None
    ) -> Pokemon:
        """The stock look-up, with a short cut for Pokemon on the field that nothing is strange about."""
        if identifier[3] != " ":
            ident = identifier[:2] + identifier[3:]
            mon = self._opponent_team.get(ident)
            if mon is None:
                mon = self._team.get(ident)
                if mon is not None and not mon._active:  # perhaps Illusion
                    mon = None
            if mon is not None:
                return mon
        return super().get_pokemon(identifier, force_self_team, details, request)


def _order(team: dict[str, Pokemon], positions: dict[str, int]) -> None:
    """A lead in disguise was named before the request by another's name: the request's order is the team's."""
    ordered = sorted(team.items(), key=lambda item: positions.get(item[0], len(positions)))
    team.clear()
    team.update(ordered)


def _update(mon: Pokemon, entry: Entry) -> None:
    """`update_from_request`, without looking at the moves again where they are the same as last time."""
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
    mon.set_hp_status(entry["condition"], store=True)
    mon._name = entry["ident"][4:]
    mon._item = entry["item"]
    mon._update_from_details(entry["details"])
    if "stats" in entry:
        mon._stats.update(entry["stats"])
