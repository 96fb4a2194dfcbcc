"""PokemonSource on the real simulator: sessions, ends, accounts, kills."""

import os
import signal
import time
from collections import Counter

import numpy as np

from simul.common.config.games.pokemon import PokemonConfig, RewardsConfig
from simul.common.config.schema import OpponentsConfig
from simul.common.protocol.messages import ABORTED, GREEDY, RECORD, START, TERMINATED, TRUNCATED
from tests.support.battles import Table, check_accounts, make_source, played, seated
from tests.support.waiting import PATIENCE_SEC

KINDS = ("self_play", "random", "max_base_power", "simple_heuristics")


def test_self_play_to_the_end():
    source = make_source(episodes=6)
    table, metrics = seated(source)
    check_accounts(metrics)
    assert metrics["episodes"]["started"] == metrics["episodes"]["finished"] == 6
    assert metrics["invalid_choices"] == metrics["bad_actions"] == 0
    assert metrics["parse_errors"] == {}
    assert len(table.ends) == 12
    assert {end.kind for end in table.ends.values()} == {TERMINATED}
    assert all(start.flags == START | RECORD for start in table.starts)
    for (env, _, episode), end in table.ends.items():
        assert end.reward == -table.ends[env, 1 - end.seat, episode].reward
    assert sum(metrics["results"]["self_play"].values()) == 6


def test_scripted_opponents_play_one_seat_and_the_learner_alternates():  # test_teams.py has every kind
    source = make_source(opponents=OpponentsConfig(self_play=0.0, random=1.0), episodes=4, greedy=True, record=False)
    table, metrics = seated(source)
    check_accounts(metrics)
    results = metrics["results"]["random"]
    assert sum(results.values()) == 4
    assert Counter(end.seat for end in table.ends.values()) == {0: 2, 1: 2}
    assert results["wins"] == sum(end.reward > 0 for end in table.ends.values())
    assert results["losses"] == sum(end.reward < 0 for end in table.ends.values())
    assert all(start.flags == START | GREEDY for start in table.starts)
    assert metrics["scripted"]["decisions"] > 50
    assert metrics["scripted"]["invalid"] == 0


def test_doubles_are_played():
    config = PokemonConfig(format="gen9randomdoublesbattle", max_turns=60)
    source = make_source(config, OpponentsConfig(**dict.fromkeys(KINDS, 0.25)), envs=6, episodes=6)
    _, metrics = played(source)
    check_accounts(metrics)
    assert metrics["episodes"]["finished"] == 6
    assert metrics["invalid_choices"] == metrics["bad_actions"] == metrics["scripted"]["invalid"] == 0
    assert metrics["scripted"]["decisions"] > 10
    assert metrics["parse_errors"] == {}


def test_past_selves_are_bound_for_the_battle_and_not_recorded():
    source = make_source(opponents=OpponentsConfig(self_play=0.0, past=1.0), envs=2, episodes=4)
    source.start()
    try:
        table = Table(source)
        while len(table.starts) < 4:
            table.turn(answer=False)
        assert all(start.policy == "learner" and start.flags & RECORD for start in table.starts)
        source.set_policies(["learner", "past/3", "past/9"])
        source.abort([0, 1], "test")
        while len(table.starts) < 8:
            table.turn(answer=False)
    finally:
        source.close()
    later = table.starts[4:]
    assert sorted(start.policy.split("/")[0] for start in later) == ["learner", "learner", "past", "past"]
    assert all(bool(start.flags & RECORD) == (start.policy == "learner") for start in later)
    assert [end.kind for end in table.ends.values()] == [ABORTED] * 4
    assert source.metrics()["episodes"]["aborted"] == {"test": 2, "shutdown": 2}


def test_sessions_the_server_lost_get_no_end():
    source = make_source(envs=2)
    source.start()
    try:
        table = Table(source)
        while len(table.starts) < 4:
            table.turn(answer=False)
        source.abort([0, 1], "server_lost")
        while len(table.starts) < 8:
            table.turn(answer=False)
    finally:
        source.close()
    assert table.ends == {}
    check_accounts(source.metrics())


def test_turn_limit_truncates_with_the_final_observation():
    source = make_source(PokemonConfig(max_turns=3, rewards=RewardsConfig(hp_delta=0.5)), episodes=8)
    table, metrics = seated(source)
    check_accounts(metrics)
    assert metrics["episodes"]["truncated"] == 8
    assert metrics["episodes"]["finished"] == 8
    assert len(table.ends) == 16
    for key, end in table.ends.items():
        assert end.kind == TRUNCATED
        assert end.observation.shape == (source.spec.observation_size,)
        assert end.mask.any()
        assert end.observation[0] == np.float16(4 / 100), "the turn after the last one played"
        assert table.open[key].observation[0] <= np.float16(3 / 100)


def test_a_killed_host_costs_its_battles_only():
    source = make_source(PokemonConfig(max_turns=10), episodes=20)
    source.start()
    try:
        table = Table(source)
        while table.decisions < 100 or len(table.starts) < 16:  # both seats of every battle were asked
            table.turn()
        os.kill(source.metrics()["host_pids"][0], signal.SIGKILL)
        died = time.monotonic()
        before = len(table.starts)
        while len(table.starts) == before:
            table.turn()
            assert time.monotonic() < died + PATIENCE_SEC
        aborted = [end for end in table.ends.values() if end.kind == ABORTED]
        table.play()
        metrics = source.metrics()
    finally:
        source.close()
    check_accounts(metrics)
    assert metrics["episodes"]["aborted"]["host_died"] == len({end.env for end in aborted})
    assert all(end.reward == 0.0 for end in aborted)
    assert metrics["host_restarts"] == 1
    assert any("exited" in event for event in metrics["events"])
    assert metrics["episodes"]["started"] == 20
