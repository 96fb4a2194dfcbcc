"""Which lines of the protocol mean what to a seat, and a short way for those that come every turn.

Each function of SHORT_WAYS does to the battle exactly what poke-env does, or returns False and leaves the line to it,
as for every line with a suffix or an effect. Singles only. A test compares the states.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from poke_env.battle.battle import Battle
from poke_env.battle.move import Move
from poke_env.battle.pokemon import Pokemon
from poke_env.battle.status import Status
from poke_env.data import GenData

# Routed by the source itself, or without any state in them (t: has the clock, win and tie come from the host).
SKIPPED_LINES = frozenset(Battle.MESSAGES_TO_IGNORE) - {"-anim", "-fail", "upkeep"} | {
    "bigerror", "error", "gen", "inactive", "message", "-message", "player", "raw", "request", "rule", "showteam",
    "start", "t:", "tie", "tier", "title", "uhtmlchange", "win",
}  # fmt: skip
# Lines that change only the Pokemon that they name and those on the field.
LOCAL_LINES = frozenset({
    "-ability", "-activate", "-anim", "-boost", "-clearallboost", "-clearboost", "-clearnegativeboost",
    "-clearpositiveboost", "-curestatus", "-damage", "-end", "-endability", "-enditem", "-fieldend", "-fieldstart",
    "-fail", "-heal", "-immune",
    "-mustrecharge", "-prepare", "-setboost", "-sethp", "-sideend", "-sidestart", "-singlemove", "-singleturn",
    "-start", "-status", "-terastallize", "-unboost", "-weather", "cant", "drag", "faint", "move", "switch",
    "teamsize", "turn", "upkeep",
})  # fmt: skip
# What poke-env raises on protocol it does not understand; the line is skipped and counted.
PARSE_FAILURES = (AssertionError, AttributeError, IndexError, KeyError, NotImplementedError, TypeError, ValueError)


FNT, SLP, TOX = Status.FNT, Status.SLP, Status.TOX
# Moves that poke-env treats specially: those that call others, and Minimize, whose effect no line reports.
SPECIAL_MOVES = frozenset(("Copycat", "Metronome", "Minimize", "Nature Power", "Sleep Talk"))
PRESSED = frozenset(["all", "allAdjacent", "allAdjacentFoes", "any", "normal", "randomNormal", "scripted"])


class MoveTarget(NamedTuple):
    """Target data of a move. known: False = no data (a z-move). pressed: Pressure makes it cost another pp."""

    id: str
    known: bool
    at_all: bool
    pressed: bool


@cache
def move_target(gen: int, name: str) -> MoveTarget:
    """Look a move up by the name that lines use."""
    move_id = Move.retrieve_id(name)
    entry = GenData.from_gen(gen).moves.get(move_id)
    if entry is None:
        return MoveTarget(move_id, False, False, False)
    target = entry["target"]
    return MoveTarget(move_id, True, target == "all", target in PRESSED or "mustpressure" in entry["flags"])


def set_hp(mon: Pokemon, condition: str, store: bool = False) -> None:
    """Does what `Pokemon.set_hp_status` does."""
    hp, _, full = condition.partition("/")
    if not (hp.isdigit() and full.isdigit()):  # it has a status, or has fainted
        mon.set_hp_status(condition, store)
        return
    mon._status = None
    mon._current_hp, mon._max_hp = int(hp), int(full)
    if store:
        mon._stats["hp"] = mon._max_hp


def active_of(team: dict[str, Pokemon]) -> Pokemon | None:
    """The Pokemon on the field; None where there is none."""
    for mon in team.values():
        if mon._active:
            return mon
    return None


def _hp(battle: Battle, event: list[str]) -> bool:
    if len(event) != 4:
        return False
    set_hp(battle.get_pokemon(event[2]), event[3])
    return True


def _boost(battle: Battle, event: list[str]) -> bool:
    ident, stat, amount = event[2:5]
    mon = battle.get_pokemon(ident)
    mon.boost(stat, int(amount) if event[1] == "-boost" else -int(amount))
    return True


def _turn(battle: Battle, event: list[str]) -> bool:
    battle._turn = int(event[2])
    for team in (battle._team, battle._opponent_team):
        mon = active_of(team)
        if mon is None:
            continue
        if mon._effects or mon._status is TOX:
            mon.end_turn()
        else:
            mon._active_turns += 1
    return True


def _switch(battle: Battle, event: list[str]) -> bool:
    ident, details, condition = event[2:5]
    before = active_of(battle._team if ident[:2] == battle._player_role else battle._opponent_team)
    if before is not None:
        before.switch_out(battle._fields)
    mon = battle.get_pokemon(ident, details=details)
    mon.switch_in(details)
    set_hp(mon, condition)
    return True


def _move(battle: Battle, event: list[str]) -> bool:
    if len(event) != 5 or event[3] in SPECIAL_MOVES or event[4][:2] not in ("p1", "p2"):
        return False
    _, _, ident, name, target_ident = event
    mon = battle.get_pokemon(ident)
    if mon._dancing:
        return False
    move_id, known, at_all, pressed = move_target(battle._gen, name)
    pressure = False
    if known:
        target = _opposite(battle, ident) if at_all else battle.get_pokemon(target_ident)
        pressure = pressed and target is not None and target.ability == "pressure" and target._status is not FNT
    if mon._effects:  # some end by this
        mon.moved(name, pressure=pressure)
    else:
        _moved(mon, move_id, name, pressure)
    return True


def _opposite(battle: Battle, ident: str) -> Pokemon | None:
    return active_of(battle._opponent_team if ident[:2] == battle._player_role else battle._team)


def _moved(mon: Pokemon, move_id: str, name: str, pressure: bool) -> None:
    """Does what `Pokemon.moved` does for a Pokemon without effects."""
    mon._must_recharge = False
    mon._preparing_move = mon._preparing_target = None
    move = mon.moves.get(move_id) or mon._add_move(name)
    if move is not None:
        move.use(pressure)
    for other in mon.moves.values():
        other._is_last_used = other is move
    mon._protect_counter = mon._protect_counter + 1 if move is not None and move.is_protect_counter else 0
    if mon._status is SLP:
        mon._status_counter += 1


SHORT_WAYS: dict[str, Callable[[Battle, list[str]], bool]] = {
    "-boost": _boost,
    "-damage": _hp,
    "-heal": _hp,
    "-unboost": _boost,
    "drag": _switch,
    "move": _move,
    "switch": _switch,
    "turn": _turn,
}
