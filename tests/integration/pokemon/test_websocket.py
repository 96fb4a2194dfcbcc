"""The worker's source over real Showdown servers: the same contract as over a simulator host."""

from __future__ import annotations

import os
import re
import signal
import time
from contextlib import ExitStack
from typing import Any

import psutil
import pytest

from simul.common.config.games.pokemon import PokemonConfig, ShowdownAddress
from simul.common.config.schema import OpponentsConfig
from simul.common.errors import ConfigError
from simul.common.protocol.messages import ABORTED, DECISION
from simul.env_worker.games.pokemon.install.node import find_node
from simul.env_worker.games.pokemon.showdown import showdown_backend as showdown_host
from simul.env_worker.games.pokemon.showdown.local_server import local_server
from simul.env_worker.games.pokemon.source.source import PokemonSource
from tests.integration.pokemon.test_own_code import check_each_decision
from tests.support.battles import Table, check_accounts, make_source
from tests.support.showdown import showdown
from tests.support.waiting import PATIENCE_SEC


def played_out(source: PokemonSource) -> tuple[Table, dict[str, Any]]:
    """All battles of a source played to their end: what came of them, and the figures."""
    source.start()
    try:
        table = Table(source)
        table.play()
        metrics = source.metrics()
    finally:
        source.close()
    check_accounts(metrics)
    return table, metrics


@pytest.mark.slow  # .ci/long runs it; a killed simulator host is the same to the source, and in test_source.py
def test_a_killed_server_costs_its_own_battles_and_comes_back():
    source = make_source(PokemonConfig(transport="websocket", local_servers=2), envs=8)
    source.start()
    try:
        table = Table(source)
        while table.decisions < 100 or len(table.starts) < 16:  # both seats of every battle were asked
            table.turn()
        first, second, _ = source.metrics()["host_pids"]
        os.kill(first, signal.SIGKILL)
        deadline = time.monotonic() + 2 * PATIENCE_SEC
        while source.metrics()["episodes"]["finished"] < 8 or len(set(source.metrics()["host_pids"]) - {first}) < 3:
            assert time.monotonic() < deadline, source.metrics()
            table.turn()
        source.drain()
        while source.metrics()["episodes"]["alive"]:
            assert time.monotonic() < deadline + 40
            table.turn()
        metrics = source.metrics()
        pids = metrics["host_pids"]
    finally:
        source.close()
    check_accounts(metrics)
    lost = metrics["episodes"]["aborted"]["simulator_connection_lost"]
    assert 1 <= lost <= 7, "battles on the other server go on"
    assert sum(end.kind == ABORTED for end in table.ends.values()) == 2 * lost
    assert second in pids
    assert any(re.search(r"\w; its \d+ battles are aborted, and", event) for event in metrics["events"])
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_scripted_opponents(server):  # test_teams.py has every kind
    opponents = OpponentsConfig(self_play=0.0, random=0.5, damage=0.5)
    config = PokemonConfig(transport="websocket", servers=(ShowdownAddress("127.0.0.1", server.server.port),))
    _, metrics = played_out(make_source(config, opponents, episodes=6))
    assert {kind: sum(tally.values()) for kind, tally in metrics["results"].items()} == {"random": 4, "damage": 2}
    assert metrics["scripted"]["decisions"] > 60
    assert metrics["scripted"]["invalid"] == 0


def test_battles_that_the_worker_stops_leave_replays_too_and_the_source_ends(server, tmp_path):
    config = PokemonConfig(
        transport="websocket", servers=(ShowdownAddress("127.0.0.1", server.server.port),), max_turns=3
    )
    opponents = OpponentsConfig(self_play=0.0, random=0.5, damage=0.5)
    _, metrics = played_out(make_source(config, opponents, episodes=4, replays=tmp_path))
    assert metrics["episodes"]["truncated"] == 4
    logs = [path.read_text() for path in tmp_path.glob("*.log")]
    assert ["|turn|4" in log for log in logs] == [True] * 4


def test_a_watched_battle_is_there_at_its_decisions(server):
    config = PokemonConfig(transport="websocket", servers=(ShowdownAddress("127.0.0.1", server.server.port),))
    source, turns = make_source(config, envs=1), [0]
    source.spectate(0)
    source.start()
    try:
        table = Table(source)
        while turns[-1] < 5:
            for each in table.turn():
                if each.kind == DECISION:
                    lines = source.position(each.env).battle
                    assert lines
                    turns += [int(found) for found in re.findall(r"\|turn\|(\d+)", lines)[-1:]]
    finally:
        source.close()
    assert turns == sorted(turns)


def test_own_observations_and_rewards_are_those_of_each_seat_in_rooms_too(server):
    servers = (ShowdownAddress("127.0.0.1", server.server.port),)
    check_each_decision({"transport": "websocket", "servers": servers, "host_timeout_sec": 100.0})


def test_a_server_that_does_not_answer_is_named():
    config = PokemonConfig(transport="websocket", servers=(ShowdownAddress("127.0.0.1", 9),))
    source = make_source(config)
    with pytest.raises(ConfigError, match=r"No Showdown server answers at ws://127.0.0.1:9.*pokemon.servers"):
        source.start()


@pytest.mark.slow
def test_a_server_that_hangs_is_replaced(monkeypatch):
    monkeypatch.setattr(showdown_host, "CHALLENGE_SEC", 2.5)
    source = make_source(PokemonConfig(transport="websocket", host_timeout_sec=3.0), envs=4)
    source.start()
    try:
        table = Table(source)
        while table.decisions < 40:
            table.turn()
        hung, _ = source.metrics()["host_pids"]
        os.kill(hung, signal.SIGSTOP)
        deadline = time.monotonic() + PATIENCE_SEC
        while hung in source.metrics()["host_pids"] or source.metrics()["episodes"]["finished"] < 2:
            assert time.monotonic() < deadline, source.metrics()
            table.turn()
        metrics = source.metrics()
    finally:
        source.close()
    check_accounts(metrics)
    assert metrics["episodes"]["aborted"]["simulator_stalled"] >= 1
    assert any("did not answer a challenge" in event for event in metrics["events"])
    assert not psutil.pid_exists(hung)


@pytest.mark.slow
def test_the_servers_of_a_list_are_all_used_and_one_that_comes_back_is_used_again(tmp_path):
    with showdown() as first, ExitStack() as second:
        port = second.enter_context(local_server(find_node().path)).port
        servers = (ShowdownAddress("127.0.0.1", first.server.port, 4), ShowdownAddress("127.0.0.1", port))
        source = make_source(PokemonConfig(transport="websocket", servers=servers), envs=9)
        source.start()
        try:
            table = Table(source)
            while table.decisions < 100:
                table.turn()
            pairs = source._keeper.backend._runner.pairs
            assert sorted(pair.live for pair in pairs)[0] >= 1, "three pairs share nine battles"
            second.close()
            wait_for(source, table, lambda m: m["episodes"]["aborted"].get("simulator_connection_lost", 0) >= 1)
            with local_server(find_node().path, port):
                wait_for(source, table, lambda m: any("is back" in event for event in m["events"]))
                wait_for(source, table, lambda m: [pair.live for pair in source._keeper.backend._runner.pairs][2] > 0)
                metrics = source.metrics()
        finally:
            source.close()
    check_accounts(metrics)
    assert len(metrics["host_pids"]) == 1, "of the servers none is ours; a process follows"


def wait_for(source, table: Table, condition) -> None:
    deadline = time.monotonic() + PATIENCE_SEC
    while not condition(source.metrics()):
        assert time.monotonic() < deadline, source.metrics()
        table.turn()
