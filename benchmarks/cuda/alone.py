"""The engine without a server: from staged inputs to answers on the host, one batch after another."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from statistics import median

import numpy as np
import torch

from benchmarks.serving.policy import NETWORK, SPEC
from simul.common.nets.build import build_network
from simul.inference_server.engine.cuda import CudaGraphs
from simul.inference_server.engine.engine import PolicyEngine
from simul.inference_server.engine.graphs import GraphEngine

LEAST_BATCHES = 20
UNTIMED_BATCHES = 5


def build_engine(device: str, precision: str, *, graphs: bool, sessions: int, max_batch: int) -> PolicyEngine:
    """The benchmark's policy, warm. Raises RuntimeError where graphs were wanted and could not be captured."""
    where, dtype = torch.device(device), getattr(torch, precision)
    network = build_network(NETWORK, SPEC)
    if not graphs:
        plain = PolicyEngine(network, SPEC, max_sessions=sessions, device=where, precision=dtype)
        plain.warm_up((1,))
        return plain
    engine = GraphEngine(
        network, SPEC, max_sessions=sessions, max_batch=max_batch, device=where, precision=dtype,
        graphs=CudaGraphs(where), log=logging.getLogger("bench"),
    )  # fmt: skip
    engine.warm_up((1,))
    if not engine.runner.endswith(" graphs"):
        raise RuntimeError(f"no graphs: {engine.runner}")
    return engine


@torch.inference_mode()
def measure(engine: PolicyEngine, sizes: Sequence[int], seconds: float) -> dict[int, float]:
    """Median microseconds of a batch of each size, from windows of `seconds`."""
    return {size: _window(engine, size, seconds) for size in sizes}


def _window(engine: PolicyEngine, size: int, seconds: float) -> float:
    staging, rows = engine.stage(size), 2 * np.arange(size)
    draw = np.random.default_rng(size)
    staging.observation[:size] = draw.standard_normal(staging.observation[:size].shape)
    staging.mask[:size] = draw.random(staging.mask[:size].shape) < 0.5
    staging.mask[:size, 0] = 1
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < LEAST_BATCHES + UNTIMED_BATCHES or time.perf_counter() < end:
        begin = time.perf_counter()
        staging = engine.stage(size)
        staging.read_rows[:size], staging.write_rows[:size] = rows + len(times) % 2, rows + 1 - len(times) % 2
        engine.forward(size)
        engine.sample()
        times.append(time.perf_counter() - begin)
    return median(times[UNTIMED_BATCHES:]) * 1e6
