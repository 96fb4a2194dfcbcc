"""A server that does not read: what it costs the learner, and that the others have their weights all the same."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import psutil
import pytest

from simul.common.protocol.codec import Codec, encode
from simul.common.protocol.messages import FROM_LEARNER, PROTOCOL, Credit, ServerHello, Weights, WeightsAck
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.common.transport import DealerSocket, RouterSocket
from simul.learner.io.credits import CreditAllocator
from simul.learner.io.learner_io import LearnerIO
from simul.learner.io.server_handshake import ServerHandshake
from simul.learner.io.unrolls import UnrollChecker
from tests.support.waiting import wait_for

SPEC = GameSpec("test", observation_size=2, num_actions=2)
BYTES = 4 * 2**20
VERSIONS = 25


class Server:
    """A server's two sockets. It reads and acknowledges when `read` is called."""

    def __init__(self, run_dir: RunDir, *, shared_memory: bool) -> None:
        self.unrolls, self.weights = (DealerSocket(run_dir.endpoint(name)) for name in ("unrolls", "weights"))
        hello = ServerHello(
            protocol=PROTOCOL, spec_fingerprint=SPEC.fingerprint(), token=run_dir.token(),
            shared_memory=shared_memory, connection=os.urandom(8).hex(),
        )  # fmt: skip
        for socket in (self.unrolls, self.weights):
            socket.send(encode(hello))
        self.versions: list[int] = []
        self._codec: Codec[Credit | Weights] = Codec(FROM_LEARNER)

    def read(self) -> int:
        """The newest version that came."""
        while (frames := self.weights.receive()) is not None:
            message, _ = self._codec.decode(frames)
            self.versions.append(message.policy_version)
            ack = WeightsAck(policy="learner", policy_version=message.policy_version, accepted=True)
            self.weights.send(encode(ack))
        return self.versions[-1] if self.versions else -1

    def close(self) -> None:
        for socket in (self.unrolls, self.weights):
            socket.close()


@pytest.fixture
def run_dir(tmp_path) -> RunDir:
    made = RunDir(tmp_path)
    made.create()
    return made


@pytest.fixture
def io(run_dir) -> Iterator[LearnerIO]:
    sockets = [RouterSocket(run_dir.endpoint(name)) for name in ("unrolls", "weights")]
    handshake = ServerHandshake(run_dir.token(), SPEC.fingerprint())
    made = LearnerIO(*sockets, UnrollChecker(SPEC, 0, 1), CreditAllocator(64, 1), handshake)
    made.start()
    yield made
    made.close()
    for socket in sockets:
        socket.close()


def memory_mb() -> float:
    """Of this process, and of the anonymous files that it holds open."""
    files = 0
    for entry in os.scandir("/proc/self/fd"):
        try:
            if "memfd:simul" in os.readlink(entry.path):
                files += os.stat(entry.path).st_size
        except OSError:  # closed since
            continue
    return (psutil.Process().memory_info().rss + files) / 2**20


@pytest.mark.skipif(sys.platform != "linux", reason="counts anonymous files")
@pytest.mark.parametrize("shared_memory", [False, True])
def test_a_server_that_never_reads_costs_one_version(run_dir, io, shared_memory) -> None:
    reading, stopped = (Server(run_dir, shared_memory=shared_memory) for _ in range(2))

    def publish(version: int) -> None:
        io.publish("learner", version, os.urandom(BYTES), ("learner",))
        wait_for(lambda: reading.read() == version)

    for version in range(5):
        publish(version)
    before = memory_mb()
    for version in range(5, VERSIONS):
        publish(version)
    assert memory_mb() - before < 4 * BYTES / 2**20, "not a version for each publication"
    assert reading.versions[-1] == VERSIONS - 1
    wait_for(lambda: stopped.read() == VERSIONS - 1)
    assert len(stopped.versions) == 2, "what waited for it, then the newest"
    for server in (reading, stopped):
        server.close()


@pytest.mark.skipif(sys.platform != "linux", reason="counts anonymous files")
def test_what_a_dead_server_was_told_of_is_released(run_dir, io) -> None:
    io.publish("learner", 0, bytes(BYTES), ("learner",))
    dead = Server(run_dir, shared_memory=True)
    wait_for(lambda: dead.weights.raw.poll(10))  # told, and it will not answer
    io.publish("learner", 1, bytes(BYTES), ("learner",))
    publisher = io.publisher
    wait_for(lambda: len(publisher._servers) == 1)
    dead.close()
    wait_for(lambda: not publisher._servers)
