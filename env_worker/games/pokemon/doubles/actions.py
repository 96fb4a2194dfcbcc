"""poke-env's 107 actions of a slot in doubles, computed from a request alone.

    0 pass      1-6 switch to team member i      then for each of four moves five targets (-2, -1, 0, 1, 2):
    7-26 move   27-46 + mega evolution   47-66 as z-move   67-86 + dynamax   87-106 + terastallization

Targets are Showdown's: -1 and -2 the own left and right slot, 1 and 2 the foe's, 0 where the move asks for none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from simul.env_worker.games.pokemon.encoding.actions import GIMMICKS, SUFFIXES, known_slot
from simul.env_worker.games.pokemon.tables.doubles_layout import NUM_ACTIONS

PASS, FIRST_SWITCH, FIRST_MOVE = 0, 1, 7
TARGETS = (-2, -1, 0, 1, 2)
PER_MOVE = len(TARGETS)
PER_GIMMICK = 4 * PER_MOVE

Request = dict[str, Any]
Entry = dict[str, Any]


OTHER_MOVES = (2, 3)  # Z-moves and max moves may be usable where the move itself is disabled


class Meaning(NamedTuple):
    """What an action stands for; `member`, `move`: -1 where it is none. gimmick: 0 none, 1 mega .. 4 tera."""

    member: int = -1
    move: int = -1
    target: int = 0
    gimmick: int = 0


def meaning(action: int) -> Meaning:
    """What `action` stands for."""
    if action == PASS:
        return Meaning()
    if action < FIRST_MOVE:
        return Meaning(member=action - FIRST_SWITCH)
    gimmick, rest = divmod(action - FIRST_MOVE, PER_GIMMICK)
    move, target = divmod(rest, PER_MOVE)
    return Meaning(move=move, target=TARGETS[target], gimmick=gimmick)


class SlotChoices:
    """The legal actions of one slot.

    Attributes:
        mask: uint8 [107] as a bytearray, 1 = legal.
        move_entries: the request's entry of each of the four move slots, None where the slot offers nothing.
        reviving: True = the switch brings back a fainted Pokemon.
    """

    def __init__(self) -> None:
        self.mask = bytearray(NUM_ACTIONS)
        self.move_entries: list[Entry | None] = [None] * 4
        self.reviving = False
        self._commands: dict[int, str] = {}

    @property
    def idle(self) -> bool:
        """True = only passing is legal."""
        return list(self._commands) == [PASS]

    def command(self, action: int) -> str:
        """The simulator command for a legal action of this slot."""
        return self._commands[action]

    def allow(self, action: int, command: str) -> None:
        self.mask[action] = 1
        self._commands[action] = command


def slot_choices(request: Request, slot: int, position: Callable[[str], int], first: int | None = None) -> SlotChoices:
    """Everything a request allows slot 0 (left) or 1 (right).

    `position` gives the team position of an ident. `first`: the left slot's action, for the right one.
    """
    choices = SlotChoices()
    side = request["side"]["pokemon"]
    before = meaning(first) if first is not None else Meaning()
    if "forceSwitch" in request:
        _force(choices, request["forceSwitch"], side, slot, position, first)
    elif _acts(request, slot):
        asked = request["active"][slot]
        if not asked.get("trapped"):
            _allow_switches(choices, side, position, before.member, revive=False)
        _allow_moves(choices, request, slot, before.gimmick)
    if not any(choices.mask):
        choices.allow(PASS, "pass")
    return choices


def _force(
    choices: SlotChoices,
    demanded: list[bool],
    side: list[Entry],
    slot: int,
    position: Callable[[str], int],
    first: int | None,
) -> None:
    if not demanded[slot]:
        return
    choices.reviving = bool(side[slot].get("reviving"))
    before = meaning(first) if first is not None else Meaning()
    _allow_switches(choices, side, position, before.member, revive=choices.reviving)
    benched = [entry for entry in side if not entry["active"] and not _fainted(entry)]
    if slot == 0 and all(demanded) and len(benched) == 1 and not any(entry.get("reviving") for entry in side):
        choices.allow(PASS, "pass")  # the only one left may come in on either side


def _acts(request: Request, slot: int) -> bool:
    """Whether an active Pokemon there can act."""
    side, active = request["side"]["pokemon"], request["active"]
    if slot >= len(side) or slot >= len(active) or not active[slot]:
        return False
    return not _fainted(side[slot]) and not side[slot].get("commanding")


def _allow_switches(
    choices: SlotChoices, side: list[Entry], position: Callable[[str], int], taken: int, *, revive: bool
) -> None:
    for place, entry in enumerate(side, start=1):
        member = position(entry["ident"])
        if _fainted(entry) == revive and (revive or not entry["active"]) and member != taken:
            choices.allow(FIRST_SWITCH + member, f"switch {place}")


def _allow_moves(choices: SlotChoices, request: Request, slot: int, spent: int) -> None:
    """`spent`: the gimmick that the left slot uses in this turn."""
    asked, known = request["active"][slot], request["side"]["pokemon"][slot]["moves"]
    offered = asked["moves"]
    max_moves = (asked.get("maxMoves") or {}).get("maxMoves")
    plain = offered if max_moves is None or asked.get("canDynamax") else max_moves
    forms: list[list[Entry | None] | None] = [plain, offered, asked.get("canZMove"), max_moves, offered]
    allowed = [True, *(bool(asked.get(key)) for key, _ in GIMMICKS)]
    if spent:
        allowed[spent] = False
    aligned = len(offered) == len(known)
    for index, entry in enumerate(offered[:4]):
        move = index if aligned else known_slot(entry["id"], known, index)
        choices.move_entries[move] = entry
        for kind, form in enumerate(forms):
            shape = form[index] if allowed[kind] and form is not None else None
            if shape is None or shape.get("disabled") or (entry.get("disabled") and kind not in OTHER_MOVES):
                continue
            for target in _targets(shape.get("target", ""), request, slot):
                action = FIRST_MOVE + PER_GIMMICK * kind + PER_MOVE * move + target + 2
                choices.allow(action, f"move {index + 1}{f' {target}' if target else ''}{SUFFIXES[kind]}")


def _targets(kind: str, request: Request, slot: int) -> Iterable[int]:
    """Where a move of this target type may be aimed; 0: it finds its target itself."""
    own, ally = -(slot + 1), -(2 - slot)
    with_ally = _stands(request, 1 - slot)
    if kind in ("normal", "any"):
        return (1, 2, ally) if with_ally else (1, 2)
    if kind == "adjacentFoe":
        return (1, 2)
    if kind == "adjacentAlly":
        return (ally,)
    if kind == "adjacentAllyOrSelf":
        return (own, ally) if with_ally else (own,)
    return (0,)


def _stands(request: Request, slot: int) -> bool:
    side, active = request["side"]["pokemon"], request["active"]
    return slot < min(len(side), len(active)) and bool(active[slot]) and not _fainted(side[slot])


def _fainted(entry: Entry) -> bool:
    return str(entry["condition"]).endswith(" fnt")
