"""What a seat may answer, in words of the simulator: the 26 actions of singles, the 107 of a slot of doubles.

That masks are those of the simulator in real battles, test_audit.py sees.
"""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from simul.env_worker.games.pokemon.formats.spec import generation, is_doubles
from simul.env_worker.games.pokemon.install.node import find_node
from simul.env_worker.games.pokemon.tables.host_tables import encoder_tables
from tests.support.pokemon.recorded import recorded_seats
from tests.support.pokemon.requests import Request, entry, forced, offer, team_of, turn
from tests.support.pokemon.views import Seen, View, Views

FOUR = ("tackle", "surf", "growl", "splash")
SINGLE = [entry("Absol", active=True, moves=FOUR), entry("Ditto"), entry("Eevee", fainted=True), entry("Mew")]
PAIR = team_of("Absol", "Ditto", bench=("Eevee", "Mew", "Onix"), fainted=("Onix",))
REFUSALS = Path("tests/support/pokemon/refusals.mjs")
TERA = 87  # the first action of doubles with this gimmick


def asked(views: Views, request: Request, battle_format: str = "gen9randombattle") -> tuple[View, Seen]:
    view = views.open(battle_format, 0)
    return view, view.see("", request)


def legal(views: Views, request: Request, battle_format: str = "gen9randombattle") -> list[int]:
    return asked(views, request, battle_format)[1].legal


def words(views: Views, request: Request, *actions: int, battle_format: str = "gen9randombattle") -> str:
    view, _ = asked(views, request, battle_format)
    *_, said = [view.act(action) for action in actions]
    assert isinstance(said, str)
    return said


def single(*disabled: str, **more: Any) -> Request:
    return turn(SINGLE, offer(*FOUR, disabled=disabled), **more)


def test_switches_follow_the_team_and_go_out_by_the_request_slot(views):
    view, first = asked(views, single())
    assert first.legal == [1, 3, 6, 7, 8, 9]
    shuffled = [SINGLE[3] | {"active": True}, SINGLE[1], SINGLE[2], SINGLE[0] | {"active": False}]
    assert view.see("", turn(shuffled)).legal[:2] == [0, 1]
    assert view.act(0) == "switch 4"


def test_disabled_moves_and_gimmicks(views):
    assert legal(views, single("tackle", trapped=True, canTerastallize="Fire")) == [7, 8, 9, 23, 24, 25]
    z_moves = [None, {"move": "Z", "target": "normal"}, None, None]
    z_request = single("tackle", trapped=True, canZMove=z_moves)
    assert legal(views, z_request, "gen7customgame") == [7, 8, 9, 15]


@pytest.mark.parametrize(
    ("gen", "action", "said", "may"),
    [
        (9, 6, "move 1", {}),
        (6, 11, "move 2 mega", {"canMegaEvo": True}),
        (7, 11, "move 2 ultra", {"canUltraBurst": True}),
        (7, 16, "move 3 zmove", {"canZMove": [{"move": "Z", "target": "normal"}] * 4}),
        (8, 21, "move 4 dynamax", {"canDynamax": True, "maxMoves": {"maxMoves": offer(*FOUR)}}),
        (9, 22, "move 1 terastallize", {"canTerastallize": "Fire"}),
    ],
)
def test_every_gimmick_has_its_words(views, gen, action, said, may):
    assert words(views, single(**may), action, battle_format=f"gen{gen}customgame") == said


def test_a_disabled_move_may_be_usable_as_a_max_or_z_move(views):
    disabled = FOUR[1:]
    grown = {"maxMoves": offer(*FOUR, disabled=["growl"])}
    may = single(*disabled, trapped=True, canDynamax=True, maxMoves=grown)
    assert legal(views, may, "gen8customgame") == [6, 18, 19, 21]
    dynamaxed = single(*disabled, trapped=True, maxMoves=grown)
    assert legal(views, dynamaxed, "gen8customgame") == [6, 7, 9], "its moves are max moves, as the simulator judges"
    z_moves = [None, {"move": "Z", "target": "normal"}, None, None]
    assert legal(views, single(*disabled, trapped=True, canZMove=z_moves), "gen7customgame") == [6, 15]
    assert legal(views, single(*disabled, trapped=True, canMegaEvo=True), "gen6customgame") == [6, 10]


def test_a_locked_move_stays_in_its_slot_and_goes_out_as_the_only_one(views):
    locked = turn(SINGLE, offer("growl"), trapped=True)
    assert legal(views, locked) == [8]
    assert words(views, locked, 8) == "move 1"


DOUBLES = "gen9randomdoublesbattle"


def pair(team: list | None = None, **more: Any) -> Request:
    return turn(team or PAIR, **more)


def left(views: Views, request: Request, battle_format: str = DOUBLES) -> set[int]:
    return set(legal(views, request, battle_format))


def right(views: Views, request: Request, first: int) -> set[int]:
    """What the right slot may do once the left one has chosen."""
    answer = asked(views, request, DOUBLES)[0].act(first)
    assert isinstance(answer, Seen)
    assert answer.read("global.right") == answer.read("global.first.made") == [1.0]
    return set(answer.legal)


def test_targets_are_the_foes_and_the_partner(views):
    """Tackle at 1, 2 and the partner; splash at nobody."""
    assert left(views, pair()) == {3, 4, 7, 10, 11, 14}
    assert right(views, pair(), 14) == {3, 4, 8, 10, 11, 14}
    for action, said in ((3, "switch 3"), (7, "move 1 -2"), (11, "move 1 2"), (14, "move 2")):
        assert words(views, pair(), action, 14, battle_format=DOUBLES) == f"{said}, move 2"


def test_nobody_aims_at_a_partner_that_has_fainted(views):
    team = [PAIR[0], entry("Ditto", active=True, fainted=True), *PAIR[2:]]
    assert left(views, pair(team)) == {3, 4, 10, 11, 14}
    assert words(views, pair(team), 10, battle_format=DOUBLES) == "move 1 1, pass"


def test_not_the_same_switch_and_not_two_gimmicks(views):
    request = pair(canTerastallize="Fire")
    free = right(views, request, 14)
    assert right(views, request, 3) == free - {3}
    assert right(views, request, TERA + 3) == {action for action in free if action < TERA}
    assert right(views, request, 10) == free


def test_dynamaxed_moves_have_targets_of_their_own(views):
    grown = {"maxMoves": [{"move": "maxstrike", "target": "adjacentFoe"}, {"move": "maxguard", "target": "self"}]}
    may = left(views, pair(canDynamax=True, maxMoves=grown), "gen8doublescustomgame")
    assert {action for action in may if action >= 67} == {70, 71, 74}
    now = left(views, pair(maxMoves=grown), "gen8doublescustomgame")
    assert {action for action in now if action >= 7} == {10, 11, 14}


def test_a_disabled_move_of_doubles_may_be_usable_as_a_max_or_z_move(views):
    moves, z_moves = (
        offer("tackle", "splash", disabled=("tackle", "splash")),
        [{"move": "Z", "target": "adjacentFoe"}, None],
    )
    guard = {"move": "maxguard", "target": "self", "disabled": True}
    may = {"canDynamax": True, "maxMoves": {"maxMoves": [{"move": "maxstrike", "target": "adjacentFoe"}, guard]}}
    assert left(views, pair(moves=moves, trapped=True, **may), "gen8doublescustomgame") == {70, 71}
    dynamaxed = pair(moves=moves, trapped=True, maxMoves=may["maxMoves"])
    assert left(views, dynamaxed, "gen8doublescustomgame") == {10, 11}, "its moves are max moves"
    assert left(views, pair(moves=moves, trapped=True, canZMove=z_moves), "gen7doublescustomgame") == {50, 51}


def test_trapped_and_commanding(views):
    assert left(views, pair(trapped=True)) == {7, 10, 11, 14}
    _, seen = asked(views, pair([PAIR[0] | {"commanding": True}, *PAIR[1:]]), DOUBLES)
    assert seen.read("global.right") == [1.0], "who commands is not asked"


def test_forced_switches(views):
    assert left(views, forced(PAIR, True, False)) == left(views, forced(PAIR, True, True)) == {3, 4}
    assert right(views, forced(PAIR, True, True), 3) == {4}
    last = team_of("Absol", "Ditto", bench=("Eevee",), fainted=("Absol", "Ditto"))
    assert left(views, forced(last, True, True)) == {0, 3}
    assert words(views, forced(last, True, True), 0, 3, battle_format=DOUBLES) == "pass, switch 3"
    assert words(views, forced(last, True, True), 3, battle_format=DOUBLES) == "switch 3, pass"


def test_revival_blessing_brings_back_a_fainted_one(views):
    assert left(views, forced([PAIR[0] | {"reviving": True}, *PAIR[1:]], True, False)) == {5}


def test_a_slot_that_can_only_pass_is_not_asked(views):
    assert words(views, forced(PAIR, True, False), 3, battle_format=DOUBLES) == "switch 3, pass"
    view, seen = asked(views, forced(PAIR, False, True), DOUBLES)
    assert seen.read("global.right") == [1.0]
    assert view.act(4) == "pass, switch 4"


def test_gimmicks_of_both_slots_go_out_in_one_command(views):
    assert (
        words(views, pair(canTerastallize="Fire"), TERA + 3, 3, battle_format=DOUBLES)
        == "move 1 1 terastallize, switch 3"
    )


def test_a_new_request_of_the_same_turn_keeps_the_first_choice(views):
    for first, right_is_asked in ((10, 1.0), (3, 0.0)):  # 3, a switch, is not legal any more
        view, _ = asked(views, pair(), DOUBLES)
        view.act(first)
        view.act(4)
        again = view.see("", pair(trapped=True), refused=True)
        assert again.read("global.right") == [right_is_asked]
        assert not again.mask[4]


@pytest.mark.parametrize("battle_format", ["gen9randombattle", DOUBLES, "gen9bssregi"])
def test_what_is_refused_is_asked_again_without_it(views, battle_format):
    """The slot that decided last, or the last pick of a team preview; the rest of the observation stays."""
    seat = recorded_seats(battle_format)[0]
    view, refused = views.open(battle_format, seat.seat), 0
    for lines, request in seat.records:
        if request is None:
            continue
        answer: Seen | str = view.see(lines, request)
        while isinstance(answer, Seen):
            last, action = answer, answer.legal[0]
            answer = view.act(action)
        again = view.refuse()
        assert (again is None) == (len(last.legal) == 1)
        if again is not None:
            assert again.legal == last.legal[1:]
            assert again.read("mask") == again.mask.tolist()
            changed = (again.observation != last.observation).sum()
            assert changed <= 2 or "teamPreview" in request
            refused += 1
    assert refused > 10


def told_of_refusals(battle_format: str, refused: int, follow: bool) -> list[tuple[str, int, Any]]:
    """What the seat is told in order: a row as `Seen`, the kind of an error, or its choice in the simulator's words."""
    tables = encoder_tables(generation(battle_format), doubles=is_doubles(battle_format))
    job: dict[str, Any] = {"tables": tables, "format": battle_format, "refused": refused, "follow": None}
    if follow:
        seat = next(one for one in recorded_seats(battle_format) if one.seat == 0)
        lines, request = seat.records[0]
        job["follow"] = {"lines": lines, "request": request}
    command = [find_node().path, REFUSALS]
    answer = subprocess.run(command, input=orjson.dumps(job), stdout=subprocess.PIPE, check=True)
    return [
        (kind, number, row_of(*said) if kind == "row" else said[0])
        for kind, number, *said in orjson.loads(answer.stdout)
    ]


def row_of(observation: str, mask: str) -> Seen:
    """Without the facts for rewards."""
    legal = np.frombuffer(mask.encode(), np.uint8) - ord("0")
    return Seen(np.frombuffer(base64.b64decode(observation), np.float16), legal, None, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize("follow", [False, True], ids=["host", "follow"])
@pytest.mark.parametrize(("battle_format", "decisions"), [("gen9randombattle", 1), (DOUBLES, 2)])
def test_an_invalid_choice_is_asked_again_by_a_row_without_it(battle_format, decisions, follow):
    """In doubles the left slot's choice stands."""
    told = told_of_refusals(battle_format, 1, follow)
    rows = [said for kind, _, said in told if kind == "row"]
    last, again = rows[decisions - 1 : decisions + 1]
    assert again.legal == last.legal[1:]
    assert again.read("mask") == again.mask.tolist()
    assert np.flatnonzero(again.observation != last.observation).size <= 2, "the mask, and whether a move can be used"
    assert [said for kind, _, said in told if kind == "error"] == ([] if follow else ["invalid"])
    assert told[-1][:2] == (("choice", 1) if follow else ("row", 2)), "the next answer stands"
    if decisions == 2:
        assert [row.read("global.right") for row in rows[:3]] == [[0.0], [1.0], [1.0]]
        assert again.read("global.first.made") == [1.0]


@pytest.mark.parametrize("follow", [False, True], ids=["host", "follow"])
@pytest.mark.parametrize("battle_format", ["gen9randombattle", DOUBLES])
def test_where_every_choice_is_refused_that_is_said(battle_format, follow):
    """In doubles: every one of the slot that decided last."""
    told = told_of_refusals(battle_format, 1000, follow)
    rows = [said for kind, _, said in told if kind == "row"]
    assert told[-1] == ("error", 1, "exhausted")
    assert len(rows[-1].legal) == 1
    assert [len(row.legal) for row in rows[-3:]] == [3, 2, 1]
