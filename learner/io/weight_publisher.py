"""Publishes weights to the servers of this run: each version once, and again after every SERVER_HELLO.

A server gets the next weights after its WEIGHTS_ACK, and then the newest. One that does not read costs one version.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec
import numpy as np

from simul.common.errors import ProtocolError
from simul.common.nets.io import fingerprint
from simul.common.protocol.codec import Codec, Frame, encode
from simul.common.protocol.messages import (
    LEARNER_POLICY,
    TO_LEARNER,
    ServerHello,
    Unroll,
    UnrollMemory,
    Weights,
    WeightsAck,
)
from simul.common.protocol.shared_memory import anonymous_file, can_share_memory, file_number, shared_path
from simul.common.transport import RouterSocket
from simul.learner.io.server_handshake import MOST_PEERS, ServerHandshake

MOST_AT_ONCE = 1000  # messages, after which the other socket has its turn


class Publication:
    """One version of a policy's weights: in shared memory for servers on this machine, else as bytes by the socket.

    The memory is made when the first server needs it. It is released when newer weights have replaced these and no
    server that was told of it owes its WEIGHTS_ACK.
    """

    def __init__(self, message: Weights, weights: bytes) -> None:
        self.version = message.policy_version
        self._message = message
        self._weights = weights
        self._file = -1
        self._readers = 0
        self._replaced = False

    def frames(self, *, in_memory: bool) -> list[Frame]:
        """The message, with the path of `write_to_memory`, or with all bytes."""
        if in_memory:
            place = {"path": shared_path(self._file), "file_number": file_number(self._file)}
            return encode(msgspec.structs.replace(self._message, **place))
        return encode(self._message, {"safetensors": np.frombuffer(self._weights, np.uint8)})

    def add_reader(self) -> None:
        """A server was told of the memory."""
        self._readers += 1

    def remove_reader(self) -> None:
        """That server has mapped the memory, or will not."""
        self._readers -= 1
        self._close_if_unused()

    def replace(self) -> None:
        """Newer weights are here: only servers that were told of the memory still need it."""
        self._replaced, self._weights = True, b""
        self._close_if_unused()

    def _close_if_unused(self) -> None:
        """Close the file: it cannot be opened any more; servers that mapped it keep their mapping."""
        if self._replaced and not self._readers and self._file >= 0:
            os.close(self._file)
            self._file = -1

    def write_to_memory(self) -> bool:
        """Write the weights to shared memory, once. False where the system provides none."""
        if self._file < 0:
            try:
                self._file = anonymous_file(self._weights, len(self._weights), writable=False)
            except OSError:
                return False
        return True


@dataclass
class _Server:
    """One connection of a server to the weights socket.

    Attributes:
        versions: by policy, what it has or was sent.
        turns: by policy, when it was last sent. What was sent longest ago has precedence, the learner's before all
            that was never sent: a policy whose versions come fast does not keep others waiting.
        unacknowledged: (policy, version) that was sent and not acknowledged yet.
        read: the publication of `unacknowledged`, where it is read from shared memory.
        acknowledged: version of the learner's weights that it has accepted; before, the first that it is to have; -1:
            there is none yet.
    """

    connection: str
    reads_memory: bool
    versions: dict[str, int]
    turns: dict[str, int] = field(default_factory=lambda: {LEARNER_POLICY: -1})
    unacknowledged: tuple[str, int] | None = None
    read: Publication | None = None
    acknowledged: int = -1

    def note_sent(self, policy: str, version: int, read: Publication | None) -> None:
        """A version was sent; `read`: it lies in shared memory."""
        self.versions[policy] = version
        self.turns[policy] = max(0, *self.turns.values()) + 1
        self.unacknowledged, self.read = (policy, version), read
        if read is not None:
            read.add_reader()

    def finish(self) -> None:
        """What was sent is acknowledged, or never will be."""
        if self.read is not None:
            self.read.remove_reader()
        self.unacknowledged = self.read = None


class WeightPublisher:
    """The I/O thread calls it, under the lock of `SharedState`; so does the main loop `set_weights`.

    Attributes:
        foreign_version: the highest version a server has served that this life of the learner never sent; -1: none.
            The learner's weights are held back until they are newer: versions only grow.
        events: sentences for the view.
    """

    def __init__(self, socket: RouterSocket | None, handshake: ServerHandshake) -> None:
        """`socket` None: another rank of the learner publishes."""
        self.socket = socket
        self.foreign_version = -1
        self.events: deque[str] = deque(maxlen=100)
        self._handshake = handshake
        self._codec = Codec[ServerHello | Unroll | UnrollMemory | WeightsAck](TO_LEARNER)
        self._policies: dict[str, Publication] = {}
        self._posted_version = self._sent_version = -1  # of the policy `learner`: the newest set, the newest sent
        self._servers: dict[bytes, _Server] = {}
        self._lost: deque[str] = deque(maxlen=MOST_PEERS)  # connections that servers are about to replace

    def set_weights(
        self, policy: str, version: int, weights: bytes, resident: tuple[str, ...], progress: float = 0.0
    ) -> None:
        """Replace the policy's weights. Policies outside `resident` are dropped. `progress`: as in `Weights`."""
        message = Weights(
            policy=policy, policy_version=version, fingerprint=fingerprint(weights), resident=resident,
            progress=progress,
        )  # fmt: skip
        former, self._policies[policy] = self._policies.get(policy), Publication(message, weights)
        if policy == LEARNER_POLICY:
            self.note_published(version)
        if former is not None:
            former.replace()
        for name in self._policies.keys() - set(resident):
            self._policies.pop(name).replace()
            for server in self._servers.values():
                server.versions.pop(name, None)
                server.turns.pop(name, None)

    def note_published(self, version: int) -> None:
        """Servers may serve `version` of the policy `learner` from now on."""
        self._posted_version = max(self._posted_version, version)
        self._handshake.note_published(version)

    def close(self) -> None:
        """Release the shared memory."""
        for publication in self._policies.values():
            publication.replace()
        for peer in list(self._servers):
            self._forget(peer)

    def has_policy(self, policy: str) -> bool:
        """True when the policy has weights here and is resident."""
        return policy in self._policies

    @property
    def newest_version(self) -> int:
        """The newest version that an admitted server can have served, of this life of the learner or a former one."""
        return max(self._posted_version, self.foreign_version)

    @property
    def version_lag(self) -> int:
        """Versions of `learner` between the newest one and the oldest that a server has acknowledged as its newest.

        Of a server that has accepted none, those since the first that it was to have.
        """
        served = [server.acknowledged for server in self._servers.values() if server.acknowledged >= 0]
        return max(self._posted_version - min(served), 0) if served else 0

    def note_served_version(self, version: int) -> None:
        """An admitted server has served `version`."""
        if version > self._sent_version:
            self.foreign_version = max(self.foreign_version, version)

    def forget_connections(self, connections: Iterable[str]) -> None:
        """The unroll socket has lost these: their servers acknowledge nothing any more, and will open others."""
        self._lost.extend(connections)
        self._forget_connections(connections)

    def _forget_connections(self, connections: Iterable[str]) -> None:
        for peer, server in list(self._servers.items()):
            if server.connection and server.connection in connections:
                self._forget(peer)

    def receive_and_send(self) -> None:
        """Read the servers' messages, then send each the weights it lacks. Never blocks."""
        if self.socket is None:
            return
        for _ in range(MOST_AT_ONCE):
            if (received := self.socket.receive()) is None:
                break
            self._receive(*received)
        for peer in list(self._servers):
            self._send_missing(peer)

    def _receive(self, peer: bytes, frames: list[Frame]) -> None:
        try:
            message, _ = self._codec.decode(frames)
        except ProtocolError as error:
            if peer in self._handshake:
                self.events.append(f"A server sent what cannot be read on the weights socket: {error}.")
            else:
                self._handshake.refuse(None)
            return
        if isinstance(message, ServerHello):
            self._admit(peer, message)
        elif peer not in self._handshake:
            self._handshake.refuse(message)
        elif isinstance(message, WeightsAck):
            self._on_ack(peer, message)

    def _admit(self, peer: bytes, hello: ServerHello) -> None:
        self._forget(peer)
        if not self._handshake.admit(peer, hello):
            return
        self.note_served_version(hello.served_version)
        if hello.connection and hello.connection in self._lost:  # nothing would tell that its server has left it
            return
        assert self.socket is not None
        self._forget_connections([hello.connection])  # its former one is lost, unacknowledged weights with it
        reads_memory = hello.shared_memory and can_share_memory(self.socket.endpoint)
        versions = {LEARNER_POLICY: hello.served_version}
        self._servers[peer] = _Server(hello.connection, reads_memory, versions, acknowledged=hello.served_version)

    def _on_ack(self, peer: bytes, ack: WeightsAck) -> None:
        if not (ack.accepted or ack.unreadable or ack.overtaken):
            self.events.append(f"A server refused version {ack.policy_version} of {ack.policy}: {ack.reason}.")
        server = self._servers.get(peer)
        if server is None or server.unacknowledged != (ack.policy, ack.policy_version):
            return
        server.finish()
        if ack.accepted and ack.policy == LEARNER_POLICY:
            server.acknowledged = ack.policy_version
        if ack.unreadable:  # it gets bytes from now on
            server.reads_memory = False
            server.versions.pop(ack.policy, None)
            server.turns[ack.policy] = -1  # before all others

    def _forget(self, peer: bytes) -> None:
        if (server := self._servers.pop(peer, None)) is not None:
            server.finish()

    def _send_missing(self, peer: bytes) -> None:
        """Send the next version that the server lacks, where it has acknowledged the last one."""
        assert self.socket is not None
        server = self._servers[peer]
        if server.unacknowledged is not None:
            return
        for policy in sorted(self._policies, key=lambda name: server.turns.get(name, 0)):
            publication = self._policies[policy]
            version = publication.version
            # Held back: the main loop is about to publish anew.
            held_back = policy == LEARNER_POLICY and version <= self.foreign_version
            if server.versions.get(policy) == version or held_back:
                continue
            if policy == LEARNER_POLICY and server.acknowledged < 0:
                server.acknowledged = version  # one that accepts none falls behind, too
            in_memory = server.reads_memory and publication.write_to_memory()
            outcome = self.socket.deliver(peer, publication.frames(in_memory=in_memory))
            if outcome == "gone":  # a running server sends SERVER_HELLO again
                self._forget(peer)
            elif outcome == "sent":
                server.note_sent(policy, version, publication if in_memory else None)
                if policy == LEARNER_POLICY:
                    self._sent_version = max(self._sent_version, version)
            return  # of a full queue nothing was sent: the newest version follows once the server reads
