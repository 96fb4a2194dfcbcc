"""The least that serves a recurrent policy over ZeroMQ: take what is there, one forward, answer. State on the server.

What our own server does beyond it (sessions, resends, checks, recording, swaps) costs the difference.
A request is start flags, observations and masks; a reply is decisions and the number of rows served together.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
import torch
import zmq
from numpy.typing import NDArray

from benchmarks.peers.acting import Acting
from benchmarks.peers.wire import STATE_SIZE
from benchmarks.serving.policy import SPEC

MOST_ROWS = 1024


@dataclass
class Waiting:
    """One client's request."""

    peer: bytes
    start: NDArray[np.uint8]
    observation: NDArray[np.float32]
    mask: NDArray[np.uint8]


def receive(socket: zmq.Socket[bytes]) -> list[Waiting]:
    """Everything that is there; waits for the first."""
    found: list[Waiting] = []
    flags = 0
    while True:
        try:
            peer, start, observation, mask = socket.recv_multipart(flags)
        except zmq.Again:
            return found
        flags = zmq.NOBLOCK
        rows = len(start)
        found.append(
            Waiting(
                peer,
                np.frombuffer(start, np.uint8),
                np.frombuffer(observation, np.float32).reshape(rows, -1),
                np.frombuffer(mask, np.uint8).reshape(rows, -1),
            )
        )


def serve(endpoint: str, precision: str) -> None:
    """Serve until the process is stopped."""
    act = Acting(precision)
    states: dict[bytes, torch.Tensor] = {}
    observation = torch.zeros(MOST_ROWS, SPEC.observation_size)
    mask = torch.zeros(MOST_ROWS, SPEC.num_actions, dtype=torch.uint8)
    socket = zmq.Context().socket(zmq.ROUTER)
    socket.bind(endpoint)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        requests = receive(socket)
        batch = 0
        for request in requests:
            rows = slice(batch, batch := batch + len(request.start))
            observation.numpy()[rows] = request.observation
            mask.numpy()[rows] = request.mask
        carried = torch.cat([carry(states.get(request.peer), request.start) for request in requests])
        packed, new_state = act(observation[:batch], mask[:batch], carried)
        decisions, batch_bytes, end = packed.numpy(), np.int32(batch).tobytes(), 0
        for request in requests:
            begin, end = end, end + len(request.start)
            states[request.peer] = new_state[begin:end]
            socket.send_multipart((request.peer, decisions[:, begin:end].tobytes(), batch_bytes))


def carry(state: torch.Tensor | None, start: NDArray[np.uint8]) -> torch.Tensor:
    """A client's state, float32 [E, 512], zero where an episode begins."""
    if state is None or len(state) != len(start):
        return torch.zeros(len(start), STATE_SIZE)
    if not start.any():
        return state
    return torch.where(torch.from_numpy(start.astype(bool))[:, None], 0.0, state)


if __name__ == "__main__":
    serve(*sys.argv[1:3])
