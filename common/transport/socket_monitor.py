"""What becomes of connections, as libzmq sees it.

For telling a client's author why nobody answers, and for counting who never became a client.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Literal

import zmq
from zmq.utils.monitor import parse_monitor_message

ConnectionState = Literal["connected", "not_allowed", "other_mechanism", "hung_up", "mute", "nobody"]
# What says most comes first. A refused peer tries again and again, and not every attempt says why it failed.
_SIGNS: tuple[tuple[zmq.Event, ConnectionState], ...] = (
    (zmq.Event.HANDSHAKE_SUCCEEDED, "connected"),
    (zmq.Event.HANDSHAKE_FAILED_AUTH, "not_allowed"),
    (zmq.Event.HANDSHAKE_FAILED_PROTOCOL, "other_mechanism"),
    (zmq.Event.HANDSHAKE_FAILED_NO_DETAIL, "hung_up"),
    (zmq.Event.CONNECTED, "mute"),
)


class ConnectionMonitor:
    """Watches one socket; made before the socket connects, else it misses what happens first."""

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._watched = socket
        self._events = socket.get_monitor_socket()
        self._seen: set[int] = set()

    def state(self) -> ConnectionState:
        """What is known by now.

        `connected`: the handshake of ZeroMQ succeeded; `not_allowed`: the server does not list our key;
        `other_mechanism`: only one side has CURVE keys; `hung_up`: the other side closed in the midst of the
        handshake (a wrong key, or keys on one side only); `mute`: something listens that does not speak ZeroMQ;
        `nobody` listens.
        """
        while self._events.poll(0):
            self._seen.add(parse_monitor_message(self._events.recv_multipart())["event"])
        return next((state for sign, state in _SIGNS if sign in self._seen), "nobody")

    def close(self) -> None:
        """Stop watching; before the socket is closed."""
        self._watched.disable_monitor()
        self._events.close()


_COUNTED: dict[int, str] = {
    zmq.Event.HANDSHAKE_SUCCEEDED: "opened",
    zmq.Event.HANDSHAKE_FAILED_AUTH: "failed",
    zmq.Event.HANDSHAKE_FAILED_PROTOCOL: "failed",
    zmq.Event.HANDSHAKE_FAILED_NO_DETAIL: "failed",
    zmq.Event.DISCONNECTED: "closed",
}
_DRAIN_SEC = 0.002


class ConnectionCounter:
    """Counts what became of the connections to a bound socket.

    `opened`: the handshake of ZeroMQ succeeded; `failed`: it did not, or not in time; `closed`: opened or not, it is
    over.

    The queue of events has no bound, since a full one would block the thread that serves every connection. So it takes
    only events that cost a peer a connection each. ACCEPT_FAILED costs nothing: without file descriptors libzmq tries
    the same connection again in an endless loop, faster than anything could count. The proxy accepts 500 connections a
    second, with two events each; `drain` at every 50 ms reads more than these 50, so that the queue stays empty.
    """

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._watched = socket
        self._events = socket.context.socket(zmq.PAIR)
        self._events.setsockopt(zmq.RCVHWM, 0)
        address = f"inproc://connections-{id(socket)}"
        socket.monitor(address, sum(_COUNTED))
        self._events.connect(address)

    def drain(self) -> Counter[str]:
        """What happened since the last call, or the first part of it: a flood shall not keep the caller."""
        news: Counter[str] = Counter()
        enough = time.perf_counter() + _DRAIN_SEC
        while time.perf_counter() < enough and self._events.poll(0):
            news[_COUNTED[parse_monitor_message(self._events.recv_multipart())["event"]]] += 1
        return news

    def close(self) -> None:
        """Stop counting; before the socket is closed."""
        self._watched.disable_monitor()
        self._events.close()
