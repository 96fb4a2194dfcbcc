"""A simulator host as a process: wrong commands, full pipes, crashes, its end."""

from __future__ import annotations

import os
import signal
import time

import psutil
import pytest

from simul.env_worker.games.pokemon.host.backend import BattleStart
from simul.env_worker.games.pokemon.host.node_host import HostDied, NodeHost
from simul.env_worker.games.pokemon.install.node import find_node
from tests.support.hosts import GEN9, wait
from tests.support.waiting import PATIENCE_SEC


def start_one(host, battle, battle_format=GEN9, **keywords):
    host.start_battle(battle, battle_format, BattleStart(**keywords))
    host.flush()
    return wait(host)


def test_invalid_choice_leaves_the_request_open(host):
    start_one(host, 1)
    host.choose(1, 0, 1, "move 9")
    host.flush()
    tick = wait(host)
    assert [(error.kind, error.request_number) for error in tick.errors] == [("invalid", 1)]
    assert not tick.records
    host.choose(1, 0, 1, "move 1")
    host.choose(1, 1, 1, "move 1")
    host.flush()
    assert {record.seat for record in wait(host).records} <= {0, 1}


def test_stale_choices_are_reported_and_change_nothing(host):
    start_one(host, 2)
    host.choose(99, 0, 1, "move 1")
    host.choose(2, 0, 2, "move 1")
    host.choose(2, 0, 1, "move 1")
    host.choose(2, 0, 1, "move 2")
    host.choose(2, 7, 1, "move 2")
    host.flush()
    tick = wait(host)
    assert [error.kind for error in tick.errors] == ["stale"] * 4
    assert not tick.records


def test_a_crash_ends_only_its_own_battle(host):
    host.start_battle(11, "gen9randombatle")
    host.start_battle(12, GEN9, BattleStart(names=("same", "same")))
    host.start_battle(13, GEN9)
    host.start_battle(14, GEN9)
    host.choose(13, 0, 1, {"not": "a string"})
    host.choose(14, 0, 1, "move 1")
    host.choose(14, 1, 1, "move 1")
    host.flush()
    tick = wait(host)
    assert [(end.battle, end.winner_seat, end.reason) for end in tick.ended] == [
        (11, None, "crashed"),
        (12, None, "crashed"),
        (13, None, "crashed"),
    ]
    assert "unknown format gen9randombatle" in tick.errors[0].message
    assert "battle 11 crashed" in host.stderr_tail() or "battle 13 crashed" in host.stderr_tail()
    assert [record.request_number for record in tick.records if record.battle == 14][:2] == [1, 1]


def test_stop_frees_a_battle_without_a_result(host):
    start_one(host, 5)
    host.stop_battle(5)
    host.choose(5, 0, 1, "move 1")
    host.ping(42)
    host.flush()
    tick = wait(host)
    assert [end[:4] for end in tick.ended] == [(5, None, 1, "stopped")]
    assert [error.kind for error in tick.errors] == ["stale"]
    assert tick.pong == 42
    assert start_one(host, 5).records  # the id is free again


def test_turn_limit_is_told_apart_from_a_tie(host):
    team = "Magikarp||||splash|||||||]Weedle||||tackle|||||||"
    tick = start_one(host, 6, "gen1ou", teams=(team, team), seed=[1, 2, 3, 4])
    while not tick.ended:
        for record in tick.records:
            if record.request is not None:
                host.choose(6, record.seat, record.request_number, "switch 2")
        host.flush()
        tick = wait(host)
    assert [end[:4] for end in tick.ended] == [(6, None, 1000, "turn_limit")]


def test_full_pipes_do_not_block_either_end(host):
    started = time.monotonic()
    for battle in range(100, 180):  # about 5 MB of answers, many times what the pipe holds
        host.start_battle(battle, GEN9, BattleStart(names=("a" * 10_000, "b"), seed=[1, 2, 3, battle]))
        if battle % 8 == 0:
            host.flush()
    host.flush()
    records = []
    while len(records) < 160:
        records += wait(host).records
        assert time.monotonic() - started < PATIENCE_SEC
    assert {(record.battle, record.seat) for record in records} == {(b, s) for b in range(100, 180) for s in (0, 1)}


def test_a_killed_host_is_noticed_with_its_exit_code(own_host):
    start_one(own_host, 1)
    os.kill(own_host.pid, signal.SIGKILL)
    own_host.choose(1, 0, 1, "move 1")
    own_host.flush()
    with pytest.raises(HostDied, match=r"host 3 exited with code -9"):
        wait(own_host)


def test_close_leaves_no_process():
    host = NodeHost(find_node().path)
    host.start()
    pid = host.pid
    start_one(host, 1)
    host.close()
    assert not psutil.pid_exists(pid)
    host.close()  # twice is fine


def test_acceleration_can_be_turned_off():
    host = NodeHost(find_node().path, accelerate=False)
    host.start()
    assert host.hello["accelerated"] is False
    host.close()
