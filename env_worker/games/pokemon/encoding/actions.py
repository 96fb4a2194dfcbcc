"""poke-env's 26 actions, computed by slot from a request alone.

    0-5 switch to team member i     6-9 move k      10-13 + mega evolution   14-17 as z-move
    18-21 + dynamax                 22-25 + terastallization

Team members are numbered as in the first request, moves as in the Pokemon's own list. The simulator is
answered by slot of the current request (never by name: a transformed Ditto would switch to the wrong one).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simul.env_worker.games.pokemon.tables.layout import NUM_ACTIONS, TEAM_SIZE

FIRST_MOVE = 6
FAINTED = "0 fnt"
GIMMICKS = (
    ("canMegaEvo", " mega"),
    ("canZMove", " zmove"),
    ("canDynamax", " dynamax"),
    ("canTerastallize", " terastallize"),
)
_GIMMICK_KINDS = tuple(enumerate([key for key, _ in GIMMICKS], start=1))
SUFFIXES = ("", *(suffix for _, suffix in GIMMICKS))


class Choices:
    """The legal actions of one request.

    Attributes:
        mask: uint8 [26] as a bytearray, 1 = legal.
        reviving: True = the switch brings back a fainted Pokemon.
        move_entries: the request's entry of each of the four move slots, None where the slot offers nothing.
        switch_slots, move_slots: the simulator's number of each team position and move slot that may be chosen.
    """

    __slots__ = ("mask", "move_entries", "move_slots", "reviving", "switch_slots")

    def __init__(self) -> None:
        self.mask = bytearray(NUM_ACTIONS)
        self.reviving = False
        self.move_entries: list[dict[str, Any] | None] = [None] * 4
        self.switch_slots = [0] * 6
        self.move_slots = [0] * 4

    def command(self, action: int) -> str:
        """The simulator command for an action."""
        if action < FIRST_MOVE:
            return f"switch {self.switch_slots[action]}"
        gimmick, move = divmod(action - FIRST_MOVE, 4)
        return f"move {self.move_slots[move]}{SUFFIXES[gimmick]}"


def legal_choices(request: dict[str, Any], position: Callable[[str], int]) -> Choices:
    """Everything a request allows; `position` gives the team position of an ident."""
    choices = Choices()
    side = request["side"]["pokemon"]
    asked = None
    if "active" in request:
        asked = request["active"][0]
    elif any([entry.get("reviving") for entry in side]):
        choices.reviving = True
    if asked is None or not asked.get("trapped"):
        _allow_switches(choices, side, position)
    if asked is not None:
        _allow_moves(choices, asked, next(entry["moves"] for entry in side if entry["active"]))
    return choices


def _allow_switches(choices: Choices, side: list[dict[str, Any]], position: Callable[[str], int]) -> None:
    reviving, mask, slots = choices.reviving, choices.mask, choices.switch_slots
    for slot, entry in enumerate(side, start=1):
        if reviving is (entry["condition"] == FAINTED) and (reviving or not entry["active"]):
            place = position(entry["ident"])
            mask[place] = 1
            slots[place] = slot


def _allow_moves(choices: Choices, asked: dict[str, Any], known: list[str]) -> None:
    offered = asked["moves"]
    gimmicks = [(FIRST_MOVE + 4 * kind, _forms(asked, key)) for kind, key in _GIMMICK_KINDS if asked.get(key)]
    mask, entries, slots = choices.mask, choices.move_entries, choices.move_slots
    aligned = len(offered) == len(known)
    for index, entry in enumerate(offered[:4]):
        move = index if aligned else known_slot(entry["id"], known, index)
        entries[move] = entry
        slots[move] = index + 1
        usable = not entry.get("disabled")
        mask[FIRST_MOVE + move] = usable
        for first, forms in gimmicks:
            if usable if forms is None else forms[index] and not forms[index].get("disabled"):
                mask[first + move] = 1


def _forms(asked: dict[str, Any], gimmick: str) -> list[Any] | None:
    """What a gimmick makes of each move, None where the move stays: only then it must be usable itself.

    A choice lock or Disable does not forbid the Z-move or max move of the move that it disables.
    """
    if gimmick == "canDynamax":
        return list(asked["maxMoves"]["maxMoves"])
    return asked[gimmick] if gimmick == "canZMove" else None


def known_slot(move_id: str, known: list[str], index: int) -> int:
    """A locked move stays in its own slot; struggle, recharge and fight take slot 0."""
    for slot, name in enumerate(known[:4]):
        if name == move_id or name.rstrip("0123456789") == move_id or (move_id == "hiddenpower" and move_id in name):
            return slot
    return index


def picks_wanted(request: dict[str, Any], leads: int = 1) -> int:
    """How many picks a preview takes: as many as may come; the leads if all do."""
    team = min(len(request["side"]["pokemon"]), TEAM_SIZE)
    return min(request.get("maxChosenTeamSize") or leads, team)
