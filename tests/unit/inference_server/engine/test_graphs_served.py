"""Graphs under the policy table and under the whole contract, on the stand-in device."""

from __future__ import annotations

import logging
import threading
import time
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import settings

from simul.common.config.schema import Config, ServerConfig
from simul.common.config.trust import NOTHING
from simul.common.nets.build import build_network
from simul.common.nets.io import fingerprint, weights_to_bytes
from simul.common.protocol.messages import Weights
from simul.inference_server.build import Placement, engine_factory
from simul.inference_server.engine.graphs import GraphEngine
from simul.inference_server.policies.engine_factory import EngineFactory
from simul.inference_server.policies.table import LATECOMERS_SEC, NamedPolicy, PolicyTable
from tests.support.contract import NETWORK, SLOTS, SPEC
from tests.support.engines import act
from tests.support.graph_stand_in import StandInGraphs
from tests.unit.inference_server.sessions.test_contract import Interleavings

BUCKETS = (1, 2, 4)  # of max_batch 3


def _build(device: StandInGraphs):
    return partial(
        GraphEngine, spec=SPEC, max_sessions=SLOTS, max_batch=3, device=torch.device("cpu"), precision=torch.float32,
        graphs=device, log=logging.getLogger("test"),
    )  # fmt: skip


class InterleavingsOnGraphs(Interleavings):
    """START, STEP, REDO, EVALUATE, END and the rest, answered by replays."""

    def _engine(self, network) -> GraphEngine:
        self.device = StandInGraphs()
        return _build(self.device)(network)

    def teardown(self) -> None:
        assert len(self.device.living()) == len(BUCKETS)
        assert self.device.launches >= self.actor._statistics.batches
        super().teardown()


InterleavingsOnGraphs.TestCase.settings = settings(max_examples=20, stateful_step_count=40, deadline=None)
TestInterleavingsOnGraphs = InterleavingsOnGraphs.TestCase


@pytest.fixture
def device() -> StandInGraphs:
    return StandInGraphs()


@pytest.fixture
def policies(device) -> PolicyTable:
    table = PolicyTable(SPEC, EngineFactory(SPEC, NETWORK, _build(device), (1, 2)))
    _install(table, "learner", 1)
    return table


def _install(table: PolicyTable, name: str, version: int, resident: tuple[str, ...] = ()) -> None:
    data = weights_to_bytes(build_network(NETWORK, SPEC, seed=version))
    table.install(Weights(policy=name, policy_version=version, fingerprint=fingerprint(data), resident=resident), data)


def test_every_graph_is_captured_before_the_learners_policy_is_ready(device) -> None:
    table = PolicyTable(SPEC, EngineFactory(SPEC, NETWORK, _build(device), (1, 2)))
    ready = []
    device.before_capture = lambda: ready.append(table.ready)
    _install(table, "learner", 1)
    assert ready == [False] * len(BUCKETS)
    assert table.ready
    assert table["learner"].engine.runner == "3 graphs"


def test_newer_weights_are_what_the_graphs_replay(policies) -> None:
    engine = policies["learner"].engine
    observation = np.ones((2, SPEC.observation_size), SPEC.dtype())
    mask, noise = np.ones((2, SPEC.num_actions), np.uint8), np.zeros((2, SPEC.num_actions), np.float32)
    read, write = np.full(2, engine.zero_row), np.arange(2)
    for version in (2, 3, 4):
        _install(policies, "learner", version)
        network = build_network(NETWORK, SPEC, seed=version)
        with torch.inference_mode():
            _, value, _ = network(torch.from_numpy(observation), torch.from_numpy(mask) > 0, network.initial_state(2))
        found = act(engine, observation, mask, read, write, noise).value
        np.testing.assert_allclose(found, value.numpy(), atol=1e-6)


def test_the_server_builds_engines_with_graphs_where_its_device_has_them(device) -> None:
    log, cpu = logging.getLogger("test"), torch.device("cpu")
    config = Config(network=NETWORK, server=ServerConfig(max_batch=40, max_sessions=SLOTS))
    for graphs, largest, runner in ((device, 40, "8 graphs"), (None, 256, "recorded")):
        factory = engine_factory(config, NOTHING, SPEC, Placement(cpu, torch.float32, graphs), log)
        table = PolicyTable(SPEC, factory)
        _install(table, "learner", 1)
        assert table["learner"].engine.runner == runner
        assert table["learner"].engine.largest_batch == largest


def test_unloading_a_policy_frees_its_graphs(device, policies) -> None:
    engine = _build(device)(build_network(NETWORK, SPEC))
    engine.warm_up((1, 2))
    policies.add_policy(NamedPolicy("other", 1, engine, "checkpoint"))
    del engine
    assert len(device.living()) == 2 * len(BUCKETS)
    policies.unload("other", 0)
    policies.remove_retired(lambda name: 0, time.monotonic() + 2 * LATECOMERS_SEC)
    assert policies.versions() == {"learner": 1}
    assert len(device.living()) == len(BUCKETS)


def _wait_for_captures() -> None:
    for thread in threading.enumerate():
        if thread.name == "graph-capture":
            thread.join(100)


def test_a_past_self_that_joins_holds_nothing_up_and_gets_its_graphs_beside_the_loop(device, policies) -> None:
    hold = threading.Event()
    device.before_capture = lambda: hold.wait(100)
    _install(policies, "past-1", 2, resident=("past-1",))
    assert policies["past-1"].engine.runner == "recorded"
    hold.set()
    _wait_for_captures()
    assert policies["past-1"].engine.runner == "3 graphs"
    _install(policies, "past-2", 3, resident=("past-2",))
    _wait_for_captures()
    policies.remove_retired(lambda name: 0, time.monotonic() + 2 * LATECOMERS_SEC)
    assert len(device.captured) == 3 * len(BUCKETS)
    _install(policies, "past-3", 4, resident=("past-3",))  # takes over what past-1 left
    assert policies["past-3"].engine.runner == "3 graphs"
    assert len(device.captured) == 3 * len(BUCKETS)
