"""The proxy's loop: bytes between peers and the server, both ways, without libzmq. One thread, no socket ever blocks.

What a peer sends lies in the kernel's buffers or in one chunk here until the server takes it: the proxy stops reading
where the other side does not. What peers sent and the server has not answered is counted (`framing.py`) and bounded,
for each connection and for all of them together. Where all together hold much, large messages are read one after
another (`_take_turns`); a peer that does not finish its own, or exceeds a bound, loses its connection.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import selectors
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import Iterator

from simul.inference_server.proxy.framing import (
    GREETING_BYTES,
    LARGE_BYTES,
    WELCOME,
    Broken,
    FromClient,
    FromServer,
    Limits,
)

CHUNK_BYTES = 64 * 1024
FRAMES = 256  # of one connection in one turn: a chunk holds 32,768 empty ones, which take 10 ms and more
TURN_SEC = 0.05  # at least so often while there are connections
REPORT_SEC = 0.1
ALIVE_SEC = 1.0  # a report also where there is nothing new
ACCEPTS = 25  # from one tick to the next: at most 500 a second
LAST_SEC = 1.0  # for the server's last answers
OWN_DESCRIPTORS = 32
READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
_NONE_LEFT = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_KEEPALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPALIVE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}


class Line:
    """A peer's connection and ours to the server in its name."""

    def __init__(self, client: socket.socket, server: socket.socket, limits: Limits, now: float) -> None:
        self.client, self.server = client, server
        self.sent, self.said = FromClient(limits), FromServer()
        self.to_server = self.to_client = b""  # what the other side did not take at once
        self.accepted_at = now
        self.is_client = False  # the server has welcomed it
        self.answered_at = 0.0
        self.counted = 0  # of the relay's total
        self.owing_since = now  # the server owes an answer, or the peer the rest of a message
        self.stuck_since = 0.0  # 0: it is not
        self.heard_at = now
        self.large_since = 0.0  # 0: it is not; later by as long as it was held
        self.held_since = 0.0  # not read until others hold less; 0: it is not
        self.events = {client: 0, server: 0}

    @property
    def last_use(self) -> float:
        """Time of the last answer to a client, else of the acceptance. Refusals do not count."""
        return (self.answered_at if self.is_client else 0.0) or self.accepted_at

    @property
    def wants_client(self) -> int:
        """Events of the peer that matter now."""
        waits = self.to_server or self.to_client or self.sent.full or self.sent.foreign or self.held_since
        return READ * (not waits) | WRITE * bool(self.to_client)

    @property
    def is_slow_sender(self) -> bool:
        """A large message has begun whose rest has not come."""
        return self.large_since > 0.0 and self.sent.is_unfinished

    @property
    def wants_server(self) -> int:
        """Events of the server that matter now."""
        return READ * (not self.to_client) | WRITE * bool(self.to_server)


class Relay:
    """`control`: from the process that started us; its end is ours. It sends listening sockets, and hears figures."""

    def __init__(self, control: socket.socket, server: str, limits: Limits) -> None:
        self._control = control
        self._server = server
        self._limits = limits
        self._most = max(1, min(limits.connections, (_descriptors() - OWN_DESCRIPTORS) // 2))
        self._selector = selectors.DefaultSelector()
        self._listener: socket.socket | None = None
        self._accepts = False
        self._accept_again_at = 0.0
        self._accepted = 0  # since the last tick
        self._newcomer: socket.socket | None = None  # accepted, and without a connection to the server yet
        self._lines: set[Line] = set()
        self._total = 0
        self._crowded = False  # all together hold so much that large messages are read in turns
        self._in_turn: Line | None = None
        self._buffer = memoryview(bytearray(CHUNK_BYTES))
        self._cut: Counter[str] = Counter()
        self._not_accepted = 0
        self._now = time.monotonic()
        self._tick_at = self._report_at = self._alive_at = 0.0
        self._said = b""
        self._stop = False
        control.setblocking(False)
        self._selector.register(control, READ)

    def run(self) -> None:
        """Until the control socket is closed at its other end."""
        while not self._stop:
            self._turn()
        self._listen(None)
        deadline = self._now + LAST_SEC
        while self._lines and self._now < deadline:
            self._turn()

    def _turn(self) -> None:
        ready = self._selector.select(TURN_SEC if self._lines or self._accept_again_at else ALIVE_SEC)
        self._now = time.monotonic()
        for key, events in ready:
            if key.data is not None:
                self._serve(key.data, key.fileobj, events)
            elif key.fileobj is self._control:
                self._hear()
            else:
                self._accept()
        if self._now >= self._tick_at:
            self._tick_at = self._now + TURN_SEC
            self._look()
        self._report()

    def _serve(self, line: Line, side: object, events: int) -> None:
        """Something is ready on one side of a connection."""
        if line not in self._lines:
            return  # closed in this turn
        try:
            if side is line.client:
                if events & WRITE:
                    self._to_client(line)
                elif not line.sent.opaque or self._from_server(line):
                    self._from_client(line)
            else:
                if events & WRITE:
                    self._to_server(line)
                if events & READ:
                    self._from_server(line)
        except Broken as broken:
            self._end(line, broken.cause)
        except OSError:
            self._end(line)
        else:
            if line in self._lines:
                self._account(line)
                self._take_turns(line)
                self._watch(line)
                self._keep_budget()

    def _from_client(self, line: Line) -> None:
        """What is beyond FRAMES stays in the kernel's buffer."""
        one_body = line.sent.left >= CHUNK_BYTES
        try:
            size = line.client.recv_into(self._buffer, 0, 0 if one_body else socket.MSG_PEEK)
        except BlockingIOError:
            return
        if not size:
            self._end(line)
            return
        data = self._buffer[:size]
        line.heard_at = self._now
        if not self._stop:
            data = data[: line.sent.feed(data, FRAMES)]
        if not one_body:
            line.client.recv_into(data)
        if self._stop:
            return  # the server reads no longer
        line.to_server = _send(line.server, data[:GREETING_BYTES] if line.sent.foreign else data)

    def _from_server(self, line: Line) -> bool:
        """Read what it has. True where nothing is left to read or to pass on: what a peer sends may go to the server.

        Before bytes of a peer with CURVE pass, its older answers must have: they say nothing about these bytes.
        """
        while not line.to_client:
            try:
                size = line.server.recv_into(self._buffer)
            except BlockingIOError:
                return True
            if not size:
                self._end(line)
                return False
            data = self._buffer[:size]
            said = line.said.feed(data)
            line.is_client = line.is_client or (said.number > 0 if line.sent.opaque else WELCOME in bytes(data))
            if said.number:
                line.answered_at = line.owing_since = self._now
            line.sent.answered(said)
            line.to_client = _send(line.client, data)
            if line.to_client:
                line.stuck_since = 0.0  # it was the server that did not read
            if size < CHUNK_BYTES and not line.sent.opaque:
                break
        return not line.to_client

    def _to_client(self, line: Line) -> None:
        left = _send(line.client, line.to_client)
        if len(left) < len(line.to_client):
            line.stuck_since = 0.0
        line.to_client = left

    def _to_server(self, line: Line) -> None:
        line.to_server = _send(line.server, line.to_server)

    def _account(self, line: Line) -> None:
        """What the connection holds, of the total; since when it is stuck."""
        pending = line.sent.pending
        if not line.counted:
            line.owing_since = self._now
        self._total += pending - line.counted
        line.counted = pending
        if pending < LARGE_BYTES:
            line.large_since = 0.0
        elif not line.large_since:
            line.large_since = self._now
        if not (line.to_client or line.sent.full):
            line.stuck_since = 0.0
        elif not line.stuck_since:
            line.stuck_since = self._now

    def _watch(self, line: Line) -> None:
        """Be told of what matters now."""
        for side, wanted in ((line.client, line.wants_client), (line.server, line.wants_server)):
            if wanted == line.events[side]:
                continue
            if not line.events[side]:
                self._selector.register(side, wanted, line)
            elif wanted:
                self._selector.modify(side, wanted, line)
            else:
                self._selector.unregister(side)
            line.events[side] = wanted

    def _take_turns(self, line: Line) -> None:
        """Above `shared_bytes` one connection at a time may hold LARGE_BYTES and more; the others are not read."""
        shared = self._limits.shared_bytes
        crowded = self._total > (shared * 3 // 4 if self._crowded else shared)
        over = not line.large_since if line is self._in_turn else self._in_turn is None and line.large_since > 0.0
        if crowded != self._crowded or (crowded and over):
            self._crowded = crowded
            self._next_turn()
        else:
            self._hold(line)

    def _next_turn(self) -> None:
        """It is the turn of the unfinished large message that began first, or else of the first large one."""
        large = [line for line in self._lines if self._crowded and line.large_since]
        self._in_turn = min(large, key=lambda line: (not line.sent.may_go_on, line.large_since), default=None)
        for line in self._lines:
            self._hold(line)
            self._watch(line)

    def _hold(self, line: Line) -> None:
        """Whether it is read now. The time in which it is not does not count as its own."""
        held = self._crowded and line.large_since > 0.0 and line is not self._in_turn
        if held == bool(line.held_since):
            return
        if not held and line.large_since:
            line.large_since += self._now - line.held_since
        line.held_since = self._now if held else 0.0

    def _end_slow_senders(self) -> None:
        """While others wait: a peer that sends the rest of a large message too slowly, or not at all."""
        limits = self._limits
        for line in [line for line in self._lines if line.is_slow_sender]:
            if line.held_since and _has_more(line.client):
                line.heard_at = self._now
            until = line.held_since or self._now
            if self._now - line.heard_at > limits.patience_sec or until - line.large_since > limits.unanswered_sec:
                self._end(line, "budget")
        turn = self._in_turn
        if turn is not None and turn.sent.opaque and self._now - turn.heard_at > limits.patience_sec:
            turn.large_since = self._now  # perhaps complete, perhaps not: the next one's turn
            self._in_turn = None
        if self._in_turn is None:
            self._next_turn()

    def _keep_budget(self) -> None:
        """Where all together hold too much, the connection goes that has held most for longest."""
        while self._total > self._limits.budget_bytes:
            worst = max(self._lines, key=lambda line: line.counted * (self._now - line.owing_since + 1e-3))
            self._end(worst, "budget")

    def _end(self, line: Line, cause: str = "") -> None:
        """Close both sides. `cause`: we cut it, and why."""
        if line not in self._lines:
            return
        self._lines.discard(line)
        self._total -= line.counted
        if line is self._in_turn:
            self._in_turn = None
        if cause:
            self._cut[cause] += 1
        for side, events in line.events.items():
            if events:
                self._selector.unregister(side)
            side.close()

    def _look(self) -> None:
        """Connections that stand still; whether newcomers may be accepted again."""
        limits, silent = self._limits, self._now - self._limits.silent_sec
        for line in list(self._lines):
            line.sent.tick()
            patience = limits.patience_sec if line.to_client else limits.unanswered_sec
            if 0.0 < line.stuck_since < self._now - patience:
                self._end(line, "unread" if line.to_client else "unanswered")
            elif not line.answered_at and line.accepted_at < silent and not line.sent.awaits_answer:
                self._end(line, "silent")
        if self._crowded:
            self._end_slow_senders()
            if self._total <= limits.shared_bytes * 3 // 4:
                self._crowded = False
                self._next_turn()
        self._accepted = 0
        if self._accept_again_at and self._now >= self._accept_again_at:
            self._accept_again_at = 0.0
            self._await_newcomers(True)
            if self._newcomer is not None and self._listener is not None:
                self._accept()

    def _accept(self) -> None:
        """Accept new connections, ACCEPTS until the next tick; the others wait in the kernel's backlog."""
        assert self._listener is not None
        while self._accepted < ACCEPTS:
            if len(self._lines) >= self._most and not self._make_room():
                self._pause()
                return
            try:
                client = self._newcomer or self._listener.accept()[0]
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _NONE_LEFT:
                    self._pause()
                return  # a newcomer that is gone already
            self._newcomer = None
            if not self._open(client):
                self._newcomer = client
                self._pause()
                return
            self._accepted += 1
        self._await_newcomers(False)
        self._accept_again_at = self._tick_at

    def _open(self, client: socket.socket) -> bool:
        """Open a connection to the server for a new peer. False where none is free now: try again."""
        try:
            server = socket.socket(socket.AF_UNIX)
        except OSError:
            return False
        client.setblocking(False)
        server.setblocking(False)
        try:
            if client.family == socket.AF_UNIX:
                self._check_user(client)
            else:
                _set_up_tcp(client)
            server.connect(self._server)
        except BlockingIOError:  # as many wait at the server as the system allows
            server.close()
            return False
        except (Broken, OSError) as error:
            self._cut[error.cause if isinstance(error, Broken) else "no_server"] += 1
            client.close()
            server.close()
            return True
        line = Line(client, server, self._limits, self._now)
        self._lines.add(line)
        self._watch(line)
        return True

    def _check_user(self, client: socket.socket) -> None:
        """An abstract name has no permissions of its own. Raises Broken."""
        if self._limits.owner_only and sys.platform == "linux":
            _, user, _ = struct.unpack("iII", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            if user not in (os.getuid(), 0):
                raise Broken("other_user")

    def _make_room(self) -> bool:
        """End the oldest connection without a client, or else the client's that was answered least recently."""
        since = self._now - self._limits.silent_sec
        unused = [line for line in self._lines if line.last_use <= since]
        if not unused:
            return False
        oldest = min(unused, key=lambda line: (line.is_client, line.last_use))
        self._end(oldest, "idle")
        return True

    def _pause(self) -> None:
        """Accept no connection for a moment; they wait in the kernel's backlog."""
        self._not_accepted += 1
        self._await_newcomers(False)
        self._accept_again_at = self._now + REPORT_SEC

    def _await_newcomers(self, wanted: bool) -> None:
        if self._listener is None or wanted == self._accepts:
            return
        self._accepts = wanted
        if wanted:
            self._selector.register(self._listener, READ)
        else:
            self._selector.unregister(self._listener)

    def _listen(self, listener: socket.socket | None) -> None:
        """From now on at `listener`, and no longer at the one before."""
        self._await_newcomers(False)
        if self._listener is not None:
            self._listener.close()
        self._listener = listener
        self._await_newcomers(True)

    def _hear(self) -> None:
        """A listening socket, or the end."""
        try:
            data, files, _, _ = socket.recv_fds(self._control, 1, 1)
        except BlockingIOError:
            return
        except OSError:
            data, files = b"", []
        if not data:
            self._stop = True
            self._selector.unregister(self._control)
        for file in files:
            listener = socket.socket(fileno=file)
            listener.setblocking(False)
            self._listen(listener)

    def _report(self) -> None:
        """Send a line of JSON to the server when figures change, and at least now and then."""
        if self._stop or self._now < self._report_at:
            return
        self._report_at = self._now + REPORT_SEC
        figures = {"cut": self._cut, "not_accepted": self._not_accepted, "connections": len(self._lines),
                   "unanswered_bytes": self._total}  # fmt: skip
        line = json.dumps(figures).encode() + b"\n"
        if line == self._said and self._now < self._alive_at:
            return
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
            if self._control.send(line) == len(line):
                self._said, self._alive_at = line, self._now + ALIVE_SEC


def _send(side: socket.socket, data: bytes | memoryview) -> bytes:
    """What of `data` was not taken. Raises OSError."""
    try:
        return bytes(data[side.send(data) :])
    except BlockingIOError:
        return bytes(data)


def _has_more(client: socket.socket) -> bool:
    """Whether bytes of a peer wait in the kernel's buffer."""
    try:
        return bool(client.recv(1, socket.MSG_PEEK))
    except OSError:
        return False


def _set_up_tcp(client: socket.socket) -> None:
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _keepalive():
        client.setsockopt(socket.IPPROTO_TCP, name, value)


def _keepalive() -> Iterator[tuple[int, int]]:
    for name, value in _KEEPALIVE.items():
        if hasattr(socket, name):
            yield getattr(socket, name), value


def _descriptors() -> int:
    import resource  # not there on Windows, where there is no proxy

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft
