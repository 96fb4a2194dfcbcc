from __future__ import annotations

import time

import numpy as np
import pytest

from benchmarks.peers.acting import Acting
from benchmarks.peers.closed_loop import measure
from benchmarks.peers.local_client import local
from benchmarks.peers.results import (
    Repeat,
    Window,
    against_local,
    against_peers,
    other_policies,
    ratios,
)
from benchmarks.serving.client import Games


def window(rate, cpu=20.0, checked=()):
    return Window(rate, cpu, 1000.0, 2000.0, 64.0, checked)


def repeat(simul, mosec, torchrl):
    windows = {"simul": window(simul, 10.0), "mosec": window(mosec, 30.0), "torchrl": window(torchrl, 20.0)}
    ours, own = {1: window(simul / 2), 32: window(simul)}, {1: window(200.0), 32: window(2000.0)}
    return Repeat(windows, ours, own, {32: (20.0, 19.0), 128: (10.0, 9.0)})


def test_an_illegal_action_is_no_result():
    games = Games(4, 5, False)  # episodes of 5 steps
    illegal = np.argmin(games.columns.mask, axis=1).astype(np.float32)
    with pytest.raises(RuntimeError, match="illegal"):
        measure(lambda *_: (np.stack([illegal] * 3), 4), games, 0.0, time.monotonic() + 100)


def test_who_loses_the_state_is_told_from_who_keeps_it():
    act = Acting("float32")

    def checked(decide):
        begin = time.monotonic()
        found = 0.0
        while not found:  # as long as it takes for the steps that are checked
            found = measure(decide(), Games(2, 200, False), begin, time.monotonic() + 0.3)["checked"]
        return (found,)

    def forgetful():
        return lambda observation, mask, start: local(act, 2)(observation, mask, start)

    right = checked(lambda: local(act, 2))
    windows = {"local": window(1.0, checked=right), "again": window(1.0, checked=checked(lambda: local(act, 2)))}
    windows |= {"forgetful": window(1.0, checked=checked(forgetful)), "unchecked": window(1.0)}
    assert other_policies("float32", windows) == ["forgetful"]
    assert other_policies("bfloat16", windows) == ["forgetful"]


def test_the_better_peer_of_each_repeat_counts():
    repeats = [repeat(1000, 500, 400), repeat(1000, 400, 625), repeat(1000, 100, 100)]
    (line,) = against_peers("float32", repeats)
    assert (line.found, line.promised, line.kept) == (2.0, 1.45, True)
    assert line.by_cpu == 2.0  # the cheaper peer's
    assert not against_peers("bfloat16", [repeat(1000, 500, 600)])[0].kept
    assert ratios(repeats, "mosec") == (2.5, 2.0, 10.0)
    assert against_local(repeats) == {1: 2.5, 32: 0.5}
