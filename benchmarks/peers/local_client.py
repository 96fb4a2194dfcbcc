"""A client that runs policy P itself: no server, nothing to send, and a batch of only its own envs."""

from __future__ import annotations

import sys

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.peers.acting import Acting
from benchmarks.peers.closed_loop import Decide, run_orders
from benchmarks.peers.wire import STATE_SIZE


def local(act: Acting, envs: int) -> Decide:
    """What decides for `envs` envs whose state stays here."""
    state = torch.zeros(envs, STATE_SIZE)

    def decide(
        observation: NDArray[np.float32], mask: NDArray[np.uint8], start: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float32], int]:
        nonlocal state
        if start.any():
            state = torch.where(torch.from_numpy(start)[:, None], 0.0, state)
        packed, state = act(torch.from_numpy(observation), torch.from_numpy(mask), state)
        return packed.numpy(), envs

    return decide


def main() -> None:
    """Run orders until stdin ends."""
    act = Acting(sys.argv[1])
    run_orders(lambda envs: local(act, envs))


if __name__ == "__main__":
    main()
