"""The ranks of a learner as a process group of torch.distributed: gloo, and nccl for tensors of CUDA devices.

Imported by learners of several ranks only. The ranks meet in a file that the supervisor names anew for each start of
all of them. gloo and nccl listen on the loopback interface: they have no authentication.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from safetensors.numpy import load, save
from torch import Tensor

from simul.common.role.lifecycle import SAVE_PATIENCE_SEC
from simul.common.runtime.private_files import make_private_folder
from simul.learner.ranks import Arrays, RankLostError

TIMEOUT_SEC = 30.0  # of one collective: longer, and the rank that is missing counts as lost
MEETING_SEC = 300.0
POLL_SEC = 0.02


class DistributedRanks:
    """See `Ranks`. One a process: torch.distributed has one default group."""

    def __init__(self, rank: int, count: int, meeting_point: Path, device: torch.device, stopped: Callable[[], object]):
        """Wait until all ranks have come to `meeting_point`. Raises RankLostError: one did not, or `stopped()`."""
        self.rank, self.count = rank, count
        self._stopped = stopped
        # Assigned: a cluster's scheduler may have named the interface to other machines.
        os.environ["GLOO_SOCKET_IFNAME"] = interface = loopback_interface()
        os.environ["NCCL_SOCKET_IFNAME"] = f"={interface}"  # =: of exactly this name
        make_private_folder(meeting_point.parent)
        store = self._store = dist.FileStore(str(meeting_point), count)
        store.add("here", 1)
        self._wait_until(lambda: store.add("here", 0) >= count)
        # Two ranks cannot use nccl on one device: gradients then go through this machine's memory.
        self._nccl = device.type == "cuda" and torch.cuda.device_count() >= count
        with _lost("start"):
            dist.init_process_group(
                "cpu:gloo,cuda:nccl" if self._nccl else "gloo", store=store, rank=rank, world_size=count,
                timeout=timedelta(seconds=TIMEOUT_SEC),
            )  # fmt: skip
            # Rank 0 is the one that saves: it need not wait long for the others.
            limit_sec = SAVE_PATIENCE_SEC if rank else TIMEOUT_SEC
            self._patient = dist.new_group(backend="gloo", timeout=timedelta(seconds=limit_sec))

    def wait_for_first(self) -> None:
        """Rank 0 has loaded what it shares with the others, which may take longer than a collective."""
        if not self.rank:
            self._store.add("loaded", 1)
        self._wait_until(lambda: self._store.add("loaded", 0) > 0)

    def wait_for_save(self) -> None:
        """See `Ranks`. In a group of its own: the limit of a collective is that of its group."""
        with _lost("a save"):
            dist.broadcast(torch.zeros(1), src=0, group=self._patient)

    def _wait_until(self, condition: Callable[[], object]) -> None:
        """Not a wait inside torch: a signal or the parent's death ends it."""
        deadline = time.monotonic() + MEETING_SEC
        while not self._reached(condition):
            if self._stopped() or time.monotonic() > deadline:
                raise RankLostError(f"Rank {self.rank} of {self.count} stopped waiting for the others.")
            time.sleep(POLL_SEC)

    def _reached(self, condition: Callable[[], object]) -> object:
        with _lost("the meeting point"):
            return condition()

    def gather_numbers(self, numbers: Sequence[int]) -> list[list[int]]:
        """See `Ranks`."""
        mine = torch.tensor(numbers, dtype=torch.int64)
        every = [torch.empty_like(mine) for _ in range(self.count)]
        with _lost("numbers"):
            dist.all_gather(every, mine)
        return [each.tolist() for each in every]

    def gather_arrays(self, arrays: Arrays) -> list[dict[str, NDArray[Any]]]:
        """See `Ranks`."""
        data = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
        sizes = [size for (size,) in self.gather_numbers([len(data)])]
        mine = _padded(data, max(sizes))
        every = [torch.empty_like(mine) for _ in range(self.count)]
        with _lost("arrays"):
            dist.all_gather(every, mine)
        return [load(each.numpy()[:size].tobytes()) for each, size in zip(every, sizes)]

    def deal_arrays(self, parts: Sequence[Arrays]) -> dict[str, NDArray[Any]]:
        """See `Ranks`."""
        if self.rank:
            size = self._broadcast_sizes([0] * self.count)[self.rank]
            mine = torch.empty(size, dtype=torch.uint8)
            with _lost("a part of a batch"):
                dist.recv(mine, src=0)
            return load(mine.numpy().tobytes())
        packed = [save({name: np.ascontiguousarray(array) for name, array in part.items()}) for part in parts[1:]]
        self._broadcast_sizes([0, *(len(data) for data in packed)])
        for rank, data in enumerate(packed, 1):
            with _lost("a part of a batch"):
                dist.send(_padded(data, len(data)), dst=rank)
        return dict(parts[0])

    def broadcast_bytes(self, data: bytes) -> bytes:
        """See `Ranks`."""
        size = self._broadcast_sizes([len(data)])[0]
        tensor = torch.empty(size, dtype=torch.uint8) if self.rank else _padded(data, size)
        with _lost("bytes"):
            dist.broadcast(tensor, src=0)
        return tensor.numpy().tobytes() if self.rank else data

    def add(self, tensor: Tensor) -> Tensor:
        """See `Ranks`. Every rank gets the same bits."""
        here = tensor if self._nccl or tensor.device.type == "cpu" else tensor.cpu()
        with _lost("a sum"):
            dist.all_reduce(here)
        return here.to(tensor.device)

    def close(self) -> None:
        """Leave the group, without waiting for the others."""
        if dist.is_initialized():
            dist.destroy_process_group()

    def _broadcast_sizes(self, sizes: Sequence[int]) -> list[int]:
        tensor = torch.tensor(sizes, dtype=torch.int64)
        with _lost("sizes"):
            dist.broadcast(tensor, src=0)
        found: list[int] = tensor.tolist()
        return found


def loopback_interface() -> str:
    """The network interface of 127.0.0.1: `lo` on Linux, `lo0` on macOS."""
    for name, addresses in psutil.net_if_addrs().items():
        if any(address.address == "127.0.0.1" for address in addresses):
            return name
    raise RankLostError("No network interface has the address 127.0.0.1, which the ranks of a learner use.")


def _padded(data: bytes, size: int) -> Tensor:
    """uint8 [size]: `data`, and zeros behind it."""
    array = np.zeros(size, np.uint8)
    array[: len(data)] = np.frombuffer(data, np.uint8)
    return torch.from_numpy(array)


@contextmanager
def _lost(what: str) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        reason = re.sub(r"^\[[^]]*\] ", "", str(error)).partition(". ")[0]  # without gloo's source file and its advice
        raise RankLostError(f"Another rank of the learner is gone or silent ({what}): {reason}.") from error
