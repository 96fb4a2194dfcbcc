"""The keeper of a player's process: what it tells again, what it drops, and when it gives up."""

from __future__ import annotations

import orjson
import pytest

from simul.common.errors import FailingEnvError
from simul.env_worker.games.pokemon.host.host_messages import SeatRecord
from simul.env_worker.games.pokemon.opponents import player_keeper
from simul.env_worker.games.pokemon.opponents.player_keeper import MOST_DEATHS, Battles, PlayerAnswer, PlayerKeeper

LIMIT_SEC = 10.0


class FakeProcess:
    """Keeps what it is told and says what a test puts in."""

    running: list[FakeProcess]

    def __init__(self, command, keep_stderr):
        self.told, self.says, self.ended = bytearray(), [], False
        self.pid = self.stdout = 1
        self.closed = False
        FakeProcess.running.append(self)

    @property
    def commands(self) -> list[dict]:
        return [orjson.loads(line) for line in bytes(self.told).splitlines()]

    def write_from(self, unsent):
        self.told += unsent
        unsent.clear()

    def read_into(self, heard):
        heard += b"".join(orjson.dumps(message) + b"\n" for message in self.says)
        self.says = []
        return self.ended

    def exit_code(self):
        return 3

    def close(self, grace_sec):
        self.closed = True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def keeper(monkeypatch, clock):
    FakeProcess.running = []
    monkeypatch.setattr(player_keeper, "PipedProcess", FakeProcess)
    found = PlayerKeeper("mybot:MyBot", Battles("gen9randombattle", 9, False), LIMIT_SEC, clock=clock)
    found.start()
    return found


def ask(keeper: PlayerKeeper, battle: int, number: int = 1) -> None:
    keeper.ask(SeatRecord(battle, 1, number, f"lines {number}", {"request": number}), seed=1)
    keeper.flush()


def pass_time(keeper: PlayerKeeper, clock: Clock, seconds: int) -> list:
    said = []
    for _ in range(seconds):
        clock.now += 1.0
        said += keeper.poll()
    return said


def answer(battle: int, number: int = 1) -> dict:
    return {"answer": [battle, 1, number, "move 1", 1, {}]}


def test_a_choice_has_its_own_time_and_those_that_wait_go_on_in_a_new_process(keeper, clock):
    ask(keeper, 1)
    ask(keeper, 2)
    (process,) = FakeProcess.running
    assert pass_time(keeper, clock, 30) == []  # it has begun neither
    process.says = [{"begins": [1, 1, 1]}]
    (late,) = pass_time(keeper, clock, 13)
    assert (late.battle, late.seat) == (1, 1)
    assert "longer than opponents.limit_sec, 10 s" in late.what
    assert process.closed
    new = FakeProcess.running[1]
    assert [command["battle"] for command in new.commands] == [2]
    new.says = [{"ready": True}, {"begins": [2, 1, 1]}, answer(2)]
    assert keeper.poll() == [PlayerAnswer(2, 1, 1, "move 1", 1, {})]


def test_a_worker_that_was_stopped_is_not_the_players_fault(keeper, clock):
    ask(keeper, 1)
    FakeProcess.running[0].says = [{"begins": [1, 1, 1]}]
    keeper.poll()
    clock.now += 1000.0
    assert keeper.poll() == []


def test_what_was_answered_is_told_again_and_not_asked_again(keeper, clock):
    (process,) = FakeProcess.running
    ask(keeper, 1)
    process.says = [answer(1), answer(1)]
    assert len(keeper.poll()) == 1  # the same answer twice counts once
    ask(keeper, 1, number=2)
    ask(keeper, 2)
    process.says, process.ended = [{"begins": [2, 1, 1]}], True
    (dead,) = keeper.poll()
    assert (dead.battle, dead.what) == (2, "its process ended with code 3")
    keeper.poll()
    told = [(command["battle"], command["number"], command["lines"]) for command in FakeProcess.running[1].commands]
    assert told == [(1, None, "lines 1"), (1, 2, "lines 2")]
    keeper.forget(1, 1)
    FakeProcess.running[1].says = [answer(1, 2)]
    assert keeper.poll() == []


def test_a_player_that_only_dies_is_given_up(keeper, clock):
    def die(battle: int) -> None:
        ask(keeper, battle)
        FakeProcess.running[-1].says = [{"begins": [battle, 1, 1]}]
        FakeProcess.running[-1].ended = True
        pass_time(keeper, clock, 5)

    for battle in range(MOST_DEATHS - 1):
        die(battle)
    with pytest.raises(FailingEnvError, match=r"mybot:MyBot died 5 times .*: its process ended with code 3"):
        die(MOST_DEATHS)
    assert len(FakeProcess.running) == MOST_DEATHS


def test_a_player_that_cannot_be_made_ends_the_run(keeper):
    FakeProcess.running[0].says = [{"failed": "The opponent mybot:MyBot cannot be made: no."}]
    with pytest.raises(FailingEnvError, match=r"mybot:MyBot cannot be made: no\."):
        keeper.poll()
