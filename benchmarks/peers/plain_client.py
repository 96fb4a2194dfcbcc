"""A client of the plain loop: one DEALER, which waits for each answer."""

from __future__ import annotations

import sys

import numpy as np
import zmq
from numpy.typing import NDArray

from benchmarks.peers.closed_loop import run_orders


class PlainClient:
    """One request, one answer."""

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._socket = socket

    def decide(
        self, observation: NDArray[np.float32], mask: NDArray[np.uint8], start: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float32], int]:
        """As `closed_loop.Decide`."""
        self._socket.send_multipart((start.tobytes(), observation.data, mask.data), copy=False)
        decisions, batch = self._socket.recv_multipart()
        return np.frombuffer(decisions, np.float32).reshape(3, -1), int.from_bytes(batch, "little")


def main() -> None:
    """Run orders until stdin ends."""
    socket = zmq.Context().socket(zmq.DEALER)
    socket.connect(sys.argv[1])
    run_orders(lambda envs: PlainClient(socket).decide)


if __name__ == "__main__":
    main()
