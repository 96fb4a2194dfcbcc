"""Stand-in for the learner: publishes fresh weights; receives every unroll as a learner does, and discards it.

Says `ready`; takes JSON lines {"swaps_per_sec", "past"} at any time: how often the learner's weights come anew, and how
many past selves are resident. Answers each with {"published"}: when (monotonic seconds) weights came since the last.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from simul.common.nets.build import build_network
from simul.common.nets.io import fingerprint, weights_to_bytes
from simul.common.protocol.codec import Codec, Frame, encode
from simul.common.protocol.messages import TO_LEARNER, Credit, LentUnrolls, ServerHello, Unroll, UnrollMemory, Weights
from simul.common.protocol.unroll_layout import UnrollLayout
from simul.common.role.run_directory import RunDir
from simul.common.transport import Poller, RouterSocket
from simul.learner.io.unroll_memory import UnrollMemories
from simul.learner.io.weight_publisher import Publication

CREDIT_EVERY_SEC = 0.3
PLENTY = 1 << 60
AHEAD = 0.65  # of the time between two swaps: apart from both spans that `stall` compares


def past_selves(count: int) -> tuple[str, ...]:
    """Names of `count` past selves."""
    return tuple(f"past/{number}" for number in range(1, count + 1))


class Sink:
    """Both learner sockets of one run directory."""

    def __init__(self, run_dir: RunDir) -> None:
        (config, trust), spec = run_dir.read_trusted_config(), run_dir.read_spec()
        network = build_network(config.network, spec, trust=trust)
        self._memories = UnrollMemories(UnrollLayout(spec, config.learner.unroll_length, network.state_size))
        self._taken: dict[bytes, int] = {}
        self._data = weights_to_bytes(network)
        self._fingerprint = fingerprint(self._data)
        self._published: dict[str, Publication] = {}
        self._unrolls = RouterSocket(run_dir.endpoint("unrolls"))
        self._weights = RouterSocket(run_dir.endpoint("weights"))
        self._codec: Codec[TO_LEARNER] = Codec(TO_LEARNER)
        self._peers: dict[bytes, bool] = {}  # on the weights socket; whether they read memory
        self._version = 0
        self._next: Publication | None = None  # of the learner's weights
        self._former: list[Publication] = []
        self.poller = Poller([self._unrolls, self._weights])
        self.swaps_per_sec = 0.0
        self.past: tuple[str, ...] = ()
        self.past_wanted: tuple[str, ...] = ()
        self.published: list[float] = []

    def receive(self) -> None:
        """Receive all messages; answer SERVER_HELLO with weights and credit, and unrolls with credit."""
        taken = dict(self._taken)
        while (received := self._unrolls.receive()) is not None:
            self._receive_unroll(*received)
        if taken != self._taken:
            self.grant()
        while (received := self._weights.receive()) is not None:
            peer, frames = received
            message, _ = self._codec.decode(frames)
            if isinstance(message, ServerHello):
                self._peers[peer] = message.shared_memory
                self.publish()

    def _receive_unroll(self, peer: bytes, frames: Sequence[Frame]) -> None:
        message, _ = self._codec.decode(frames)
        if isinstance(message, ServerHello):
            self._taken[peer] = 0
            self.grant()
        elif isinstance(message, UnrollMemory):
            self._memories.map_memory_of(peer, message, self._taken)
            self.grant()
        elif isinstance(message, Unroll | LentUnrolls):
            unrolls = message.unrolls if isinstance(message, LentUnrolls) else (message,)
            for unroll in unrolls:
                if unroll.place >= 0:
                    self._memories.copy_unroll(peer, unroll)
            self._taken[peer] += len(unrolls)

    def grant(self) -> None:
        """Grant practically unlimited credit."""
        for peer, taken in self._taken.items():
            self._unrolls.send(peer, encode(Credit(total=PLENTY, taken=taken, memory=self._memories.is_mapped(peer))))

    def prepare(self) -> None:
        """Write the next weights to shared memory: a learner's own work, done here on the clients' core."""
        while self._former:
            self._former.pop().replace()
        if self._next is None:
            self._next = self._make("learner", self._version + 1)
            self._next.write_to_memory()

    def publish(self) -> None:
        """Publish the same weights as a newer version."""
        publication = self._next or self._make("learner", self._version + 1)
        self._next, self._version = None, self._version + 1
        self.published.append(time.monotonic())
        self._send("learner", publication)

    def keep_resident(self) -> None:
        """Make the wanted past selves resident, and no others."""
        self.past = self.past_wanted
        for name in self.past:
            self._send(name, self._make(name, 1))
        if self._next is not None:  # it names other resident policies
            self._former.append(self._next)
            self._next = None
        self.publish()

    def _make(self, policy: str, version: int) -> Publication:
        message = Weights(
            policy=policy, policy_version=version, fingerprint=self._fingerprint, resident=("learner", *self.past)
        )  # fmt: skip
        return Publication(message, self._data)

    def _send(self, policy: str, publication: Publication) -> None:
        if policy in self._published:
            self._former.append(self._published[policy])
        self._published[policy] = publication
        for peer, reads_memory in self._peers.items():
            in_memory = reads_memory and publication.write_to_memory()
            self._weights.send(peer, publication.frames(in_memory=in_memory))


def main() -> None:
    """See the module's docstring."""
    sink = Sink(RunDir(Path(sys.argv[1])))
    threading.Thread(target=_follow_orders, args=(sink,), daemon=True).start()
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
        if sink.past != sink.past_wanted:
            sink.keep_resident()
        if sink.swaps_per_sec and now >= next_swap:
            next_swap = max(next_swap, now - 1 / sink.swaps_per_sec) + 1 / sink.swaps_per_sec
            sink.publish()
        if sink.swaps_per_sec and now >= next_swap - AHEAD / sink.swaps_per_sec:
            sink.prepare()


def _follow_orders(sink: Sink) -> None:
    for line in sys.stdin:
        wanted = json.loads(line)
        sink.swaps_per_sec, sink.past_wanted = float(wanted["swaps_per_sec"]), past_selves(wanted["past"])
        published, sink.published = sink.published, []
        sys.stdout.write(json.dumps({"published": published}) + "\n")
        sys.stdout.flush()
    os._exit(0)  # the parent process has ended


if __name__ == "__main__":
    main()
