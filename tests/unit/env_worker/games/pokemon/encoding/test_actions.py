"""What the 26 actions are called when they go out: by slot. That the mask is right, test_audit.py sees."""

from simul.env_worker.games.pokemon.encoding.actions import legal_choices


def entry(name: str, *, active: bool = False, fainted: bool = False, **more) -> dict:
    condition = "0 fnt" if fainted else "100/100"
    return {"ident": f"p1: {name}", "active": active, "condition": condition, "moves": ["a", "b", "c", "d"], **more}


TEAM = [entry("A", active=True), entry("B"), entry("C", fainted=True), entry("D")]


def request_of(moves: list[dict], team: list[dict] | None = None, **active) -> dict:
    return {"active": [{"moves": moves, **active}], "side": {"pokemon": team or TEAM}}


def moves_of(*names: str) -> list[dict]:
    return [{"id": name} for name in names]


def position(ident: str) -> int:
    return "ABCD".index(ident[-1])


def legal(request: dict) -> list[int]:
    return [action for action, bit in enumerate(legal_choices(request, position).mask) if bit]


def test_switches_follow_the_team_and_go_out_by_the_request_slot():
    shuffled = [TEAM[3] | {"active": True}, TEAM[1], TEAM[2], TEAM[0] | {"active": False}]
    choices = legal_choices(request_of(moves_of("a", "b", "c", "d"), shuffled), position)
    assert choices.command(0) == "switch 4"
    assert choices.command(1) == "switch 2"
    assert choices.mask[:4] == bytes([1, 1, 0, 0])


def test_disabled_moves_and_gimmicks():
    moves = [{"id": "a", "disabled": True}, *moves_of("b", "c", "d")]
    assert legal(request_of(moves, trapped=True, canTerastallize="Fire")) == [7, 8, 9, 23, 24, 25]
    z_moves = [None, {"move": "Z"}, None, None]
    choices = legal_choices(request_of(moves, trapped=True, canZMove=z_moves), position)
    assert choices.mask[14:18] == bytes([0, 1, 0, 0])
    assert choices.command(15) == "move 2 zmove"


def test_every_gimmick_has_its_words():
    choices = legal_choices(request_of(moves_of("a", "b", "c", "d")), position)
    words = [choices.command(6 + 4 * kind + kind % 4) for kind in range(5)]
    assert words == ["move 1", "move 2 mega", "move 3 zmove", "move 4 dynamax", "move 1 terastallize"]


def test_a_disabled_move_may_be_usable_as_a_max_or_z_move():
    moves = [{"id": "a"}, {"id": "b", "disabled": True}, {"id": "c", "disabled": True}, {"id": "d", "disabled": True}]
    grown = [{"move": "A"}, {"move": "B"}, {"move": "C", "disabled": True}, {"move": "D"}]
    assert legal(request_of(moves, trapped=True, canDynamax=True, maxMoves={"maxMoves": grown})) == [6, 18, 19, 21]
    assert legal(request_of(moves, trapped=True, canZMove=[None, {"move": "Z"}, None, None])) == [6, 15]
    assert legal(request_of(moves, trapped=True, canMegaEvo=True)) == [6, 10]
    assert legal(request_of(moves, trapped=True, maxMoves={"maxMoves": grown})) == [6], "it is dynamaxed already"


def test_a_locked_move_stays_in_its_slot_and_goes_out_as_the_only_one():
    choices = legal_choices(request_of(moves_of("c"), trapped=True), position)
    assert [i for i, bit in enumerate(choices.mask) if bit] == [8]
    assert choices.command(8) == "move 1"
