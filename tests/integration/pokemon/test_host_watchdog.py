"""A simulator host that hangs is replaced, and none outlives its worker: with real signals."""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import signal
import subprocess
import sys
import time

import psutil
import pytest

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.config.schema import OpponentsConfig
from simul.common.protocol.messages import ABORTED
from simul.env_worker.games.pokemon.host.host_keeper import HostKeeper
from simul.env_worker.games.pokemon.host.node_host import NodeHost
from simul.env_worker.games.pokemon.install.node import find_node
from simul.env_worker.games.pokemon.source.source import PokemonSource
from tests.support.battles import Table, check_accounts
from tests.support.processes import alive
from tests.support.waiting import PATIENCE_SEC

BUSY_OWNER = """
import os, sys, time
from simul.env_worker.games.pokemon.host.node_host import NodeHost
from simul.env_worker.games.pokemon.install.node import find_node
host = NodeHost(find_node().path)
host.start()
for battle in range(int(sys.argv[1])):
    host.start_battle(battle, "gen9randombattle")
while True:
    host.flush()
    if not host.wants_write:
        break
    time.sleep(0.01)
print(host.pid, flush=True)
time.sleep(100)
"""


def wait_until_gone(pid: int, limit_sec: float) -> None:
    """The limit is one of its own processor time: a busy machine gives it little of that in a second."""
    begin, deadline = worked_sec(pid), time.monotonic() + PATIENCE_SEC
    while alive(pid):
        assert worked_sec(pid) < begin + limit_sec, "the host works on"
        assert time.monotonic() < deadline, "the host lives on"
        time.sleep(0.02)


def worked_sec(pid: int) -> float:
    """Its processor time, 0 once it is gone."""
    with contextlib.suppress(psutil.NoSuchProcess):
        times = psutil.Process(pid).cpu_times()
        return times.user + times.system
    return 0.0


def test_a_stopped_host_is_killed_and_its_battles_start_again() -> None:
    """A busy machine may leave a host alone for so long, too: then it is killed more often, and battles start later."""
    config = PokemonConfig(host_timeout_sec=8.0)
    source = PokemonSource(config, OpponentsConfig(), envs=8, seed=5, index=0)
    source.start()
    try:
        table = Table(source)
        while table.decisions < 100:
            table.turn()
        before = len(table.starts)
        while not (pids := source.metrics()["host_pids"]):
            table.turn()
        (pid,) = pids
        os.kill(pid, signal.SIGSTOP)
        stopped = time.monotonic()
        while psutil.pid_exists(pid):
            table.turn()  # the one that sees its end may begin the battles of its successor
            assert time.monotonic() < stopped + PATIENCE_SEC, source.metrics()
        while len(table.starts) <= before:
            table.turn()
            assert time.monotonic() < stopped + PATIENCE_SEC, source.metrics()
        metrics = source.metrics()
    finally:
        source.close()
    check_accounts(metrics)
    aborted = {(end.env, end.episode) for end in table.ends.values() if end.kind == ABORTED}
    assert metrics["episodes"]["aborted"]["host_died"] >= len(aborted) > 0  # the others had not been asked anything
    assert metrics["host_restarts"] >= 1
    assert any("hung (silent for 8 s) and was killed" in event for event in metrics["events"])


def test_a_host_with_nothing_to_do_is_left_alone() -> None:
    now = itertools.count(0.0, 0.1)  # its clock stands still while an answer is on its way
    keeper = HostKeeper(find_node().path, accelerate=True, index=0, silence_limit_sec=0.6, clock=lambda: next(now))
    host = keeper.start()
    try:
        pongs = 0
        for _ in range(40):
            pongs += keeper.poll().pong is not None
            if keeper._pinged:
                assert select.select([host], [], [], PATIENCE_SEC)[0]
        assert pongs >= 3
        assert alive(host.pid)
    finally:
        keeper.close()


def start_owner(battles: int) -> tuple[subprocess.Popen[str], int]:
    """A worker of its own with a host that has so many battles to start; (worker, the host's pid)."""
    owner = subprocess.Popen([sys.executable, "-c", BUSY_OWNER, str(battles)], stdout=subprocess.PIPE, text=True)
    return owner, int(owner.stdout.readline())


@pytest.mark.parametrize(("battles", "stopped"), [(8, True), (20_000, False)], ids=["stopped", "busy"])
def test_a_host_does_not_outlive_a_killed_worker(battles: int, stopped: bool) -> None:
    owner, pid = start_owner(battles)
    try:
        if stopped:
            os.kill(pid, signal.SIGSTOP)
        owner.kill()
        owner.communicate()
        if stopped:
            time.sleep(0.3)
            assert alive(pid)
            os.kill(pid, signal.SIGCONT)
        wait_until_gone(pid, 5.0)
    finally:
        if alive(pid):
            os.kill(pid, signal.SIGKILL)


def test_a_hung_host_is_closed_within_its_grace() -> None:
    assert any(closed_after(0.2) < 2.0 for _ in range(20))  # a busy machine may take longer now and then


def closed_after(grace_sec: float) -> float:
    """Seconds that it takes to close a host that hangs."""
    host = NodeHost(find_node().path)
    host.start()
    pid = host.pid
    os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    host.close(grace_sec)
    took = time.monotonic() - began
    assert not psutil.pid_exists(pid)
    return took
