"""Capturing and replaying on a CUDA device, with torch.cuda.graph."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable

import torch
from torch import Tensor

WARM_UP_RUNS = 3  # handles, workspaces and choices of kernels are made before the capture, which may not make them


class CudaGraphs:
    """The GraphDevice of one GPU. Policies may be captured on any thread; only the loop's thread replays.

    Every policy captures on a stream of its own, which it keeps for life: cuBLAS has one workspace a thread and stream,
    captured with the kernels that use it, and two policies' graphs in one workspace could write over each other.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._one_capture = threading.Lock()  # CUDA allows several, torch's allocator one a process
        self._free: list[torch.cuda.Stream] = []

    def host_bytes(self, size: int) -> Tensor:
        """Pinned, uint8 [size]."""
        return torch.empty(size, dtype=torch.uint8, pin_memory=True)

    def copy(self, target: Tensor, source: Tensor) -> None:
        """Queue a copy; the host does not wait."""
        target.copy_(source, non_blocking=True)

    def event(self) -> torch.cuda.Event:
        """A mark in the current stream."""
        return torch.cuda.Event()

    def lane(self) -> CudaLane:
        """A stream and a pool of memory for one policy's graphs."""
        try:
            stream = self._free.pop()
        except IndexError:
            stream = torch.cuda.Stream(self._device)
        lane = CudaLane(stream, self._one_capture)
        weakref.finalize(lane, self._free.append, stream)
        return lane


class CudaLane:
    """The graphs of one policy share a pool: no data survives there between two replays."""

    def __init__(self, stream: torch.cuda.Stream, one_capture: threading.Lock) -> None:
        self._stream = stream
        self._one_capture = one_capture
        self._pool = torch.cuda.graph_pool_handle()

    def capture(self, body: Callable[[], None]) -> torch.cuda.CUDAGraph:
        """Warm `body` up and record it. Raises RuntimeError.

        The mode is `thread_local`: the loop goes on calling CUDA on its own thread while a policy is loaded on another.
        """
        graph = torch.cuda.CUDAGraph()
        here = torch.cuda.current_stream(self._stream.device)
        # the outer context puts the stream back, which torch.cuda.graph does not where the capture fails
        with self._one_capture, torch.cuda.stream(self._stream):
            self._stream.wait_stream(here)  # the inputs are on their way
            for _ in range(WARM_UP_RUNS):
                body()
            self._stream.synchronize()
            with torch.cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"):
                body()
        here.wait_stream(self._stream)
        return graph
