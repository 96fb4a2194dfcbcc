from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.peers.acting import Acting
from benchmarks.peers.closed_loop import measure
from benchmarks.peers.comparison import turns
from benchmarks.peers.local_client import local
from benchmarks.peers.plain_loop import carry
from benchmarks.peers.results import (
    Repeat,
    Window,
    against_local,
    against_peers,
    crossover,
    other_policies,
    ratios,
    text,
)
from benchmarks.peers.systems import CANDIDATES, Tuned, describe, wait_until_it_listens
from benchmarks.peers.wire import STATE_SIZE, Request, read_reply, read_request, reply_bytes, request_blocks
from benchmarks.serving.client import Games
from benchmarks.serving.policy import NETWORK, SPEC
from simul.common.nets.build import build_network


def window(rate, cpu=20.0, checked=()):
    return Window(rate, cpu, 1000.0, 2000.0, 64.0, checked)


def repeat(simul, mosec, torchrl, **more):
    windows = {"simul": window(simul, 10.0), "mosec": window(mosec, 30.0), "torchrl": window(torchrl, 20.0)}
    windows |= {"plain loop": window(900.0), "local": window(800.0)}
    ours, own = {1: window(simul / 2), 32: window(simul)}, {1: window(200.0), 32: window(2000.0)}
    return Repeat(windows, ours, own, more.get("forward", {32: (20.0, 19.0), 128: (10.0, 9.0)}))


def test_a_request_arrives_as_it_was_sent():
    draw = np.random.default_rng(0)
    sent = Request(
        draw.random((3, SPEC.observation_size), np.float32),
        draw.integers(0, 2, (3, SPEC.num_actions), np.uint8),
        draw.random((3, STATE_SIZE), np.float32),
    )
    got = read_request(bytearray(b"".join(request_blocks(sent))))
    for name in ("observation", "mask", "state"):
        np.testing.assert_array_equal(getattr(got, name), getattr(sent, name))


@pytest.mark.parametrize("length", [0, 1, 10713, 2 * 10714 - 1])
def test_a_request_that_is_no_whole_number_of_rows_is_refused(length):
    with pytest.raises(ValueError, match="no whole number"):
        read_request(bytes(length))


def test_a_slice_of_a_batch_arrives_as_it_was_decided():
    decisions = np.arange(12, dtype=np.float32).reshape(3, 4)
    states = np.arange(4 * STATE_SIZE, dtype=np.float32).reshape(4, -1)
    got, state, batch = read_reply(reply_bytes(decisions[:, 1:3], states[1:3], 4), 2)
    np.testing.assert_array_equal(got, decisions[:, 1:3])
    np.testing.assert_array_equal(state, states[1:3])
    assert batch == 4
    with pytest.raises(ValueError, match="expected"):
        read_reply(reply_bytes(decisions, states, 4), 3)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_acting_is_the_network_and_chooses_legal_actions_only(precision):
    network = build_network(NETWORK, SPEC)
    observation, state = torch.randn(40, SPEC.observation_size), torch.randn(40, STATE_SIZE)
    mask = (torch.rand(40, SPEC.num_actions) < 0.3).to(torch.uint8)
    mask[:, 0] = 1
    (action, log_prob, value), new_state = Acting(precision)(observation, mask, state)
    assert mask[torch.arange(40), action.long()].all()
    with torch.no_grad():
        logits, wanted, wanted_state = network(observation, mask.bool(), state)
    close = {"atol": 1e-4 if precision == "float32" else 0.05, "rtol": 0}
    torch.testing.assert_close(value, wanted, **close)
    torch.testing.assert_close(new_state, wanted_state, **close)
    log_probs = torch.where(mask.bool(), logits, -torch.inf).log_softmax(1)
    torch.testing.assert_close(log_prob, log_probs[torch.arange(40), action.long()], **close)


def test_the_closed_loop_counts_decisions_and_its_share_of_batches():
    def decide(observation, mask, start):
        time.sleep(0.001)
        return np.zeros((3, len(mask)), np.float32), 16

    games, found = Games(4, 5, False), {"decisions": 0}  # episodes of 5 steps: some end in between
    while not found["decisions"]:  # a window in which the machine stands still has none
        begin = time.monotonic()
        found = measure(decide, games, begin, begin + 0.3)
    assert found["decisions"] % 4 == 0
    assert found["decisions"] >= 4
    assert found["batches"] == pytest.approx(found["decisions"] / 16)
    assert found["seconds"] >= 0.3
    assert 1000 <= found["p50"] <= found["p99"]


def test_an_illegal_action_is_no_result():
    games = Games(4, 5, False)
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


def test_state_is_carried_except_where_an_episode_begins():
    state = torch.ones(2, STATE_SIZE)
    assert carry(None, np.zeros(2, np.uint8)).tolist() == torch.zeros(2, STATE_SIZE).tolist()
    assert carry(state, np.zeros(2, np.uint8)) is state
    assert carry(state, np.array([0, 1], np.uint8)).sum(1).tolist() == [STATE_SIZE, 0]
    assert carry(state, np.zeros(3, np.uint8)).shape == (3, STATE_SIZE)  # another number of envs: nothing to carry


def test_the_better_peer_of_each_repeat_counts():
    repeats = [repeat(1000, 500, 400), repeat(1000, 400, 625), repeat(1000, 100, 100)]
    (line,) = against_peers("float32", repeats)
    assert (line.found, line.promised, line.kept) == (2.0, 1.45, True)
    assert line.by_cpu == 2.0  # the cheaper peer's
    assert not against_peers("bfloat16", [repeat(1000, 500, 600)])[0].kept
    assert ratios(repeats, "mosec") == (2.5, 2.0, 10.0)


def test_the_crossover_is_named():
    found = against_local([repeat(1000, 1, 1)])
    assert found == {1: 2.5, 32: 0.5}
    assert "ahead of local inference at 1 envs" in crossover("float32", found)
    assert "from 4 envs a client on" in crossover("float32", {1: 0.9, 4: 1.1, 8: 1.2})
    assert "at every number" in crossover("float32", {1: 0.9, 4: 0.8})


def test_every_round_measures_the_same_in_another_order():
    rounds = [turns(["simul", "mosec", "local"], (1, 32), number) for number in range(3)]
    assert len({one[0] for one in rounds}) == 3
    wanted = {("simul", 32), ("mosec", 32), ("local", 32), ("simul", 1), ("local", 1)}
    assert all(len(one) == 5 and set(one) == wanted for one in rounds)


def test_the_report_says_which_settings_were_taken_and_what_came_out():
    best = CANDIDATES["mosec"][1][0]
    repeats = [repeat(1000, 500, 400), replace(repeat(1000, 500, 400), forward={64: (12.0, 11.0), 128: (10.0, 9.0)})]
    printed = text(
        "float32", repeats, against_peers("float32", repeats), {"mosec": Tuned(best, {describe(best): 123.0})}
    )
    assert "mosec: max_batch 4, max_wait_ms 1" in printed
    assert "at a batch of 128: 10.00" in printed
    assert "PASS  float32: simul / the better of mosec and TorchRL: 2.00" in printed


@pytest.mark.parametrize(
    ("code", "limit_sec", "said"),
    [
        ("raise SystemExit('no module named x')", 60.0, "ended with 1; its last words:\nno module named x"),
        ("import time; time.sleep(60)", 0.1, "did not listen within 0 s"),
    ],
)
def test_a_mosec_that_does_not_come_up_is_told_with_its_last_words(
    code: str, limit_sec: float, said: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with socket.socket() as taken, log.open("wb") as stderr:
        taken.bind(("127.0.0.1", 0))  # and never listens
        server = subprocess.Popen([sys.executable, "-S", "-c", code], stderr=stderr)
        try:
            with pytest.raises(RuntimeError, match=f"mosec {said}"):
                wait_until_it_listens(server, taken.getsockname()[1], log, limit_sec)
        finally:
            server.kill()
            server.wait()


def test_mosec_is_up_when_it_listens(tmp_path: Path) -> None:
    with socket.socket() as late:
        late.bind(("127.0.0.1", 0))
        listens = threading.Timer(0.2, late.listen)
        listens.start()
        with subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"]) as server:
            wait_until_it_listens(server, late.getsockname()[1], tmp_path / "log", 30.0)
            server.kill()
        listens.join()
