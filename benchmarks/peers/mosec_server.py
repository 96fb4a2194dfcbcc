"""mosec serving policy P on one core; runs in .venv-peers. Takes mosec's own options beside the four below."""

from __future__ import annotations

import argparse
import os
import warnings

import numpy as np
import torch
from mosec import Server, Worker

from benchmarks.harness.cores import pin
from benchmarks.peers.acting import Acting
from benchmarks.peers.wire import Buffer, Request, read_request, reply_bytes

PRECISION = "BENCH_PEERS_PRECISION"  # mosec starts its workers without arguments


class PolicyWorker(Worker):
    """One request holds all envs of a client; requests that came together are one forward."""

    resp_mime_type = "application/octet-stream"

    def __init__(self) -> None:
        super().__init__()
        warnings.filterwarnings("ignore", message="IPC data")  # four clients' observations are more than a megabyte
        self._act = Acting(os.environ[PRECISION])

    def deserialize(self, data: Buffer) -> Request:
        return read_request(data)

    def serialize(self, data: bytes) -> bytes:
        return data

    def forward(self, data: Request | list[Request]) -> bytes | list[bytes]:
        """A list where batching is on, one request where it is off."""
        if isinstance(data, Request):
            return self._answer([data])[0]
        return self._answer(data)

    def _answer(self, requests: list[Request]) -> list[bytes]:
        observation, mask, state = (
            torch.from_numpy(blocks[0] if len(blocks) == 1 else np.concatenate(blocks))
            for blocks in zip(*((r.observation, r.mask, r.state) for r in requests))
        )
        packed, new_state = self._act(observation, mask, state)
        ends = np.cumsum([len(r.mask) for r in requests])
        batch = int(ends[-1])
        decisions, states = packed.numpy(), new_state.numpy()
        rows = [slice(end - len(r.mask), end) for r, end in zip(requests, ends)]
        return [reply_bytes(decisions[:, own], states[own], batch) for own in rows]


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--core", type=int, required=True)
    parser.add_argument("--precision", required=True)
    parser.add_argument("--max-batch", type=int, required=True, help="requests")
    parser.add_argument("--max-wait-ms", type=int, required=True)
    options, _ = parser.parse_known_args()
    pin(os.getpid(), options.core)  # before anything is started: all of mosec inherits it
    server = Server()
    worker_env = [{PRECISION: options.precision}]
    server.append_worker(PolicyWorker, 1, options.max_batch, options.max_wait_ms, env=worker_env)
    server.run()


if __name__ == "__main__":
    main()
