"""Batches as graph replays against the same batches run one operation at a time.

To the last bit, but for one network, which is within rounding.
"""

from __future__ import annotations

import threading
import weakref

import numpy as np
import pytest
import torch

from simul.common.config.schema import NetworkConfig
from simul.common.nets.build import NETWORKS, build_network
from simul.common.nets.io import bytes_to_state, weights_to_bytes
from simul.common.protocol.specs import GameSpec
from simul.inference_server.engine.graphs import GRAPH_BUCKETS
from tests.support.engines import act
from tests.support.graph_engines import (
    BUCKETS,
    HALF,
    SIZES,
    SPEC,
    Sessions,
    act_alike,
    assert_same,
    captured,
    engine,
    network,
    smallest_networks,
    table,
)  # fmt: skip
from tests.support.graph_stand_in import StandInGraphs

EVERY_NETWORK = smallest_networks()
ROUNDING = {torch.float32: 1e-6, torch.bfloat16: 0.02}  # of `ofc`, on a processor with AVX-512


@pytest.mark.parametrize(
    ("precision", "spec"),
    [
        (torch.float32, SPEC),
        (torch.bfloat16, SPEC),
        (torch.float16, SPEC),
        (torch.float32, HALF),
    ],
    ids=("float32", "bfloat16", "float16", "float16-on-the-wire"),
)
def test_replays_give_what_the_operations_give(precision: torch.dtype, spec: GameSpec) -> None:
    device = StandInGraphs()
    graphs, eager = captured(device, precision=precision, spec=spec), engine(device, precision=precision, spec=spec)
    sessions = Sessions(graphs.zero_row, spec)
    device.replays = device.copies = device.waits = 0
    sizes = [*range(1, 27), 24, 48, 49, 70, 3, 1]  # every bucket, full and with padding; more than the largest
    for n in sizes:
        act_alike(graphs, eager, sessions.batch(n))
    parts = sum(-(-n // BUCKETS[-1]) for n in sizes)
    assert (device.replays, device.copies, device.waits) == (parts, 2 * parts, parts)
    assert np.count_nonzero(table(graphs)[graphs.zero_row]) == 0


def test_every_network_is_among_those_that_are_replayed() -> None:
    assert {config.name for config, _ in EVERY_NETWORK.values()} == set(NETWORKS)


@pytest.mark.parametrize(
    "precision",
    [
        pytest.param(torch.float32, id="float32"),
        pytest.param(torch.bfloat16, id="bfloat16", marks=pytest.mark.slow),  # .ci/long runs it
    ],
)
@pytest.mark.parametrize(("config", "spec"), EVERY_NETWORK.values(), ids=EVERY_NETWORK)
def test_replays_of_every_network_give_what_its_operations_give(
    config: NetworkConfig, spec: GameSpec, precision: torch.dtype
) -> None:
    device, net = StandInGraphs(), build_network(config, spec, seed=2)
    graphs, eager = (made(device, net, precision=precision, spec=spec) for made in (captured, engine))
    sessions = Sessions(graphs.zero_row, spec)
    for n in (1, 5, 24):
        act_alike(graphs, eager, sessions.batch(n), within=ROUNDING[precision] if config.name == "ofc" else 0.0)


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_weights_copied_in_between_replays_serve_from_the_next_one_on(precision: torch.dtype) -> None:
    device = StandInGraphs()
    graphs, eager = captured(device, precision=precision), engine(device, precision=precision)
    sessions, values = Sessions(graphs.zero_row), []
    for seed in range(4):
        data = weights_to_bytes(network(seed))
        for made in (graphs, eager):
            made.load(bytes_to_state(data))
        for n in (3, 17):
            act_alike(graphs, eager, sessions.batch(n))
        alone = np.ones((1, 6), np.float32), np.ones((1, 5), np.uint8), np.array([graphs.zero_row]), np.array([0])
        values.append(act(graphs, *alone, np.zeros((1, 5), np.float32)).value[0])
        act(eager, *alone, np.zeros((1, 5), np.float32))
    assert len(set(values)) == 4
    assert graphs.runner == f"{len(BUCKETS)} graphs"


def test_policies_have_graphs_of_their_own() -> None:
    device = StandInGraphs()
    pairs = [(captured(device, network(seed)), engine(device, network(seed))) for seed in (1, 2, 3)]
    assert device.lanes == 3
    sessions = [Sessions(graphs.zero_row, seed=i) for i, (graphs, _) in enumerate(pairs)]
    with torch.inference_mode():  # as in the server's loop; it loads policies outside of it
        for n in (1, 5, 24, 2, 31):
            for (graphs, eager), own in zip(pairs, sessions):
                act_alike(graphs, eager, own.batch(n))


def test_a_batch_of_another_policy_may_come_between_forward_and_sample() -> None:
    device = StandInGraphs()
    (first, expected), (second, other) = [(captured(device, network(i)), engine(device, network(i))) for i in (1, 2)]
    a, b = (Sessions(first.zero_row, seed=i).batch(5) for i in (1, 2))
    expected_a = act(expected, *a)
    staging = first.stage(5)
    staging.observation[:5], staging.mask[:5], staging.read_rows[:5], staging.write_rows[:5] = a[:4]
    staging.noise[:5], staging.temperature[:5] = a[4:]
    first.forward(5)
    assert_same(act(second, *b), act(other, *b))
    assert_same(first.sample(), expected_a)


def test_answers_stay_what_they_are_when_the_next_batch_comes() -> None:
    device = StandInGraphs()
    graphs, eager = captured(device), engine(device)
    sessions = Sessions(graphs.zero_row)
    batches = [sessions.batch(6) for _ in range(3)]
    found = [act(graphs, *batch) for batch in batches]
    for answers, batch in zip(found, batches):
        assert_same(answers, act(eager, *batch))


def test_every_bucket_is_captured_the_largest_first_into_one_lane() -> None:
    device = StandInGraphs()
    rows = []
    made = engine(device)
    made.warm_up(SIZES)
    for graph in device.living():
        rows.append(graph.operations[0][3][0].shape[0])
    assert rows == sorted(BUCKETS, reverse=True)
    assert device.lanes == 1
    assert made.least_forward_sec > 0
    assert np.count_nonzero(table(made)) == 0


@pytest.mark.parametrize(
    ("max_batch", "largest"), [(1, 1), (100, 112), (256, 256), (257, 512), (4096, 4096), (9999, 4096)]
)
def test_the_largest_bucket_takes_a_full_batch(max_batch: int, largest: int) -> None:
    assert engine(StandInGraphs(), max_batch=max_batch).largest_batch == largest
    assert largest in GRAPH_BUCKETS


def test_deterministic_engines_have_one_graph() -> None:
    device = StandInGraphs()
    graphs, eager = captured(device, deterministic=True), engine(device, deterministic=True)
    assert graphs.runner == "1 graphs"
    sessions = Sessions(graphs.zero_row)
    for n in (1, 63, 64, 65, 130):
        act_alike(graphs, eager, sessions.batch(n))


def test_graphs_go_when_their_engine_goes() -> None:
    device = StandInGraphs()
    made, other = captured(device), captured(device, network(1))
    act(made, *Sessions(made.zero_row).batch(5))
    gone = weakref.ref(made)
    assert len(device.living()) == 2 * len(BUCKETS)
    del made
    assert gone() is None
    assert len(device.living()) == len(BUCKETS)
    act(other, *Sessions(other.zero_row).batch(5))


@torch.inference_mode()
def test_a_policy_that_joins_runs_without_graphs_until_they_are_there() -> None:
    device, hold = StandInGraphs(), threading.Event()
    device.before_capture = lambda: hold.wait(100)
    graphs, eager = engine(device), engine(StandInGraphs())
    sessions = Sessions(graphs.zero_row)
    graphs.warm_up_beside()
    for n in (5, 30):
        act_alike(graphs, eager, sessions.batch(n))
    assert device.launches == 0
    batch = sessions.batch(7)
    staging = graphs.stage(7)  # filled before the graphs are there, forwarded after
    staging.observation[:7], staging.mask[:7], staging.read_rows[:7], staging.write_rows[:7] = batch[:4]
    staging.noise[:7], staging.temperature[:7] = batch[4:]
    hold.set()
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "graph-capture"]
    thread.join(100)
    assert graphs.runner == f"{len(BUCKETS)} graphs"
    graphs.forward(7)
    assert_same(graphs.sample(), act(eager, *batch))
    launches = device.launches
    for n in (5, 30):
        act_alike(graphs, eager, sessions.batch(n))
    assert device.launches == launches + 3
