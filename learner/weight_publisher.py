"""Admits servers of this run and publishes weights to them: each version once, and again after every SERVER_HELLO."""

from __future__ import annotations

import os
from collections import Counter, deque
from pathlib import Path

import msgspec
import numpy as np

from simul.common.config.run_directory import is_run_token
from simul.common.nets.io import fingerprint
from simul.common.protocol.codec import Codec, Frame, encode
from simul.common.protocol.errors import ProtocolError
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
from simul.common.transport import RouterSocket

FILE = "last_version"
# Versions that a former life of the learner may have published beyond the last one noted on disk.
MOST_UNNOTED = 10**8
MOST_PEERS = 200  # admitted connections remembered: two a life of a server
_SHOWN = 40  # characters of a peer's text in a sentence


class ServerHandshake:
    """Checks SERVER_HELLO on both of the learner's sockets: only servers of this run send unrolls and get weights.

    The I/O thread calls it; the main loop calls `note_published`.

    Attributes:
        untrusted: messages of peers without the run's token, by type, since process start. No other count has them.
        events: sentences for the view, each once.
    """

    def __init__(self, token: str, spec_fingerprint: str, version: int = 0) -> None:
        """`version`: the newest that this run is known to have published, or is about to."""
        self.untrusted: Counter[str] = Counter()
        self.events: deque[str] = deque(maxlen=100)
        self._token = token
        self._spec_fingerprint = spec_fingerprint
        self._newest = version
        self._admitted: dict[bytes, None] = {}  # the latest, closed ones included: their messages may be unread
        self._said: set[str] = set()

    def __contains__(self, peer: object) -> bool:
        """Whether this peer was admitted. Routing ids are random, so those of two sockets never collide."""
        return peer in self._admitted

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
        self._admitted[peer] = None
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
            text = self._path.read_bytes()
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

    The memory is made when the first server needs it, and released by `close`.
    """

    def __init__(self, message: Weights, weights: bytes) -> None:
        self.version = message.policy_version
        self._message = message
        self._weights = weights
        self._file = -1

    def frames(self, *, in_memory: bool) -> list[Frame]:
        """The message: with the weights' path in memory where the system provides it, else with all their bytes."""
        if in_memory and self._in_memory():
            place = {"path": shared_path(self._file), "file_number": file_number(self._file)}
            return encode(msgspec.structs.replace(self._message, **place))
        return encode(self._message, {"safetensors": np.frombuffer(self._weights, np.uint8)})

    def close(self) -> None:
        """Release the memory: it cannot be opened any more; servers that mapped it keep their mapping."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _in_memory(self) -> bool:
        if self._file < 0:
            try:
                self._file = anonymous_file(self._weights, len(self._weights), writable=False)
            except OSError:
                return False
        return True


LEARNER = "learner"
MOST_AT_ONCE = 1000  # messages, after which the other socket has its turn


class WeightPublisher:
    """The I/O thread calls it; the main loop calls `set_weights`, under the receiver's lock.

    Attributes:
        foreign_version: the highest version a server has served that this life of the learner never sent; -1: none.
            The learner's weights are held back until they are newer: versions only grow.
        events: sentences for the view.
    """

    def __init__(self, socket: RouterSocket, handshake: ServerHandshake) -> None:
        self.socket = socket
        self.foreign_version = -1
        self.events: deque[str] = deque(maxlen=100)
        self._handshake = handshake
        self._codec = Codec[ServerHello | Unroll | UnrollMemory | WeightsAck](TO_LEARNER)
        self._policies: dict[str, Publication] = {}
        self._posted_version = self._sent_version = -1  # of the policy `learner`: the newest set, the newest sent
        self._sent: dict[bytes, dict[str, int]] = {}  # server -> policy -> version
        self._readers: set[bytes] = set()  # servers that read weights from shared memory

    def set_weights(self, policy: str, version: int, weights: bytes, resident: tuple[str, ...]) -> None:
        """Replace the policy's weights. Policies outside `resident` are dropped."""
        message = Weights(policy=policy, policy_version=version, fingerprint=fingerprint(weights), resident=resident)
        former, self._policies[policy] = self._policies.get(policy), Publication(message, weights)
        if policy == LEARNER:
            self._posted_version = max(self._posted_version, version)
            self._handshake.note_published(version)
        if former is not None:
            former.close()
        for name in self._policies.keys() - set(resident):
            self._policies.pop(name).close()

    def close(self) -> None:
        """Release the shared memory."""
        for publication in self._policies.values():
            publication.close()

    def has_policy(self, policy: str) -> bool:
        """True when the policy has weights here and is resident."""
        return policy in self._policies

    @property
    def newest_version(self) -> int:
        """The newest version that an admitted server can have served, of this life of the learner or a former one."""
        return max(self._posted_version, self.foreign_version)

    def note_served_version(self, version: int) -> None:
        """An admitted server has served `version`."""
        if version > self._sent_version:
            self.foreign_version = max(self.foreign_version, version)

    def receive_and_send(self) -> None:
        """Read the servers' messages, then send each the weights it lacks. Never blocks."""
        for _ in range(MOST_AT_ONCE):
            if (received := self.socket.receive()) is None:
                break
            self._receive(*received)
        for peer in list(self._sent):
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
        elif isinstance(message, WeightsAck) and message.unreadable:
            self._resend_as_bytes(peer, message)
        elif isinstance(message, WeightsAck) and not message.accepted:
            self.events.append(
                f"A server refused version {message.policy_version} of {message.policy}: {message.reason}."
            )

    def _admit(self, peer: bytes, hello: ServerHello) -> None:
        if not self._handshake.admit(peer, hello):
            self._sent.pop(peer, None)
            return
        self.note_served_version(hello.served_version)
        self._sent[peer] = {LEARNER: hello.served_version}
        if hello.shared_memory and can_share_memory(self.socket.endpoint):
            self._readers.add(peer)
        else:
            self._readers.discard(peer)

    def _resend_as_bytes(self, peer: bytes, ack: WeightsAck) -> None:
        """A server could not read weights in memory: it gets bytes from now on.

        Ignored where newer weights have replaced them: that memory is released, and the newer ones were announced.
        """
        sent, current = self._sent.get(peer, {}), self._policies.get(ack.policy)
        if current is not None and sent.get(ack.policy) == current.version == ack.policy_version:
            self._readers.discard(peer)
            del sent[ack.policy]

    def _send_missing(self, peer: bytes) -> None:
        sent = self._sent[peer]
        for policy, publication in self._policies.items():
            version = publication.version
            held_back = policy == LEARNER and version <= self.foreign_version  # the main loop is about to publish anew
            if sent.get(policy) == version or held_back:
                continue
            outcome = self.socket.deliver(peer, publication.frames(in_memory=peer in self._readers))
            if outcome == "gone":  # a running server sends SERVER_HELLO again
                del self._sent[peer]
                self._readers.discard(peer)
            if outcome != "sent":  # a full queue: the newest version follows once the server reads
                return
            sent[policy] = version
            if policy == LEARNER:
                self._sent_version = max(self._sent_version, version)
