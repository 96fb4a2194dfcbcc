"""Stands in for the learner: publishes fresh weights, takes every unroll and throws it away.

Says `ready`; takes JSON lines {"swaps_per_sec"} at any time.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

import numpy as np

from common.codec import Codec, encode
from common.messages import TO_LEARNER, Credit, ServerHello, Weights
from common.nets.build import build_network
from common.nets.weights import fingerprint, weights_to_bytes
from common.rundir import RunDir
from common.transport import Poller, RouterSocket

CREDIT_EVERY_SEC = 0.3
PLENTY = 1 << 60


class Sink:
    """Both learner sockets of one run directory."""

    def __init__(self, run_dir: RunDir) -> None:
        network = build_network(run_dir.read_config().network, run_dir.read_spec())
        data = weights_to_bytes(network)
        self._data, self._fingerprint = np.frombuffer(data, np.uint8), fingerprint(data)
        self._unrolls = RouterSocket(run_dir.endpoint("unrolls"))
        self._weights = RouterSocket(run_dir.endpoint("weights"))
        self._codec: Codec[TO_LEARNER] = Codec(TO_LEARNER)
        self._peers: dict[bytes, RouterSocket] = {}
        self._version = 0
        self.poller = Poller([self._unrolls, self._weights])
        self.swaps_per_sec = 0.0

    def receive(self) -> None:
        """Take in what is there; servers that say hello get weights and credit."""
        for socket in (self._unrolls, self._weights):
            while (received := socket.receive()) is not None:
                peer, frames = received
                if len(frames) == 1 and isinstance(self._codec.decode(frames)[0], ServerHello):
                    self._peers[peer] = socket
                    self.publish() if socket is self._weights else self.grant()

    def grant(self) -> None:
        """Credit without end."""
        for peer in [peer for peer, socket in self._peers.items() if socket is self._unrolls]:
            self._unrolls.send(peer, encode(Credit(total=PLENTY)))

    def publish(self) -> None:
        """The same weights as a newer version."""
        self._version += 1
        message = Weights(policy="learner", policy_version=self._version, fingerprint=self._fingerprint)
        for peer in [peer for peer, socket in self._peers.items() if socket is self._weights]:
            self._weights.send(peer, encode(message, {"safetensors": self._data}))


def main() -> None:
    """See the module's docstring."""
    sink = Sink(RunDir(Path(sys.argv[1])))
    threading.Thread(target=_obey, args=(sink,), daemon=True).start()
    next_credit = next_swap = 0.0
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        sink.poller.wait(0.02)
        sink.receive()
        now = time.monotonic()
        if now >= next_credit:
            next_credit = now + CREDIT_EVERY_SEC
            sink.grant()
        if sink.swaps_per_sec and now >= next_swap:
            next_swap = max(next_swap, now - 1 / sink.swaps_per_sec) + 1 / sink.swaps_per_sec
            sink.publish()


def _obey(sink: Sink) -> None:
    for line in sys.stdin:
        sink.swaps_per_sec = float(json.loads(line)["swaps_per_sec"])
    os._exit(0)  # whoever started this process is gone


if __name__ == "__main__":
    main()
