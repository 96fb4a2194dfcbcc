"""One battle room, told by scripted messages."""

import orjson
import pytest

from simul.env_worker.games.pokemon.host.host_messages import HostTick
from simul.env_worker.games.pokemon.showdown.room import UNREADABLE, Room

TAG = "battle-gen9randombattle-1"


def request(seat: str, rqid: int, **more) -> str:
    return "|request|" + orjson.dumps({"side": {"id": seat, "pokemon": []}, "rqid": rqid, **more}).decode()


class Told:
    """A room, and everything that came of what its accounts were told."""

    def __init__(self, **more) -> None:
        self.room = Room(7, TAG, ("A", "B"), now=0.0, **more)
        self.tick = HostTick()

    def tell(self, account: int, *lines: str, now: float = 1.0) -> HostTick:
        self.tick = HostTick()
        self.room.read_message(account, "\n".join((f">{TAG}", *lines)), self.tick, now)
        return self.tick


def test_lines_travel_with_the_next_request_of_their_own_account():
    told = Told()
    assert not told.tell(0, "|init|battle", "|title|A vs. B", "|j|☆A")
    assert not told.tell(0, "|switch|p2a: X|X|250/250", "|c|☆B|hello", "chat|without bars in front", "|turn|1")
    assert not told.tell(1, "|switch|p2a: X|X|100/100", "|turn|1")
    tick = told.tell(0, request("p2", 3))
    (record,) = tick.records
    assert (record.battle, record.seat, record.request_number) == (7, 1, 3)
    assert record.lines.split("\n")[-2:] == ["|switch|p2a: X|X|250/250", "|turn|1"]
    assert "hello" not in record.lines
    (record,) = told.tell(1, request("p1", 4)).records
    assert (record.seat, record.lines) == (0, "|switch|p2a: X|X|100/100\n|turn|1")
    assert [told.room.account_of(seat) for seat in (0, 1)] == [1, 0]


def test_a_wait_request_asks_nothing_and_keeps_the_lines():
    told = Told()
    assert not told.tell(0, "|-damage|p1a: X|50/100", request("p1", 3, wait=True))
    (record,) = told.tell(0, request("p1", 5)).records
    assert record.lines == "|-damage|p1a: X|50/100"


@pytest.mark.parametrize("rqid", ['"7"', "7.0", "null", "true", "-1", str(1 << 31)])
def test_a_request_whose_number_no_answer_can_name_is_unreadable(rqid):
    with pytest.raises(UNREADABLE):
        Told().tell(0, request("p1", 3).replace(":3", f":{rqid}"))


def test_a_choice_names_the_request_it_answers():
    told = Told()
    told.tell(0, request("p1", 3))
    assert told.room.asked == {0}
    assert told.room.choice(0, 3, "move 1", now=2.0) == "/choose move 1|3"
    assert told.room.asked == set()


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("[Unavailable choice] Can't switch: The active Pokémon is trapped", "unavailable"),
        ("[Invalid choice] Can't move: X's Tackle is disabled", "invalid"),
        ("[Invalid choice] Can't do anything: The game is over", None),
        ("[Invalid choice] Sorry, too late to make a different move; the next turn has already started", None),
        ("Some other trouble", None),
    ],
)
def test_refusals(words, kind):
    told = Told()
    told.tell(0, request("p1", 3))
    errors = told.tell(0, f"|error|{words}").errors
    assert [(e.battle, e.seat, e.request_number, e.kind) for e in errors] == ([(7, 0, 3, kind)] if kind else [])


@pytest.mark.parametrize(
    ("lines", "winner", "reason"),
    [
        (["|win|B"], 0, "win"),
        (["|win|A"], 1, "win"),
        (["|tie"], None, "tie"),
        (["|turn|1000", "|tie"], None, "turn_limit"),
        (["|-message|A lost due to inactivity.", "|win|B"], None, "inactivity"),
        (["|-message|A forfeited.", "|win|B"], None, "forfeit"),
        (["|-message|A forfeited by changing their name.", "|win|B"], None, "forfeit"),
        (["|-message|A lost by having an inappropriate name.", "|win|B"], None, "forfeit"),
        (["|-message|x forfeited. was hit!", "|-message|B forfeited by luck", "|win|B"], 0, "win"),
    ],
)
def test_the_end_is_told_once_after_both_accounts_have_heard_it(lines, winner, reason):
    told = Told()
    told.tell(0, request("p2", 3))
    tick = told.tell(0, "|faint|p2a: X", *lines)
    (record,) = tick.records
    assert (record.seat, record.request, record.lines.startswith("|faint|p2a: X")) == (1, None, True)
    assert not tick.ended
    tick = told.tell(1, *lines)
    assert [record.seat for record in tick.records] == [0]
    (end,) = tick.ended
    assert (end.battle, end.winner_seat, end.reason) == (7, winner, reason)
    assert told.room.over
    assert not told.tell(1, *lines)


def test_a_log_is_what_the_first_account_saw():
    told = Told(log=True)
    told.tell(0, "|turn|1", request("p1", 3))
    told.tell(1, "|turn|1", "|secret", request("p2", 4))
    told.tell(1, "|win|B")
    assert told.tell(0, "|win|B").logs == [(7, "|turn|1\n|win|B")]


def test_a_battle_that_is_not_played_out_leaves_its_log_too():
    told = Told(log=True)
    lines = ["|turn|1", "|-message|A forfeited.", "|win|B"]
    told.tell(0, *lines)
    assert told.tell(1, *lines).logs == [(7, "\n".join(lines))]


def test_the_tier_is_no_tie():
    told = Told()
    assert not told.tell(0, "|tier|[Gen 9] Random Battle")


def test_a_room_stalls_only_while_the_server_owes_something():
    told = Told()
    told.tell(0, request("p1", 3), now=1.0)
    assert not told.room.stalled(100.0, 20.0), "we owe an answer"
    told.room.choice(0, 3, "move 1", now=100.0)
    assert not told.room.stalled(110.0, 20.0)
    assert told.room.stalled(121.0, 20.0)
