"""Which servers are admitted to the learner's two sockets."""

from __future__ import annotations

from collections import Counter, deque

from simul.common.protocol.messages import MOST_VERSION, PROTOCOL, Message, ServerHello
from simul.common.role.run_directory import is_run_token

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
