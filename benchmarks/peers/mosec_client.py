"""A client of mosec that carries its state: HTTP/1.1 over one connection that stays open, without a library.

An HTTP library would copy the 340 KB of 32 envs once or twice more; this leaves mosec what is mosec's.
"""

from __future__ import annotations

import socket
import sys
import time

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.closed_loop import run_orders
from benchmarks.peers.wire import STATE_SIZE, Request, read_reply, request_blocks
from benchmarks.serving.policy import SPEC
from simul.common.client.columns import Columns

READY_SEC = 60.0


class MosecClient:
    """POSTs all envs in one request. Raises RuntimeError where the answer is not 200."""

    def __init__(self, port: int, envs: int) -> None:
        self._socket = _connect(port)
        self._reader = self._socket.makefile("rb", buffering=1 << 20)
        self._state = np.zeros((envs, STATE_SIZE), np.float32)

    def decide(
        self, observation: NDArray[np.float32], mask: NDArray[np.uint8], start: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float32], int]:
        """As `closed_loop.Decide`."""
        if start.any():
            self._state = np.where(start[:, None], np.float32(0), self._state)
        blocks = request_blocks(Request(observation, mask, self._state))
        self._send([_head(sum(len(block) for block in blocks)), *blocks])
        decisions, self._state, batch = read_reply(self._receive(), len(mask))
        return decisions, batch

    def _send(self, blocks: list[bytes | memoryview]) -> None:
        sent = self._socket.sendmsg(blocks)
        for block in blocks:
            if sent < len(block):
                self._socket.sendall(memoryview(block)[sent:])
            sent = max(0, sent - len(block))

    def _receive(self) -> bytes:
        status = self._reader.readline()
        length = 0
        while (line := self._reader.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        body = self._reader.read(length)
        if b" 200 " not in status:
            raise RuntimeError(f"mosec answered {status!r} {body[:200]!r}")
        return body


def _head(length: int) -> bytes:
    return b"POST /inference HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % length


def _connect(port: int) -> socket.socket:
    """The server listens already: `systems.mosec` has waited for it."""
    found = socket.create_connection(("127.0.0.1", port), timeout=READY_SEC)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


def _wait_until_it_answers(port: int) -> None:
    """A worker that is still starting lets the first requests time out."""
    columns = Columns.empty(1, SPEC)
    row = columns.observation, columns.mask, columns.kind == 0
    deadline = time.monotonic() + READY_SEC
    while True:
        try:
            MosecClient(port, 1).decide(*row)
        except RuntimeError:
            if time.monotonic() > deadline:
                raise
            continue
        return


def main() -> None:
    """Run orders until stdin ends."""
    port = int(sys.argv[1])
    _wait_until_it_answers(port)
    run_orders(lambda envs: MosecClient(port, envs).decide)


if __name__ == "__main__":
    main()
