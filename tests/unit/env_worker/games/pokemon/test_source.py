"""The source against a host that misbehaves on command, with either encoder; records are real ones."""

import numpy as np
import pytest

from common.config import OpponentsConfig, PokemonConfig
from common.decisions import Action
from common.errors import ConfigError, EnvError
from common.messages import ABORTED, DECISION, START
from env_worker.games.pokemon.actions import legal_choices
from env_worker.games.pokemon.formats import generation
from env_worker.games.pokemon.host import HostDied, HostTick, SimEnd, SimError, SimRecord, SimRow
from env_worker.games.pokemon.host_keeper import HostKeeper
from env_worker.games.pokemon.layout import OBSERVATION_SIZE
from env_worker.games.pokemon.rewards import Facts
from env_worker.games.pokemon.scoreboard import Scoreboard
from env_worker.games.pokemon.source import PokemonSource
from tests.golden.pokemon.recorded import recorded_seats


class FakeHost:
    """Says what the test put in, as the seats' encoder wants it; keeps what it was told."""

    pid = 1

    def __init__(self, encoder: str) -> None:
        self.encodes = encoder == "host"
        self.ticks: list[HostTick] = []
        self.started: list[int] = []
        self.chosen: list[tuple] = []
        self.stopped: list[int] = []
        self.bytes_heard = 0

    def start_battle(self, battle, battle_format, start):
        self.started.append(battle)

    def choose(self, *choice):
        assert not self.encodes
        self.chosen.append(choice)

    def act(self, *choice):
        assert self.encodes
        self.chosen.append(choice)

    def ask(self, number: int, *errors: SimError) -> None:
        """Seat 0 of battle 0 is asked."""
        tick = HostTick(errors=list(errors))
        if self.encodes:
            tick.rows.append(row(number))
        else:
            tick.records.append(SimRecord(0, 0, number, LINES if number == 1 else "", REQUEST))
        self.ticks.append(tick)

    def refuse(self, refused: set[int]) -> None:
        """The choice is called invalid; an encoding host asks again by itself, until nothing is left."""
        tick = HostTick(errors=[SimError(0, 0, 1, "invalid", "no")])
        again = row(1, without=refused)
        if self.encodes and again.mask.any():
            tick.rows.append(again)
        elif self.encodes:
            tick.errors.append(SimError(0, 0, 1, "exhausted", "no"))
        self.ticks.append(tick)

    def stop_battle(self, battle):
        self.stopped.append(battle)

    def flush(self):
        pass

    def fileno(self):
        return 0

    def close(self):
        pass

    def poll(self):
        self.bytes_heard += bool(self.ticks)
        return self.ticks.pop(0) if self.ticks else HostTick()


@pytest.fixture(params=["host", "python"])
def encoder(request):
    return request.param


@pytest.fixture
def host(encoder):
    return FakeHost(encoder)


@pytest.fixture
def source(host, encoder):
    made = PokemonSource(PokemonConfig(encoder=encoder), OpponentsConfig(), envs=1, seed=0, index=0)
    keeper = HostKeeper(None, accelerate=True, index=0)
    keeper.host = host
    made._keeper = keeper
    made.poll()
    assert host.started == [0]
    return made


SEAT = next(seat for seat in recorded_seats("gen9*") if seat.seat == 0)
LINES, REQUEST = next(record for record in SEAT.records if record[1] and "active" in record[1])


MASK = legal_choices(REQUEST, [entry["ident"] for entry in REQUEST["side"]["pokemon"]].index).mask


def row(number: int, without: set[int] = frozenset()) -> SimRow:
    mask = np.array([allowed and action not in without for action, allowed in enumerate(MASK)], np.uint8)
    facts = Facts((6.0, 6.0, 6.0, 6.0), 1)
    return SimRow(0, 0, number, 1, facts, np.zeros(OBSERVATION_SIZE, np.float16), mask)


def answer(decision, action: int) -> Action:
    return Action(decision.env, decision.seat, decision.episode, decision.step, decision.attempt, action, 0.0, 0.0, 0)


def first_legal(decision) -> int:
    return int(decision.mask.argmax())


def test_an_unavailable_choice_is_asked_again_at_the_same_step(source, host):
    host.ask(1)
    (decision,) = source.poll()
    source.act([answer(decision, first_legal(decision))])
    host.ask(2, SimError(0, 0, 1, "unavailable", "x"))
    (again,) = source.poll()
    assert (again.step, again.attempt, again.flags & START, again.reward) == (0, 1, START, 0.0)
    source.act([answer(decision, first_legal(decision))])
    assert len(host.chosen) == 1, "the answer to the first attempt comes too late"
    source.act([answer(again, first_legal(again))])
    assert host.chosen[1][2] == 2
    assert source.metrics()["redos"] == 1
    assert source.metrics()["invalid_choices"] == 0


def test_an_invalid_choice_is_asked_again_without_the_refused_action(source, host):
    host.ask(1)
    (decision,) = source.poll()
    refused = first_legal(decision)
    source.act([answer(decision, refused)])
    host.refuse({refused})
    (again,) = source.poll()
    assert (again.step, again.attempt) == (0, 1)
    assert again.mask[refused] == 0
    assert again.mask.sum() == decision.mask.sum() - 1
    source.act([answer(again, first_legal(again))])
    assert host.chosen[1][2] == 1, "the request is still the first one"
    assert source.metrics()["invalid_choices"] == 1


def test_a_battle_with_no_choice_left_is_aborted(source, host):
    host.ask(1)
    (decision,) = source.poll()
    refused = set()
    for _ in range(int(decision.mask.sum())):
        source.act([answer(decision, first_legal(decision))])
        refused.add(first_legal(decision))
        host.refuse(refused)
        (decision,) = source.poll()
    assert decision.kind == ABORTED
    assert source.metrics()["episodes"]["aborted"] == {"no_valid_choice": 1}


def test_an_action_that_is_not_legal_aborts_and_is_counted(source, host):
    host.ask(1)
    (decision,) = source.poll()
    source.act([answer(decision, 25 if not decision.mask[25] else 10)])
    assert host.stopped == [0]
    assert [end.kind for end in source.poll()] == [ABORTED]
    assert source.metrics()["bad_actions"] == 1


def test_late_double_and_acknowledging_actions_are_ignored(source, host):
    host.ask(1)
    (decision,) = source.poll()
    source.act([answer(decision, -1)])
    source.act([answer(decision, first_legal(decision))] * 2)
    assert len(host.chosen) == 1
    host.ticks.append(HostTick(ended=[SimEnd(0, 1, 9, "win")]))
    (end,) = source.poll()
    assert (end.kind, end.step, end.reward) == (1, 1, -1.0)
    source.act([answer(decision, first_legal(decision)), answer(end, -1)])
    assert len(host.chosen) == 1


@pytest.mark.parametrize(
    ("winner", "reason", "outcome"), [(0, "win", "wins"), (1, "win", "losses"), (None, "tie", "ties")]
)
def test_outcomes(source, host, winner, reason, outcome):
    host.ask(1)
    host.ticks.append(HostTick(ended=[SimEnd(0, winner, 9, reason)]))
    source.poll()
    source.poll()
    metrics = source.metrics()
    assert metrics["results"]["self_play"][outcome] == 1
    assert metrics["episodes"]["finished"] == 1
    assert metrics["episodes"]["ties"] == (outcome == "ties")
    assert metrics["turns"] == 9


def test_a_crashed_battle_is_aborted_and_replaced(source, host):
    host.ask(1)
    host.ticks.append(HostTick(ended=[SimEnd(0, None, 3, "crashed")]))
    source.poll()
    assert [end.kind for end in source.poll()] == [ABORTED]
    assert host.started == [0, 1]
    assert source.metrics()["episodes"] | {"aborted": 0} == {
        "started": 2, "finished": 0, "aborted": 0, "alive": 1, "truncated": 0, "ties": 0, "turn_limit_ties": 0,
    }  # fmt: skip


def test_records_of_a_battle_that_is_over_are_ignored(source, host):
    source.abort([0], "server_lost")
    host.ask(1)
    assert source.poll() == []


def test_draining_starts_nothing_new(source, host):
    source.drain()
    host.ask(1)
    host.ticks.append(HostTick(ended=[SimEnd(0, 0, 9, "win")]))
    source.poll()
    assert not source.idle()
    source.poll()
    assert source.idle()
    assert host.started == [0]


def test_a_host_that_keeps_dying_is_given_up(monkeypatch):
    now = [0.0]
    keeper = HostKeeper(None, accelerate=True, index=0, clock=lambda: now[0])

    class DyingHost(FakeHost):
        def poll(self):
            raise HostDied("gone")

    def start():
        keeper.host = DyingHost("host")
        return keeper.host

    monkeypatch.setattr(keeper, "start", start)
    start()
    waits = []
    for _ in range(4):
        with pytest.raises(HostDied):
            keeper.poll()
        died = now[0]
        while keeper.revive() is None:
            now[0] += 0.25
        waits.append(now[0] - died)
    assert waits == [0.0, 0.5, 1.0, 2.0]
    with pytest.raises(EnvError, match="5 times"):
        keeper.poll()


def test_scoreboard_adds_up_and_keeps_a_recent_window():
    score = Scoreboard()
    for outcome in [1] * 150 + [-1] * 100 + [0] * 5 + [None] * 5:
        score.started += 1
        score.finish("random", outcome, 10)
    metrics = score.metrics(alive=0)
    assert metrics["results"]["random"] == {"wins": 150, "losses": 100, "ties": 5, "truncated": 5}
    assert metrics["recent"]["random"] == {"games": 200, "win_rate": 0.45}
    assert metrics["turns"] == 2600
    assert metrics["episodes"]["finished"] == 260


def test_generation_of_a_format():
    assert generation("gen4randombattle") == 4
    with pytest.raises(ConfigError, match="gen9randombattle"):
        generation("randombattle")


def test_the_decision_kind_is_a_decision(source, host):
    host.ask(1)
    (decision,) = source.poll()
    assert decision.kind == DECISION
    assert decision.observation.shape == (source.spec.observation_size,)
