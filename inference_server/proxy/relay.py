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
    FromClient,
    FromServer,
    LimitExceeded,
    Limits,
)

CHUNK_BYTES = 64 * 1024
FRAMES = 256  # of one connection in one turn: a chunk holds 32,768 empty ones, which take 10 ms and more
TURN_SEC = 0.05  # at least so often while there are connections
REPORT_SEC = 0.1
KEEPALIVE_REPORT_SEC = 1.0  # a report also where there is nothing new
ACCEPTS = 25  # from one tick to the next: at most 500 a second
DRAIN_SEC = 1.0  # for the server's last answers
OWN_DESCRIPTORS = 32
READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
_NONE_LEFT = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_KEEPALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPALIVE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}


class Connection:
    """A peer's connection, and the one to the server that carries its bytes."""

    def __init__(self, client: socket.socket, server: socket.socket, limits: Limits, now: float) -> None:
        self.client, self.server = client, server
        self.from_client, self.from_server = FromClient(limits), FromServer()
        self.to_server = self.to_client = b""  # what the other side did not take at once
        self.accepted_at = now
        self.is_client = False  # the server has welcomed it
        self.answered_at = 0.0
        self.counted_bytes = 0  # of the relay's total
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
    def client_events(self) -> int:
        """Events of the peer that matter now."""
        waits = (
            self.to_server or self.to_client or self.from_client.full or self.from_client.not_zmtp or self.held_since
        )
        return READ * (not waits) | WRITE * bool(self.to_client)

    @property
    def is_slow_sender(self) -> bool:
        """A large message has begun whose rest has not come."""
        return self.large_since > 0.0 and self.from_client.is_unfinished

    @property
    def server_events(self) -> int:
        """Events of the server that matter now."""
        return READ * (not self.to_client) | WRITE * bool(self.to_server)


class Relay:
    """`control`: to the parent process, which sends listening sockets and gets figures; the relay ends with it."""

    def __init__(self, control: socket.socket, server: str, limits: Limits) -> None:
        self._control = control
        self._server = server
        self._limits = limits
        self._max_connections = max(1, min(limits.connections, (_descriptors() - OWN_DESCRIPTORS) // 2))
        self._selector = selectors.DefaultSelector()
        self._listener: socket.socket | None = None
        self._accepts = False
        self._accept_again_at = 0.0
        self._accepted = 0  # since the last tick
        self._accepted_socket: socket.socket | None = None  # accepted, and without a connection to the server yet
        self._connections: set[Connection] = set()
        self._total = 0
        self._crowded = False  # all together hold so much that large messages are read in turns
        self._in_turn: Connection | None = None
        self._buffer = memoryview(bytearray(CHUNK_BYTES))
        self._cut: Counter[str] = Counter()
        self._not_accepted = 0
        self._now = time.monotonic()
        self._tick_at = self._report_at = self._alive_at = 0.0
        self._last_report = b""
        self._stop = False
        control.setblocking(False)
        self._selector.register(control, READ)

    def run(self) -> None:
        """Until the control socket is closed at its other end."""
        while not self._stop:
            self._turn()
        self._listen(None)
        deadline = self._now + DRAIN_SEC
        while self._connections and self._now < deadline:
            self._turn()

    def _turn(self) -> None:
        ready = self._selector.select(TURN_SEC if self._connections or self._accept_again_at else KEEPALIVE_REPORT_SEC)
        self._now = time.monotonic()
        for key, events in ready:
            if key.data is not None:
                self._serve(key.data, key.fileobj, events)
            elif key.fileobj is self._control:
                self._read_control()
            else:
                self._accept()
        if self._now >= self._tick_at:
            self._tick_at = self._now + TURN_SEC
            self._check_timeouts()
        self._report()

    def _serve(self, connection: Connection, side: object, events: int) -> None:
        """Something is ready on one side of a connection."""
        if connection not in self._connections:
            return  # closed in this turn
        try:
            if side is connection.client:
                if events & WRITE:
                    self._write_client(connection)
                elif not connection.from_client.encrypted or self._read_server(connection):
                    self._read_client(connection)
            else:
                if events & WRITE:
                    self._write_server(connection)
                if events & READ:
                    self._read_server(connection)
        except LimitExceeded as exceeded:
            self._close_connection(connection, exceeded.cause)
        except OSError:
            self._close_connection(connection)
        else:
            if connection in self._connections:
                self._update_total(connection)
                self._take_turns(connection)
                self._update_events(connection)
                self._keep_budget()

    def _read_client(self, connection: Connection) -> None:
        """What is beyond FRAMES stays in the kernel's buffer."""
        one_body = connection.from_client.left >= CHUNK_BYTES
        try:
            size = connection.client.recv_into(self._buffer, 0, 0 if one_body else socket.MSG_PEEK)
        except BlockingIOError:
            return
        if not size:
            self._close_connection(connection)
            return
        data = self._buffer[:size]
        connection.heard_at = self._now
        if not self._stop:
            data = data[: connection.from_client.feed(data, FRAMES)]
        if not one_body:
            connection.client.recv_into(data)
        if self._stop:
            return  # the server reads no longer
        connection.to_server = _send(
            connection.server, data[:GREETING_BYTES] if connection.from_client.not_zmtp else data
        )

    def _read_server(self, connection: Connection) -> bool:
        """Read what it has. True where nothing is left to read or to pass on: what a peer sends may go to the server.

        Before bytes of a peer with CURVE pass, its older answers must have: they say nothing about these bytes.
        """
        while not connection.to_client:
            try:
                size = connection.server.recv_into(self._buffer)
            except BlockingIOError:
                return True
            if not size:
                self._close_connection(connection)
                return False
            data = self._buffer[:size]
            answers = connection.from_server.feed(data)
            connection.is_client = connection.is_client or (
                answers.number > 0 if connection.from_client.encrypted else WELCOME in bytes(data)
            )
            if answers.number:
                connection.answered_at = connection.owing_since = self._now
            connection.from_client.answered(answers)
            connection.to_client = _send(connection.client, data)
            if connection.to_client:
                connection.stuck_since = 0.0  # it was the server that did not read
            if size < CHUNK_BYTES and not connection.from_client.encrypted:
                break
        return not connection.to_client

    def _write_client(self, connection: Connection) -> None:
        left = _send(connection.client, connection.to_client)
        if len(left) < len(connection.to_client):
            connection.stuck_since = 0.0
        connection.to_client = left

    def _write_server(self, connection: Connection) -> None:
        connection.to_server = _send(connection.server, connection.to_server)

    def _update_total(self, connection: Connection) -> None:
        """What the connection holds, of the total; since when it is stuck."""
        pending = connection.from_client.pending
        if not connection.counted_bytes:
            connection.owing_since = self._now
        self._total += pending - connection.counted_bytes
        connection.counted_bytes = pending
        if pending < LARGE_BYTES:
            connection.large_since = 0.0
        elif not connection.large_since:
            connection.large_since = self._now
        if not (connection.to_client or connection.from_client.full):
            connection.stuck_since = 0.0
        elif not connection.stuck_since:
            connection.stuck_since = self._now

    def _update_events(self, connection: Connection) -> None:
        """Select the events that matter now."""
        for side, wanted in (
            (connection.client, connection.client_events),
            (connection.server, connection.server_events),
        ):
            if wanted == connection.events[side]:
                continue
            if not connection.events[side]:
                self._selector.register(side, wanted, connection)
            elif wanted:
                self._selector.modify(side, wanted, connection)
            else:
                self._selector.unregister(side)
            connection.events[side] = wanted

    def _take_turns(self, connection: Connection) -> None:
        """Above `shared_bytes` one connection at a time may hold LARGE_BYTES and more; the others are not read."""
        shared = self._limits.shared_bytes
        crowded = self._total > (shared * 3 // 4 if self._crowded else shared)
        over = (
            not connection.large_since
            if connection is self._in_turn
            else self._in_turn is None and connection.large_since > 0.0
        )
        if crowded != self._crowded or (crowded and over):
            self._crowded = crowded
            self._next_turn()
        else:
            self._hold(connection)

    def _next_turn(self) -> None:
        """It is the turn of the unfinished large message that began first, or else of the first large one."""
        large = [connection for connection in self._connections if self._crowded and connection.large_since]
        self._in_turn = min(
            large,
            key=lambda connection: (not connection.from_client.may_continue, connection.large_since),
            default=None,
        )
        for connection in self._connections:
            self._hold(connection)
            self._update_events(connection)

    def _hold(self, connection: Connection) -> None:
        """Whether it is read now. The time in which it is not does not count as its own."""
        held = self._crowded and connection.large_since > 0.0 and connection is not self._in_turn
        if held == bool(connection.held_since):
            return
        if not held and connection.large_since:
            connection.large_since += self._now - connection.held_since
        connection.held_since = self._now if held else 0.0

    def _close_slow_senders(self) -> None:
        """While others wait: a peer that sends the rest of a large message too slowly, or not at all."""
        limits = self._limits
        for connection in [connection for connection in self._connections if connection.is_slow_sender]:
            if connection.held_since and _has_more(connection.client):
                connection.heard_at = self._now
            until = connection.held_since or self._now
            if (
                self._now - connection.heard_at > limits.patience_sec
                or until - connection.large_since > limits.unanswered_sec
            ):
                self._close_connection(connection, "budget")
        turn = self._in_turn
        if turn is not None and turn.from_client.encrypted and self._now - turn.heard_at > limits.patience_sec:
            turn.large_since = self._now  # perhaps complete, perhaps not: the next one's turn
            self._in_turn = None
        if self._in_turn is None:
            self._next_turn()

    def _keep_budget(self) -> None:
        """Where all together hold too much, the connection goes that has held most for longest."""
        while self._total > self._limits.budget_bytes:
            worst = max(
                self._connections,
                key=lambda connection: connection.counted_bytes * (self._now - connection.owing_since + 1e-3),
            )
            self._close_connection(worst, "budget")

    def _close_connection(self, connection: Connection, cause: str = "") -> None:
        """Close both sides. `cause`: we cut it, and why."""
        if connection not in self._connections:
            return
        self._connections.discard(connection)
        self._total -= connection.counted_bytes
        if connection is self._in_turn:
            self._in_turn = None
        if cause:
            self._cut[cause] += 1
        for side, events in connection.events.items():
            if events:
                self._selector.unregister(side)
            side.close()

    def _check_timeouts(self) -> None:
        """Connections that stand still; whether new ones may be accepted again."""
        limits, silent = self._limits, self._now - self._limits.silent_sec
        for connection in list(self._connections):
            connection.from_client.tick()
            patience = limits.patience_sec if connection.to_client else limits.unanswered_sec
            if 0.0 < connection.stuck_since < self._now - patience:
                self._close_connection(connection, "unread" if connection.to_client else "unanswered")
            elif (
                not connection.answered_at
                and connection.accepted_at < silent
                and not connection.from_client.awaits_answer
            ):
                self._close_connection(connection, "silent")
        if self._crowded:
            self._close_slow_senders()
            if self._total <= limits.shared_bytes * 3 // 4:
                self._crowded = False
                self._next_turn()
        self._accepted = 0
        if self._accept_again_at and self._now >= self._accept_again_at:
            self._accept_again_at = 0.0
            self._poll_listener(True)
            if self._accepted_socket is not None and self._listener is not None:
                self._accept()

    def _accept(self) -> None:
        """Accept new connections, ACCEPTS until the next tick; the others wait in the kernel's backlog."""
        assert self._listener is not None
        while self._accepted < ACCEPTS:
            if len(self._connections) >= self._max_connections and not self._evict_oldest():
                self._pause()
                return
            try:
                client = self._accepted_socket or self._listener.accept()[0]
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _NONE_LEFT:
                    self._pause()
                return  # a new connection that is gone already
            self._accepted_socket = None
            if not self._open(client):
                self._accepted_socket = client
                self._pause()
                return
            self._accepted += 1
        self._poll_listener(False)
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
        except (LimitExceeded, OSError) as error:
            self._cut[error.cause if isinstance(error, LimitExceeded) else "no_server"] += 1
            client.close()
            server.close()
            return True
        connection = Connection(client, server, self._limits, self._now)
        self._connections.add(connection)
        self._update_events(connection)
        return True

    def _check_user(self, client: socket.socket) -> None:
        """An abstract name has no permissions of its own. Raises LimitExceeded."""
        if self._limits.owner_only and sys.platform == "linux":
            _, user, _ = struct.unpack("iII", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            if user not in (os.getuid(), 0):
                raise LimitExceeded("other_user")

    def _evict_oldest(self) -> bool:
        """End the oldest connection without a client, or else the client's that was answered least recently."""
        since = self._now - self._limits.silent_sec
        idle = [connection for connection in self._connections if connection.last_use <= since]
        if not idle:
            return False
        oldest = min(idle, key=lambda connection: (connection.is_client, connection.last_use))
        self._close_connection(oldest, "idle")
        return True

    def _pause(self) -> None:
        """Accept no connection for a moment; they wait in the kernel's backlog."""
        self._not_accepted += 1
        self._poll_listener(False)
        self._accept_again_at = self._now + REPORT_SEC

    def _poll_listener(self, wanted: bool) -> None:
        if self._listener is None or wanted == self._accepts:
            return
        self._accepts = wanted
        if wanted:
            self._selector.register(self._listener, READ)
        else:
            self._selector.unregister(self._listener)

    def _listen(self, listener: socket.socket | None) -> None:
        """From now on at `listener`, and no longer at the one before."""
        self._poll_listener(False)
        if self._listener is not None:
            self._listener.close()
        self._listener = listener
        self._poll_listener(True)

    def _read_control(self) -> None:
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
        figures = {"cut": self._cut, "not_accepted": self._not_accepted, "connections": len(self._connections),
                   "unanswered_bytes": self._total}  # fmt: skip
        report = json.dumps(figures).encode() + b"\n"
        if report == self._last_report and self._now < self._alive_at:
            return
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
            if self._control.send(report) == len(report):
                self._last_report, self._alive_at = report, self._now + KEEPALIVE_REPORT_SEC


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
