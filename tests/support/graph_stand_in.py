"""A device without a GPU that treats graphs as CUDA does.

Copies and replays wait in a queue until somebody waits for a mark behind them, so buffers that are written too early or
read too late show. A capture records operations with the very tensors that they touched: a replay runs no Python of the
network, reads weights where they lay at the capture, and leaves rubbish in the memory that a lane's graphs share.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

SYNCHRONISES = ("aten.item", "aten._local_scalar_dense", "aten.is_nonzero", "aten.nonzero", "aten.masked_select")
WARM_UP_RUNS = 2


class StandInGraphs:
    """A GraphDevice. It counts, and it fails when it is told to.

    Attributes:
        captured: weak references to the graphs, in order. lanes: how many were opened.
        launches, copies, waits: how often the host asked for each. replays: how many graphs ran.
        before_capture: called first. cannot_capture: whether the next capture fails.
        fail_at: the operation of the next replay that raises. lies: graphs forget to write anything.
    """

    def __init__(self) -> None:
        self.captured: list[weakref.ref[StandInGraph]] = []
        self.lanes = self.replays = self.launches = self.copies = self.waits = 0
        self.before_capture: Callable[[], None] = lambda: None
        self.cannot_capture: Callable[[], bool] = lambda: False
        self.fail_at: int | None = None
        self.lies = False
        self._queue: list[Callable[[], None]] = []
        self._done = 0
        self._lock = threading.RLock()

    def host_bytes(self, size: int) -> Tensor:
        return torch.full((size,), 0xA5, dtype=torch.uint8)  # nobody clears pinned memory

    def copy(self, target: Tensor, source: Tensor) -> None:
        self.copies += 1
        assert target.is_contiguous()
        assert source.is_contiguous()
        self.enqueue(lambda: target.copy_(source))

    def event(self) -> StandInEvent:
        return StandInEvent(self)

    def lane(self) -> StandInLane:
        self.lanes += 1
        return StandInLane(self)

    def enqueue(self, work: Callable[[], Any]) -> None:
        with self._lock:
            self._queue.append(work)

    def queued(self) -> int:
        with self._lock:
            return self._done + len(self._queue)

    def drain(self, until: int) -> None:
        with self._lock:
            while self._done < until:
                self._done += 1
                self._queue.pop(0)()

    def living(self) -> list[StandInGraph]:
        return [graph for ref in self.captured if (graph := ref()) is not None]


class StandInEvent:
    def __init__(self, device: StandInGraphs) -> None:
        self._device = device
        self._mark: int | None = None

    def record(self) -> None:
        self._mark = self._device.queued()

    def synchronize(self) -> None:
        self._device.waits += 1
        assert self._mark is not None, "waited for a mark that was never set"
        self._device.drain(self._mark)


class StandInLane:
    def __init__(self, device: StandInGraphs) -> None:
        self._device = device
        self.shared: list[Tensor] = []  # what this lane's graphs allocated

    def capture(self, body: Callable[[], None]) -> StandInGraph:
        device = self._device
        device.before_capture()
        device.drain(device.queued())
        for _ in range(WARM_UP_RUNS):
            body()
        if device.cannot_capture():
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing\nCUDA kernel errors ...")
        graph = StandInGraph(device, self)
        try:
            with _Recorder(graph):
                body()
        except RuntimeError:
            raise RuntimeError("CUDA error: operation failed due to a previous error during capture")  # noqa: B904
        graph.spoil()
        device.captured.append(weakref.ref(graph))
        return graph


class StandInGraph:
    def __init__(self, device: StandInGraphs, lane: StandInLane) -> None:
        self._device = device
        self._lane = lane
        self.operations: list[tuple[Any, Any, Any, list[Tensor]]] = []

    def replay(self) -> None:
        self._device.launches += 1
        self._device.enqueue(self._run)

    def add(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        results = [leaf for leaf in tree_leaves(out) if isinstance(leaf, Tensor)]
        self.operations.append((func, args, kwargs, results))
        given = {_memory(leaf) for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)}
        self._lane.shared += [result for result in results if _memory(result) not in given]

    @torch.inference_mode()
    def spoil(self) -> None:
        for tensor in self._lane.shared:
            tensor.fill_(torch.nan if tensor.is_floating_point() else 1)

    @torch.inference_mode()
    def _run(self) -> None:
        self._device.replays += 1
        fail_at, self._device.fail_at = self._device.fail_at, None
        for number, (func, args, kwargs, results) in enumerate([] if self._device.lies else self.operations):
            if number == fail_at:
                raise RuntimeError("CUDA error: out of luck")
            found = [leaf for leaf in tree_leaves(func(*args, **kwargs)) if isinstance(leaf, Tensor)]
            for result, fresh in zip(results, found, strict=True):
                if fresh.data_ptr() != result.data_ptr():
                    result.copy_(fresh)
        self.spoil()


class _Recorder(TorchDispatchMode):
    def __init__(self, graph: StandInGraph) -> None:
        super().__init__()
        self._graph = graph

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if str(func).startswith(SYNCHRONISES):
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing\nCUDA kernel errors ...")
        out = func(*args, **(kwargs or {}))
        self._graph.add(func, args, kwargs or {}, out)
        return out


def _memory(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
