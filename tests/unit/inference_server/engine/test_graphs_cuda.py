"""How graphs are captured with torch.cuda: by a recorder everywhere, for real where there is a GPU."""

from __future__ import annotations

import gc
import logging
from contextlib import contextmanager

import numpy as np
import pytest
import torch

from simul.common.config.schema import NetworkConfig
from simul.common.nets import build
from simul.common.nets.build import build_network
from simul.common.nets.models.mlp_lstm import MlpLstm
from simul.common.protocol.specs import GameSpec, random_observations
from simul.inference_server.engine.cuda import WARM_UP_RUNS, CudaGraphs
from simul.inference_server.engine.engine import PolicyEngine
from simul.inference_server.engine.graphs import GraphEngine
from tests.support.declared import DECLARED
from tests.support.engines import act

SPEC = GameSpec(name="test", observation_size=48, num_actions=7)
IMAGE = GameSpec("image", 48, 7, "uint8", observation_shape=(4, 4, 3), observation_axes="HWC")


class FakeCuda:
    """torch.cuda as far as a capture needs it: it writes down who does what on which stream."""

    def __init__(self) -> None:
        self.did: list[tuple] = []
        self.streams = self.pools = 0
        self.current = "main"
        self.capture_fails = False

    def Stream(self, device=None):
        self.streams += 1
        return FakeStream(self, f"side-{self.streams}", device)

    def current_stream(self, device=None):
        return FakeStream(self, self.current, device)

    def graph_pool_handle(self):
        self.pools += 1
        return f"pool-{self.pools}"

    def CUDAGraph(self):
        return object()

    @contextmanager
    def stream(self, stream):
        before, self.current = self.current, stream.name
        try:
            yield
        finally:
            self.current = before

    @contextmanager
    def graph(self, graph, **options):
        """As torch's: where the capture fails the stream stays what it was inside."""
        self.did.append(("begin", self.current, options["pool"], options["capture_error_mode"]))
        self.current = options["stream"].name
        yield
        if self.capture_fails:
            raise RuntimeError("CUDA error: operation failed due to a previous error during capture")
        self.did.append(("end",))

    def body(self) -> None:
        self.did.append(("body", self.current))


class FakeStream:
    def __init__(self, cuda: FakeCuda, name: str, device) -> None:
        self._cuda, self.name, self.device = cuda, name, device

    def wait_stream(self, other) -> None:
        self._cuda.did.append(("wait", self.name, other.name))

    def synchronize(self) -> None:
        self._cuda.did.append(("synchronize", self.name))


@pytest.fixture
def cuda(monkeypatch) -> FakeCuda:
    fake = FakeCuda()
    for name in ("Stream", "current_stream", "graph_pool_handle", "CUDAGraph", "stream", "graph"):
        monkeypatch.setattr(torch.cuda, name, getattr(fake, name))
    return fake


def test_a_capture_warms_up_on_its_side_stream_and_leaves_other_threads_alone(cuda) -> None:
    lane = CudaGraphs(torch.device("cuda")).lane()
    lane.capture(cuda.body)
    lane.capture(cuda.body)
    once = [
        ("wait", "side-1", "main"),
        *[("body", "side-1")] * WARM_UP_RUNS,
        ("synchronize", "side-1"),
        ("begin", "side-1", "pool-1", "thread_local"),
        ("body", "side-1"),
        ("end",),
        ("wait", "main", "side-1"),
    ]
    assert cuda.did == once * 2
    assert cuda.current == "main"


def test_a_capture_that_fails_gives_the_stream_and_the_lock_back(cuda) -> None:
    graphs = CudaGraphs(torch.device("cuda"))
    cuda.capture_fails = True
    with pytest.raises(RuntimeError, match="during capture"):
        graphs.lane().capture(cuda.body)
    assert cuda.current == "main"
    cuda.capture_fails = False
    graphs.lane().capture(cuda.body)
    assert cuda.did[-2] == ("end",)


def test_living_policies_never_share_a_stream_or_a_pool_and_dead_ones_leave_theirs(cuda) -> None:
    graphs = CudaGraphs(torch.device("cuda"))
    first, second = graphs.lane(), graphs.lane()
    for lane in (first, second):
        lane.capture(cuda.body)
    assert [event[1:3] for event in cuda.did if event[0] == "begin"] == [("side-1", "pool-1"), ("side-2", "pool-2")]
    del first, lane
    gc.collect()
    graphs.lane().capture(cuda.body)
    assert cuda.did[-4][:3] == ("begin", "side-1", "pool-3")
    assert cuda.streams == 2
    second.capture(cuda.body)


on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")


def _engines(name: str, precision: torch.dtype = torch.float32) -> tuple[PolicyEngine, GraphEngine]:
    """The same policy without graphs and with them."""
    device = torch.device("cuda")
    spec = {"conv_lstm": IMAGE, "attention": DECLARED, "mlp_gru": DECLARED}.get(name, SPEC)
    options = {"spec": spec, "max_sessions": 64, "device": device, "precision": precision}
    eager = PolicyEngine(build_network(NetworkConfig(name), spec), **options)
    graphs = GraphEngine(
        build_network(NetworkConfig(name), spec), **options,
        max_batch=40, graphs=CudaGraphs(device), log=logging.getLogger("test"),
    )  # fmt: skip
    graphs.warm_up((1, 2))
    return eager, graphs


def _act_alike(eager: PolicyEngine, graphs: PolicyEngine, n: int, step: int) -> None:
    observation = random_observations(eager._spec, n, np.random.default_rng(step))
    actions = eager._spec.num_actions
    mask, noise = np.ones((n, actions), np.uint8), np.zeros((n, actions), np.float32)
    read, write = 2 * np.arange(n) + step % 2, 2 * np.arange(n) + 1 - step % 2
    found, expected = (act(engine, observation, mask, read, write, noise) for engine in (graphs, eager))
    np.testing.assert_allclose(found.value, expected.value, rtol=0.02, atol=0.02)
    np.testing.assert_allclose(found.log_prob, expected.log_prob, rtol=0.02, atol=0.02)
    np.testing.assert_allclose(graphs.states(write), eager.states(write), rtol=0.02, atol=0.02)


@on_a_gpu
@pytest.mark.parametrize(
    "name", ["mlp_lstm", "mlp_gru", "attention", "conv_lstm", "examples.custom_network:GruNetwork"]
)
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_on_a_gpu_replays_give_what_the_operations_give(name: str, precision: torch.dtype) -> None:
    eager, graphs = _engines(name, precision)
    assert graphs.runner.endswith(" graphs"), graphs.runner
    for step, n in enumerate((1, 3, 40, 64, 7)):
        if step == 3:
            for engine in (eager, graphs):
                engine.load(build_network(NetworkConfig(name), engine._spec, seed=9).state_dict())
        _act_alike(eager, graphs, n, step)


class Peeking(MlpLstm):
    """Asks the device for a number while it runs."""

    def forward(self, observation, mask, state):
        return super().forward(observation * (2.0 if observation.sum().item() > 1e9 else 1.0), mask, state)


@on_a_gpu
def test_on_a_gpu_a_capture_that_fails_leaves_everything_usable(monkeypatch) -> None:
    monkeypatch.setitem(build.NETWORKS, "peeking", Peeking)
    eager, graphs = _engines("peeking")
    assert graphs.runner.startswith("eager: "), graphs.runner
    _act_alike(eager, graphs, 5, 0)
    eager, graphs = _engines("mlp_lstm")
    assert graphs.runner.endswith(" graphs"), graphs.runner
    _act_alike(eager, graphs, 5, 0)


@on_a_gpu
def test_on_a_gpu_a_policy_that_goes_gives_its_memory_back() -> None:
    sizes = []
    for _ in range(4):
        _, graphs = _engines("mlp_lstm")
        assert graphs.runner.endswith(" graphs"), graphs.runner
        del graphs, _
        gc.collect()
        torch.cuda.empty_cache()
        sizes.append(torch.cuda.memory_reserved())
    assert sizes[-1] <= sizes[1]
