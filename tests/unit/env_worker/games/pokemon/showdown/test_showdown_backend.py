"""Battles over servers, without a server: a room that is gone costs its battle and nothing else."""

from pathlib import Path

import orjson
import pytest

from simul.env_worker.games.pokemon.host.backend import BattleStart
from simul.env_worker.games.pokemon.host.host_messages import HostTick
from simul.env_worker.games.pokemon.showdown import room
from simul.env_worker.games.pokemon.showdown.server_session import BATTLE, POPUP, ServerMessage
from simul.env_worker.games.pokemon.showdown.showdown_backend import ShowdownBackend
from simul.env_worker.games.pokemon.showdown.wakeup_queue import WakeupQueue

TAG = "battle-gen9randombattle-1"
GONE = f'You do not have permission to choose: "{TAG}" is not a room you are in.'


class StandInPair:
    """Notes what is sent, as (account, words, room)."""

    names = ("A", "B")
    url = "ws://127.0.0.1:1"

    def __init__(self) -> None:
        self.sent: list[tuple[int, str, str]] = []
        self.live = 0
        self.since = 0.0
        self.refusal = ""

    def challenge(self, battle_format, teams, now) -> None:
        self.since, self.refusal = now, ""
        self.send(0, "/challenge B")

    def withdraw(self) -> None:
        self.send(0, "/cancelchallenge B")

    def send(self, account, words, room="") -> None:
        self.sent.append((account, words, room))

    def flush(self) -> None:
        pass


class Stage:
    """A host with one battle, both of its seats asked."""

    def __init__(self, *, log: bool = False) -> None:
        self.now = 0.0
        self.pair = StandInPair()
        mail: WakeupQueue[ServerMessage] = WakeupQueue()
        self.said: list[str] = []
        self.host = ShowdownBackend(Path("node"), mail, self.said.append, stall_sec=20.0, clock=lambda: self.now)
        self.host.pairs = [self.pair]  # type: ignore[list-item]
        self.host.start_battle(7, "gen9randombattle", BattleStart(log=log))
        self.host.flush()
        self.open_room(TAG)
        self.pair.sent.clear()

    def open_room(self, tag: str) -> list[int]:
        """Both accounts are asked in a new room; returns the battles that are asked."""
        records = []
        for account in (0, 1):
            side = orjson.dumps({"side": {"id": f"p{account + 1}"}, "rqid": 3}).decode()
            records += self.hear(account, BATTLE, f">{tag}\n|init|battle\n|request|{side}").records
        return [record.battle for record in records]

    def hear(self, account: int, kind: str, text: str) -> HostTick:
        tick = HostTick()
        self.host.handle_message(ServerMessage(self.pair, account, kind, text), tick)  # type: ignore[arg-type]
        return tick

    def look(self, now: float) -> HostTick:
        self.now = now
        tick = HostTick()
        self.host.give_up_stalled(tick)
        return tick


def test_a_choice_that_a_popup_answers_ends_in_a_battle_without_a_result():
    stage = Stage()
    for seat in (0, 1):
        stage.host.choose(7, seat, 3, "move 1")
    assert stage.pair.sent == [(0, "/choose move 1|3", TAG), (1, "/choose move 1|3", TAG)]
    assert not stage.hear(0, POPUP, GONE)
    assert not stage.look(now=19.0)
    (end,) = stage.look(now=21.0).ended
    assert (end.battle, end.winner_seat, end.reason) == (7, None, "stalled")
    assert stage.pair.sent[2:] == [(0, "/forfeit", TAG), (0, f"/leave {TAG}", ""), (1, f"/leave {TAG}", "")]
    assert stage.pair.live == 0


def test_of_a_battle_that_is_gone_nothing_more_is_said_or_heard():
    stage = Stage()
    stage.host.stop_battle(7)
    sent = len(stage.pair.sent)
    stage.host.choose(7, 0, 3, "move 1")
    assert not stage.hear(0, BATTLE, f">{TAG}\n|win|A")
    assert len(stage.pair.sent) == sent


def test_a_stopped_battle_ends_with_its_log_in_the_next_tick():
    stage = Stage(log=True)
    stage.hear(0, BATTLE, f">{TAG}\n|turn|1")
    stage.host.start_battle(8, "gen9randombattle")
    for number in (7, 8):
        stage.host.stop_battle(number)
    tick = stage.host.take_tick()
    assert [(end.battle, end.winner_seat, end.reason) for end in tick.ended] == [
        (7, None, "stopped"), (8, None, "stopped"),
    ]  # fmt: skip
    assert tick.logs == [(7, "|init|battle\n|turn|1")]
    stage.host.stop_battle(7)
    assert not stage.host.take_tick()


def test_the_room_of_a_battle_that_was_stopped_before_it_began_is_left_and_given_to_no_other():
    stage = Stage()
    for number in (8, 9):
        stage.host.start_battle(number, "gen9randombattle")
        stage.host.flush()
    stage.host.stop_battle(8)
    stage.host.flush()
    assert stage.pair.sent == [(0, "/challenge B", "")], "the pair is busy until the room of battle 8 has come"
    first, second = (f"battle-gen9randombattle-{number}" for number in (2, 3))
    assert stage.open_room(first) == []
    assert stage.pair.sent[1:] == [(0, "/forfeit", first), (0, f"/leave {first}", ""), (1, f"/leave {first}", "")]
    stage.host.flush()
    assert stage.open_room(second) == [9, 9]
    assert stage.pair.live == 2


def test_a_room_that_belongs_to_no_battle_is_left():
    stage = Stage()
    tag = "battle-gen9randombattle-2"
    assert stage.open_room(tag) == []
    assert stage.pair.sent == [(0, "/forfeit", tag), (0, f"/leave {tag}", ""), (1, f"/leave {tag}", "")]


def test_a_pair_is_free_again_where_the_challenge_of_a_stopped_battle_is_refused():
    stage = Stage()
    stage.host.start_battle(8, "gen9randombattle")
    stage.host.flush()
    stage.host.stop_battle(8)
    stage.hear(0, POPUP, "The server is restarting")
    assert not stage.look(now=21.0).ended
    stage.host.start_battle(9, "gen9randombattle")
    stage.host.flush()
    assert stage.pair.sent[1:] == [(0, "/cancelchallenge B", ""), (0, "/challenge B", "")]


@pytest.mark.parametrize("line", ["|turn|soon", "|request|{", '|request|{"side": {"id": "p9"}}'])
def test_a_room_that_says_nonsense_is_forfeited_and_named(line):
    stage = Stage()
    (end,) = stage.hear(1, BATTLE, f">{TAG}\n{line}").ended
    assert (end.battle, end.reason) == (7, "unreadable")
    assert stage.pair.sent[0] == (0, "/forfeit", TAG)
    assert stage.said[0].startswith("battle 7 is aborted: ws://127.0.0.1:1 sent what is no battle's message: ")


def test_an_endless_room_is_forfeited(monkeypatch):
    monkeypatch.setattr(room, "MOST_TEXT", 1000)
    stage = Stage()
    ends = [end for _ in range(9) for end in stage.hear(0, BATTLE, f">{TAG}\n" + "|c|x" * 50).ended]
    assert [end.reason for end in ends] == ["unreadable"]


def test_a_popup_is_no_refusal_of_a_challenge_that_was_not_made():
    stage = Stage()
    stage.hear(0, POPUP, GONE)
    assert stage.pair.refusal == ""


def test_a_battle_that_is_watched_says_what_its_first_account_has_seen_without_chat():
    stage = Stage()
    assert stage.hear(0, BATTLE, f">{TAG}\n|turn|1").spectated == []
    stage.host.spectate_battle(7, True)
    seen = [(7, "|init|battle\n|turn|1\n|turn|2")]
    assert stage.hear(0, BATTLE, f">{TAG}\n|c|☆B|hello\n|turn|2").spectated == seen
    assert stage.hear(1, BATTLE, f">{TAG}\n|turn|2\n|-heal|p2a: X|250/250").spectated == seen
    stage.host.spectate_battle(6, False)
    assert stage.hear(0, BATTLE, f">{TAG}\n|turn|3").spectated[0][1].endswith("|turn|3")
    stage.host.spectate_battle(7, False)
    assert stage.hear(0, BATTLE, f">{TAG}\n|turn|4").spectated == []
