"""The source against a host that misbehaves on command."""

from types import SimpleNamespace

import pytest

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.config.schema import OpponentsConfig
from simul.common.errors import FailingEnvError
from simul.common.protocol.decisions import Action
from simul.common.protocol.messages import ABORTED, START
from simul.env_worker.games.base.failures import LEAST_EPISODES
from simul.env_worker.games.pokemon.host.host_messages import BattleEnd, CommandError, HostTick
from simul.env_worker.games.pokemon.source.source import PokemonSource
from tests.support.fake_host import FakeHost, source_at


@pytest.fixture
def host():
    return FakeHost()


@pytest.fixture
def source(host):
    return source_at(host)


def answer(decision, action: int) -> Action:
    return Action(decision.env, decision.seat, decision.episode, decision.step, decision.attempt, action, 0.0, 0.0, 0)


def first_legal(decision) -> int:
    return int(decision.mask.argmax())


def test_an_unavailable_choice_is_asked_again_at_the_same_step(source, host):
    host.ask(1)
    (decision,) = source.poll()
    source.act([answer(decision, first_legal(decision))])
    host.ask(2, CommandError(0, 0, 1, "unavailable", "x"))
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
    host.ticks.append(HostTick(ended=[BattleEnd(0, 1, 9, "win")]))
    (end,) = source.poll()
    assert (end.kind, end.step, end.reward) == (1, 1, -1.0)
    source.act([answer(decision, first_legal(decision)), answer(end, -1)])
    assert len(host.chosen) == 1


@pytest.mark.parametrize(
    ("winner", "reason", "outcome"), [(0, "win", "wins"), (1, "win", "losses"), (None, "tie", "ties")]
)
def test_outcomes(source, host, winner, reason, outcome):
    host.ask(1)
    host.ticks.append(HostTick(ended=[BattleEnd(0, winner, 9, reason)]))
    source.poll()
    source.poll()
    metrics = source.metrics()
    assert metrics["results"]["self_play"][outcome] == 1
    assert metrics["episodes"]["finished"] == 1
    assert metrics["episodes"]["ties"] == (outcome == "ties")
    assert metrics["turns"] == 9


@pytest.mark.parametrize("reusable", [True, False])
def test_drawn_teams_play_again_only_where_the_host_keeps_them(host, monkeypatch, reusable):
    said = {"id": "gen9randombattle", "problem": "", "doubles": False, "teams": [], "illegal": []}
    host.check_format = lambda *asked: said | {"reusable": reusable}
    starts = []
    host.start_battle = lambda battle, battle_format, start: starts.append(start)
    source = PokemonSource(PokemonConfig(), OpponentsConfig(), envs=3, seed=0, index=0)
    monkeypatch.setattr(source, "_make_keeper", lambda: SimpleNamespace(start=lambda: host))
    source.start()
    assert [start.reuse for start in starts] == [reusable] * 3
    assert all(start.team_seeds[0] != start.team_seeds[1] for start in starts)


def test_a_crashed_battle_is_aborted_and_replaced(source, host):
    host.ask(1)
    host.ticks.append(HostTick(ended=[BattleEnd(0, None, 3, "crashed")]))
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
    host.ticks.append(HostTick(ended=[BattleEnd(0, 0, 9, "win")]))
    source.poll()
    assert not source.idle()
    source.poll()
    assert source.idle()
    assert host.started == [0]


def test_too_many_battles_that_code_of_the_users_own_fails_end_the_run(host):
    source = source_at(host, max_failed_share=0.5)

    def fail() -> None:
        source._backend_events.fail(host, source._battles.by_env[0], "opponent_error", "mybot.py:1: boom", [])
        source.poll()

    for _ in range(LEAST_EPISODES - 1):
        fail()
    with pytest.raises(FailingEnvError, match=r"20 of the last 20 episodes failed.*: mybot.py:1: boom \(20 times\)"):
        fail()
    assert len(host.stopped) == source.metrics()["episodes"]["aborted"]["opponent_error"] == LEAST_EPISODES


def test_crashes_are_said_with_their_reason_and_end_the_run_where_most_battles_crash(host):
    source = source_at(host, max_failed_share=0.5)

    def crash(battle: int) -> None:
        said = CommandError(battle, None, None, "crashed", "no such species")
        host.ticks.append(HostTick(errors=[said], ended=[BattleEnd(battle, None, 1, "crashed")]))
        source.poll()

    for battle in range(LEAST_EPISODES - 1):
        crash(battle)
    metrics = source.metrics()
    assert metrics["episodes"]["aborted"] == {"simulator_crashed": LEAST_EPISODES - 1}
    assert [event for event in metrics["events"] if "crashed" in event] == [
        "a battle crashed: no such species (battle 0, which is aborted)",
        "a battle crashed: no such species (battle 9, which is aborted, 10 times so far)",
    ]
    with pytest.raises(FailingEnvError, match=r"20 of the last 20 episodes failed.*no such species \(20 times\)"):
        crash(LEAST_EPISODES - 1)
