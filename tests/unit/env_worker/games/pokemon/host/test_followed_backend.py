"""Ends of battles that are run by one backend and followed by another process; both scripted."""

from types import SimpleNamespace

import pytest

from simul.env_worker.games.pokemon.host.backend import BattleStart
from simul.env_worker.games.pokemon.host.followed_backend import FollowedBackend
from simul.env_worker.games.pokemon.host.host_messages import BattleEnd, HostTick


def nothing(*_) -> None:
    """Commands of no account here."""


class Told:
    """Runs the battles; notes which are stopped."""

    start_battle = flush = nothing

    def __init__(self) -> None:
        self.stopped: list[int] = []

    def stop_battle(self, battle: int) -> None:
        self.stopped.append(battle)


@pytest.fixture
def told():
    return Told()


@pytest.fixture
def follower():
    ticks: list[HostTick] = []
    return SimpleNamespace(follow=nothing, forget=nothing, flush=nothing, end=nothing, ticks=ticks, poll=ticks.pop)


@pytest.fixture
def backend(told, follower):
    backend = FollowedBackend(told, follower)
    backend.start_battle(7, "gen9randombattle", BattleStart(encode=(True, True), log=True))
    return backend


@pytest.mark.parametrize("reported", [True, False])
def test_a_battle_that_the_follower_gives_up_ends_in_one_tick_with_its_log(backend, told, follower, reported):
    follower.ticks += [HostTick(), HostTick(ended=[BattleEnd(7, None, 9, "truncated")])]
    first = backend.exchange(HostTick())
    assert (told.stopped, first.ended) == ([7], [])
    heard = HostTick(ended=[BattleEnd(7, None, 9, "stopped")], logs=[(7, "|turn|9")]) if reported else HostTick()
    second = backend.exchange(heard)
    assert [(end.battle, end.reason) for end in second.ended] == [(7, "truncated")]
    assert second.logs == ([(7, "|turn|9")] if reported else [])


def test_a_battle_that_is_stopped_ends_as_what_runs_it_says(backend, told, follower):
    follower.ticks.append(HostTick())
    backend.stop_battle(7)
    tick = backend.exchange(HostTick(ended=[BattleEnd(7, None, 9, "stopped")], logs=[(7, "|turn|9")]))
    assert told.stopped == [7]
    assert ([end.reason for end in tick.ended], tick.logs) == (["stopped"], [(7, "|turn|9")])
