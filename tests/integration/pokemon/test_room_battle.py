"""One room of `simul play` and the process that follows it: the numbers of training, refused choices, new sessions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.protocol.decisions import Decision
from simul.common.protocol.messages import ABORTED, GREEDY, START
from simul.env_worker.games.pokemon.play.room_battle import Rejoins, RoomBattle
from simul.env_worker.games.pokemon.play.room_follower import RoomFollower
from simul.env_worker.games.pokemon.showdown.room import UNREADABLE
from simul.env_worker.games.pokemon.tables.layout import extras_of
from tests.support.playing import started_follower
from tests.support.pokemon.recorded import RecordedSeat, recorded_seats
from tests.support.pokemon.views import SeatToSee, Told
from tests.support.showdown import on_loop
from tests.support.waiting import PATIENCE_SEC

FOLLOWERS: dict[int, RoomFollower] = {}


@pytest.fixture(autouse=True, scope="module")
def followers() -> Iterator[None]:
    yield
    for rooms in FOLLOWERS.values():
        on_the_loop(rooms.close)
    FOLLOWERS.clear()


def follower(gen: int) -> RoomFollower:
    if gen not in FOLLOWERS:
        FOLLOWERS[gen] = RoomFollower(started_follower(f"gen{gen}randombattle"), pytest.fail)
    return FOLLOWERS[gen]


CHAT = "|c:|1795231630|☆Foe|hi|there\n|inactive|Time left: 300 sec this turn\nplain words"


def rooms(seat: RecordedSeat) -> Iterator[RoomBattle]:
    """A room at each of a recorded seat's requests, told as a server tells: with chat between the lines."""
    room = RoomBattle(
        "battle-gen9randombattle-1", "Us", seat.gen, env=4, policy="learner", greedy=True, replays="",
        rooms=follower(seat.gen),
    )  # fmt: skip
    for number, (lines, request) in enumerate(seat.records, 1):
        tell(room, [(lines, request)])
        if request is not None:
            side = {**request["side"], "id": seat.role}
            on_the_loop(room.parse_request, {**request, "side": side, "rqid": number})
            yield room


def test_a_request_that_no_answer_can_name_is_unreadable():
    room = next(rooms(recorded_seats("gen9randombattle")[0]))
    with pytest.raises(UNREADABLE):
        room.parse_request({**room.last_request, "rqid": "7"})


def on_the_loop(function, *arguments):
    async def call():
        return function(*arguments)

    return on_loop(call()).result(PATIENCE_SEC)


def tell(room: RoomBattle, records: Sequence[tuple[str, object]]) -> None:
    """Their lines, with chat between them."""
    for lines, _ in records:
        for line in f"{lines}\n{CHAT}".split("\n"):
            split = line.split("|")
            if len(split) > 1:
                room.parse_message(split)


def first_room() -> RoomBattle:
    return next(rooms(recorded_seats("gen9randombattle")[0]))


def decide(room: RoomBattle) -> Decision:
    decision = decision_of(room)
    assert decision is not None
    return decision


def decision_of(room: RoomBattle) -> Decision | None:
    return on_loop(room.decide()).result(PATIENCE_SEC)


def order(room: RoomBattle, action: int) -> str | Decision:
    return on_loop(room.order(room.last_request["rqid"], action)).result(PATIENCE_SEC)


def test_it_sees_what_is_seen_in_training(views):
    seats = recorded_seats("gen[19]randombattle")
    shipped = extras_of(PokemonConfig())
    told = ((s.format, s.seat, [Told(*record) for record in s.records]) for s in seats)
    seen_seats = views.seen(SeatToSee(*seat, shipped) for seat in told)
    for seat, seen in zip(seats, seen_seats, strict=True):
        for room, wanted in zip(rooms(seat), seen.decisions, strict=True):
            decision = decide(room)
            assert decision.observation.tobytes() == wanted.observation.tobytes()
            assert decision.mask.tobytes() == wanted.mask.tobytes()
            assert order(room, wanted.legal[-1]).startswith("/choose ")


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("Foe forfeited.", "forfeit"), ("Us lost due to inactivity.", "inactivity"),
        ("Foe 2 forfeited by changing their name.", "forfeit"),
        ("x forfeited. was hit!", ""), ("Someone forfeited.", ""),
    ],
)  # fmt: skip
def test_only_what_the_server_says_of_a_player_ends_a_battle_early(message, cause):
    room = first_room()
    names = "|player|p1|Us|1|\n|player|p2|Foe|1|\n|player|p2|Foe 2|1|"  # the second has changed it
    tell(room, [(f"{names}\n|-message|{message}", None)])
    assert room.ended_early == cause


def test_an_invalid_choice_is_asked_again_without_it():
    room = first_room()
    first = decide(room)
    action = int(np.flatnonzero(first.mask)[0])
    order(room, action)
    room.refusal = "invalid"
    again = decide(room)
    assert (first.env, first.step, first.attempt, first.flags) == (4, 0, 0, START | GREEDY)
    assert (again.step, again.attempt) == (0, 1)
    assert sorted(np.flatnonzero(again.mask)) == sorted(set(np.flatnonzero(first.mask)) - {action})


def test_where_every_choice_is_refused_there_is_no_decision():
    room = first_room()
    decision = decision_of(room)
    while decision is not None:
        order(room, int(np.flatnonzero(decision.mask)[0]))
        room.refusal = "invalid"
        decision = decision_of(room)
    assert room.seat.redo


def test_an_unavailable_choice_is_asked_again_with_its_new_request():
    room = first_room()
    first = decide(room)
    moves = [action for action in np.flatnonzero(first.mask) if action >= 6]
    order(room, int(np.flatnonzero(first.mask)[0]))
    room.refusal = "unavailable"
    request = room.last_request
    trapped = {**request["active"][0], "trapped": True}
    room.parse_request({**request, "active": [trapped], "rqid": 99})
    again = decide(room)
    assert (again.step, again.attempt) == (0, 1)
    assert list(np.flatnonzero(again.mask)) == moves
    assert order(room, int(moves[0])).endswith("|99")


def test_after_joining_again_the_seat_hears_only_what_is_new():
    seat = recorded_seats("gen9randombattle")[0]
    plain, cut = rooms(seat), rooms(seat)
    for _ in range(4):
        wanted, found = decide(next(plain)), decide(next(cut))
    assert found.observation.tobytes() == wanted.observation.tobytes()
    room = next(cut)  # the lines of the fifth have come, and the connection is lost
    wanted = decide(next(plain))
    room.join_again()
    tell(room, seat.records[:5])
    assert room.joined() is None
    found = decide(room)
    assert (found.step, found.episode) == (wanted.step, 0)
    assert found.observation.tobytes() == wanted.observation.tobytes()
    assert [line for line in room._replay_data if line[1:2] == ["start"]] == [["", "start"]]


def test_an_answer_that_may_be_lost_is_said_again_unless_the_server_has_it():
    room = first_room()
    assert room.repeated() is None
    words = order(room, int(np.flatnonzero(decide(room).mask)[0]))
    assert room.repeated() == words
    room.heard = True
    assert room.repeated() == ""
    assert room.repeated() == words
    room.refusal = "invalid"
    assert room.repeated() is None, "it was refused: another one is wanted"
    room.refusal = ""
    room._last_request = {**room._last_request, "rqid": 99}
    assert room.repeated() is None


def test_another_battle_under_the_same_name_is_read_from_its_beginning():
    seat = recorded_seats("gen9randombattle")[0]
    played = rooms(seat)
    for _ in range(3):
        room = next(played)
        decide(room)
    room._log[0] = "|another|line"
    told: list[Decision] = []
    rejoins = Rejoins(told.append)
    rejoins.begin(room, {"init"})
    tell(room, seat.records[:3])
    on_the_loop(rejoins.end, room)
    (end,) = told
    assert (end.kind, end.episode) == (ABORTED, 0)
    assert (rejoins.rejoined, rejoins.started_over) == (1, 1)
    again = decide(room)
    assert (again.step, again.episode, again.flags) == (0, 1, START | GREEDY)


def test_a_battle_that_is_gone_ends_its_session():
    room = first_room()
    decide(room)
    end = on_the_loop(room.vanish)
    assert (end.kind, end.step) == (ABORTED, 1)
    assert room.finished
