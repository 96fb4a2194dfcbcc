"""The 107 actions of a slot, in words of the simulator; the second mask knows the first choice.

That the first mask is right, test_audit.py sees.
"""

from __future__ import annotations

from simul.env_worker.games.pokemon.doubles.actions import (
    FIRST_MOVE,
    FIRST_SWITCH,
    NUM_ACTIONS,
    PASS,
    Meaning,
    meaning,
    slot_choices,
)
from simul.env_worker.games.pokemon.source.double_seat import DoubleSteps


def test_meanings_of_actions():
    assert meaning(PASS) == Meaning()
    assert meaning(6) == Meaning(member=5)
    assert meaning(7) == Meaning(move=0, target=-2)
    assert meaning(26) == Meaning(move=3, target=2)
    assert meaning(87 + 5 + 4) == Meaning(move=1, target=2, gimmick=4)


def entry(name: str, *, active: bool = False, fainted: bool = False, **more) -> dict:
    condition = "0 fnt" if fainted else "100/100"
    return {"ident": f"p1: {name}", "active": active, "condition": condition, "moves": ["a", "b"], **more}


TEAM = [entry("A", active=True), entry("B", active=True), entry("C"), entry("D"), entry("E", fainted=True)]
MOVES = [{"id": "a", "target": "normal"}, {"id": "b", "target": "self"}]
TERA = FIRST_MOVE + 80


def position(ident: str) -> int:
    return "ABCDE".index(ident[-1])


def turn(team=None, **active) -> dict:
    asked = {"moves": MOVES, **active}
    return {"active": [asked, asked], "side": {"pokemon": team or TEAM}}


def forced(*demanded: bool, team=None) -> dict:
    return {"forceSwitch": list(demanded), "side": {"pokemon": team or TEAM}}


def legal(request: dict, slot: int, first: int | None = None) -> set[int]:
    mask = slot_choices(request, slot, position, first).mask
    return {action for action in range(NUM_ACTIONS) if mask[action]}


def round_of(request: dict) -> DoubleSteps:
    return DoubleSteps(request, position, None)  # type: ignore[arg-type]


def test_targets_are_the_foes_and_the_partner():
    # move a at 1, 2 and the partner; move b at nobody
    assert legal(turn(), 0) == {3, 4, 7, 10, 11, 14}
    assert legal(turn(), 1) == {3, 4, 8, 10, 11, 14}
    choices = slot_choices(turn(), 0, position)
    assert [choices.command(action) for action in (3, 7, 11, 14)] == ["switch 3", "move 1 -2", "move 1 2", "move 2"]


def test_nobody_aims_at_a_partner_that_has_fainted():
    team = [TEAM[0], entry("B", active=True, fainted=True), *TEAM[2:]]
    assert legal(turn(team), 0) == {3, 4, 10, 11, 14}
    assert legal(turn(team), 1) == {PASS}


def test_not_the_same_switch_and_not_two_gimmicks():
    request = turn(canTerastallize="Fire")
    assert legal(request, 1, first=3) == legal(request, 1) - {3}
    assert legal(request, 1, first=TERA + 3) == {action for action in legal(request, 1) if action < TERA}
    assert legal(request, 1, first=10) == legal(request, 1)


def test_dynamaxed_moves_have_targets_of_their_own():
    grown = [{"move": "A", "target": "adjacentFoe"}, {"move": "Max Guard", "target": "self"}]
    may = turn(canDynamax=True, maxMoves={"maxMoves": grown})
    assert {action for action in legal(may, 0) if action >= FIRST_MOVE + 60} == {70, 71, 74}
    is_ = turn(maxMoves={"maxMoves": grown})
    assert {action for action in legal(is_, 0) if action >= FIRST_MOVE} == {10, 11, 14}


def test_a_disabled_move_may_be_usable_as_a_max_or_z_move():
    moves = [{"id": "a", "target": "normal", "disabled": True}, {"id": "b", "target": "self", "disabled": True}]
    grown = [{"move": "A", "target": "adjacentFoe"}, {"move": "Max Guard", "target": "self", "disabled": True}]
    request = turn(trapped=True, moves=moves, canDynamax=True, maxMoves={"maxMoves": grown}, canTerastallize="Fire")
    assert legal(request, 0) == {70, 71}
    z_moves = [{"move": "Z", "target": "adjacentFoe"}, None]
    assert legal(turn(trapped=True, moves=moves, canZMove=z_moves), 0) == {50, 51}


def test_trapped_and_commanding():
    assert legal(turn(trapped=True), 0) == {7, 10, 11, 14}
    team = [TEAM[0] | {"commanding": True}, *TEAM[1:]]
    assert legal(turn(team), 0) == {PASS}


def test_forced_switches():
    assert legal(forced(True, False), 0) == {3, 4}
    assert legal(forced(True, False), 1) == {PASS}
    assert legal(forced(True, True), 0) == {3, 4}
    assert legal(forced(True, True), 1, first=3) == {4}
    last = [entry("A", active=True, fainted=True), entry("B", active=True, fainted=True), entry("C")]
    assert legal(forced(True, True, team=last), 0) == {PASS, 3}
    assert legal(forced(True, True, team=last), 1, first=PASS) == {3}
    assert legal(forced(True, True, team=last), 1, first=3) == {PASS}


def test_revival_blessing_brings_back_a_fainted_one():
    team = [TEAM[0] | {"reviving": True}, *TEAM[1:]]
    assert legal(forced(True, False, team=team), 0) == {5}


def test_a_round_asks_left_then_right_and_speaks_once():
    asked = round_of(turn(canTerastallize="Fire"))
    assert (asked.slot, asked.first) == (0, None)
    assert asked.pick(TERA + 3) is None
    assert (asked.slot, asked.first) == (1, TERA + 3)
    assert not any(asked.choices.mask[TERA:])
    assert asked.pick(FIRST_SWITCH + 2) == "move 1 1 terastallize, switch 3"
    assert asked.complete


def test_a_slot_that_can_only_pass_is_not_asked():
    left = round_of(forced(True, False))
    assert left.pick(3) == "switch 3, pass"
    right = round_of(forced(False, True))
    assert right.slot == 1
    assert right.pick(4) == "pass, switch 4"


def test_what_is_refused_is_taken_back():
    asked = round_of(turn())
    asked.pick(10)
    assert asked.pick(3) == "move 1 1, switch 3"
    asked.refuse()
    assert (asked.slot, asked.first, asked.complete) == (1, 10, False)
    assert asked.pick(14) == "move 1 1, move 2"
    alone = round_of(forced(True, False))
    alone.pick(3)
    alone.refuse()
    assert (alone.slot, alone.first) == (0, None)
    assert alone.pick(4) == "switch 4, pass"


def test_a_new_request_of_the_same_turn_keeps_the_first_choice():
    again = round_of(turn(trapped=True))
    again.repeat([10])
    assert (again.slot, again.first) == (1, 10)
    assert not again.choices.mask[3]
    illegal = round_of(turn(trapped=True))
    illegal.repeat([3])
    assert illegal.slot == 0
