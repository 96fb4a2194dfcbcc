"""Admits servers of this run and publishes weights to them: each version once, and again after every SERVER_HELLO.

A server gets the next weights after its WEIGHTS_ACK, and then the newest. One that does not read costs one version.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np

from simul.common.errors import ProtocolError
from simul.common.nets.io import fingerprint
from simul.common.protocol.codec import Codec, Frame, encode
from simul.common.protocol.messages import (
    MOST_VERSION,
    PROTOCOL,
    TO_LEARNER,
    Message,
    ServerHello,
    Unroll,
    UnrollMemory,
    Weights,
    WeightsAck,
)
from simul.common.protocol.shared_memory import anonymous_file, can_share_memory, file_number, shared_path
from simul.common.role.run_directory import is_run_token
from simul.common.runtime.private_files import read_regular
from simul.common.transport import RouterSocket

FILE = "last_version"
# Versions that a former life of the learner may have published beyond the last one noted on disk.
MOST_UNNOTED = 10**8
MOST_PEERS = 2000  # admitted connections remembered: two a life of a server, of up to 64 servers
_SHOWN = 40  # characters of a peer's text in a sentence


class ServerHandshake:
    """Checks SERVER_HELLO on both of the learner's sockets: only servers of this run send unrolls and get weights.

    The I/O thread calls it; the main loop calls `note_published`.

    Attributes:
        untrusted: messages of peers without the run's token, by type, since process start. No other count has them.
        events: sentences for the view, each once.
        met_server: one was admitted since process start.
    """

    def __init__(self, token: str, spec_fingerprint: str, version: int = 0) -> None:
        """`version`: the newest that this run is known to have published, or is about to."""
        self.untrusted: Counter[str] = Counter()
        self.events: deque[str] = deque(maxlen=100)
        self.met_server = False
        self._token = token
        self._spec_fingerprint = spec_fingerprint
        self._newest = version
        self._admitted: dict[bytes, str] = {}  # with their connection; closed ones, too: messages may be unread
        self._said: set[str] = set()

    def __contains__(self, peer: object) -> bool:
        """Whether this peer was admitted. Routing ids are random, so those of two sockets never collide."""
        return peer in self._admitted

    def connection_of(self, peer: bytes) -> str:
        """The `connection` of an admitted peer's SERVER_HELLO; an empty string for any other."""
        return self._admitted.get(peer, "")

    def note_published(self, version: int) -> None:
        """Raise the newest version that servers can have served."""
        self._newest = max(self._newest, version)

    def admit(self, peer: bytes, hello: ServerHello) -> bool:
        """Whether the server belongs to this run and speaks its protocol and spec; if not, an event says why."""
        self._admitted.pop(peer, None)
        if not is_run_token(hello.token, self._token):
            self.refuse(hello)
            return False
        if problem := self._problem(hello):
            self._say(problem)
            return False
        self._admitted[peer] = hello.connection
        self.met_server = True
        if len(self._admitted) > MOST_PEERS:
            del self._admitted[next(iter(self._admitted))]
        return True

    def refuse(self, message: Message | None) -> None:
        """Count a message of a peer that was not admitted; None: an unreadable one."""
        kind = "unreadable" if message is None else str(type(message).__struct_config__.tag)
        self.untrusted[kind] += 1
        self._say(
            f"A message ({kind}) of a process that has not shown the run's token was refused, like all others of it "
            "(untrusted counts them): a server sent it to an earlier life of the learner, or it is not of this run."
        )

    def _problem(self, hello: ServerHello) -> str:
        if hello.protocol != PROTOCOL:
            return f"A server speaks {hello.protocol[:_SHOWN]}; the learner speaks {PROTOCOL}. It gets no weights."
        if hello.spec_fingerprint != self._spec_fingerprint:
            return (
                f"A server has the spec fingerprint {hello.spec_fingerprint[:_SHOWN]}; "
                f"the learner has {self._spec_fingerprint}. It gets no weights."
            )
        if not -1 <= hello.served_version <= min(self._newest + MOST_UNNOTED, MOST_VERSION):
            return (
                f"A server says that it has served version {hello.served_version}, which no learner of this run can "
                f"have published: the newest known is {self._newest}. It gets no weights."
            )
        return ""

    def _say(self, sentence: str) -> None:
        if sentence not in self._said and len(self._said) < 100:
            self._said.add(sentence)
            self.events.append(sentence)


class LastVersionFile:
    """The last published version on disk: versions only grow, even where learner and server die together.

    A small file in the checkpoints' folder, replaced as a whole before each publication. It is not synced: it protects
    against the death of processes; after a power failure no server has served more either.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._broken = False

    def read(self, saved: int) -> tuple[int, str]:
        """(The highest version that any life of the learner may have published, -1 for unknown; a sentence or "").

        `saved`: version of the newest whole checkpoint, -1 for none. A file that is damaged, or holds a version that
        the run cannot have reached, is ignored, and the sentence says so.
        """
        try:
            text = read_regular(self._path)
        except FileNotFoundError:
            return -1, ""
        except OSError as error:
            return -1, self._ignored(f"cannot be read: {error.strerror}", saved)
        try:
            version = int(text.decode())
        except ValueError:
            return -1, self._ignored("is damaged", saved)
        limit = min(max(saved, 0) + MOST_UNNOTED, MOST_VERSION)
        if not 0 <= version <= limit:
            words = f"holds version {version}, which this run cannot have published: expected 0 to {limit}"
            return -1, self._ignored(words, saved)
        return version, ""

    def write(self, version: int) -> str:
        """Write a version. Returns why that failed, at the first failure in a row; else an empty string."""
        aside = self._path.with_name(f".{FILE}")
        try:
            aside.write_text(str(version))
            aside.replace(self._path)
        except OSError as error:
            again, self._broken = self._broken, True
            reason = error.strerror or error
            return "" if again else f"The version {version} could not be noted on disk: {reason}. Training goes on."
        self._broken = False
        return ""

    def _ignored(self, why: str, saved: int) -> str:
        source = f"that of the newest whole checkpoint, {saved}" if saved >= 0 else "0"
        return f"The file {self._path} {why}. It is not used: the versions go on from {source}."


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


LEARNER = "learner"
MOST_AT_ONCE = 1000  # messages, after which the other socket has its turn


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
    turns: dict[str, int] = field(default_factory=lambda: {LEARNER: -1})
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
    """The I/O thread calls it; the main loop calls `set_weights`, under the receiver's lock.

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

    def set_weights(self, policy: str, version: int, weights: bytes, resident: tuple[str, ...]) -> None:
        """Replace the policy's weights. Policies outside `resident` are dropped."""
        message = Weights(policy=policy, policy_version=version, fingerprint=fingerprint(weights), resident=resident)
        former, self._policies[policy] = self._policies.get(policy), Publication(message, weights)
        if policy == LEARNER:
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
        versions = {LEARNER: hello.served_version}
        self._servers[peer] = _Server(hello.connection, reads_memory, versions, acknowledged=hello.served_version)

    def _on_ack(self, peer: bytes, ack: WeightsAck) -> None:
        if not (ack.accepted or ack.unreadable or ack.overtaken):
            self.events.append(f"A server refused version {ack.policy_version} of {ack.policy}: {ack.reason}.")
        server = self._servers.get(peer)
        if server is None or server.unacknowledged != (ack.policy, ack.policy_version):
            return
        server.finish()
        if ack.accepted and ack.policy == LEARNER:
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
            held_back = policy == LEARNER and version <= self.foreign_version  # the main loop is about to publish anew
            if server.versions.get(policy) == version or held_back:
                continue
            if policy == LEARNER and server.acknowledged < 0:
                server.acknowledged = version  # one that accepts none falls behind, too
            in_memory = server.reads_memory and publication.write_to_memory()
            outcome = self.socket.deliver(peer, publication.frames(in_memory=in_memory))
            if outcome == "gone":  # a running server sends SERVER_HELLO again
                self._forget(peer)
            elif outcome == "sent":
                server.note_sent(policy, version, publication if in_memory else None)
                if policy == LEARNER:
                    self._sent_version = max(self._sent_version, version)
            return  # of a full queue nothing was sent: the newest version follows once the server reads
