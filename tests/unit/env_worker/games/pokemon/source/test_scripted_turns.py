"""Scripted players think after the policy's decisions are out, a little at a time, in order."""

import select

import pytest

from simul.common.config.schema import OpponentsConfig
from simul.env_worker.games.pokemon.host.host_messages import HostTick, SeatRecord
from simul.env_worker.games.pokemon.source.scoreboard import Scoreboard
from simul.env_worker.games.pokemon.source.scripted_turns import TURN_SEC, ScriptedTurns
from simul.env_worker.games.pokemon.source.source import PokemonSource
from tests.support.fake_host import FakeHost, row, source_at
from tests.support.pokemon.recorded import recorded_seats

FIRST = {  # by seat: its first turn
    seat.seat: next((lines, request) for lines, request in seat.records if request and "active" in request)
    for seat in recorded_seats("gen9randombattle")
}


class Watched(FakeHost):
    """A host that also takes the commands of scripted seats."""

    def choose(self, *choice):
        self.chosen.append(choice)


class Clock:
    """Every look at it is `step` seconds later than the one before."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def battle_source(envs: int, step: float = 0.0) -> tuple[PokemonSource, Watched]:
    """Everybody plays RandomPlayer, who sits at p2 in battles of even number."""
    host = Watched()
    source = source_at(host, OpponentsConfig(self_play=0, random=1), envs)
    source._turns._clock = Clock(step)
    return source, host


def asked(battle: int) -> SeatRecord:
    """The scripted seat of a battle is asked."""
    seat = 1 - battle % 2
    return SeatRecord(battle, seat, 1, *FIRST[seat])


def test_the_policys_decision_is_out_before_the_scripted_player_thinks():
    source, host = battle_source(envs=1)
    host.ticks.append(HostTick(rows=[row(1)], records=[asked(0)]))
    assert len(source.poll()) == 1
    assert host.chosen == []
    assert len(source.files()) == 2
    source.poll()
    assert [choice[:3] for choice in host.chosen] == [(0, 1, 1)]
    assert len(source.files()) == 1
    source.close()


@pytest.mark.parametrize(("step", "at_once"), [(0.0, 4), (TURN_SEC / 2, 2), (10 * TURN_SEC, 1)])
def test_they_think_for_a_bounded_time_and_in_order(step, at_once):
    source, host = battle_source(envs=4, step=step)
    host.ticks.append(HostTick(records=[asked(battle) for battle in range(4)]))
    source.poll()
    source.poll()
    assert [choice[0] for choice in host.chosen] == list(range(at_once))
    for _ in range(3):
        source.poll()
    assert [choice[0] for choice in host.chosen] == [0, 1, 2, 3]
    assert source.metrics()["scripted"]["decisions"] == 4
    source.close()


def test_nobody_sleeps_while_an_answer_is_owed():
    turns = ScriptedTurns(Scoreboard())
    assert turns.files() == []
    turns.add_request(asked(0))
    (descriptor,) = turns.files()
    for _ in range(2):
        assert select.select([descriptor], [], [], 0.0)[0] == [descriptor]
    turns.close()
    assert turns.files() == []


def test_what_a_battle_that_is_over_owed_is_dropped():
    source, host = battle_source(envs=2)
    host.ticks.append(HostTick(records=[asked(0), asked(1)]))
    source.poll()
    source.abort([0], "server_lost")
    source.poll()
    assert [choice[0] for choice in host.chosen] == [1]
    assert len(source.files()) == 1
    source.close()
