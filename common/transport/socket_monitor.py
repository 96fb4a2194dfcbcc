"""Connection events of libzmq: the state of one connection, and counts of a server's connections.

`simul connect` explains with them why a server does not answer; the server counts failed handshakes.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from typing import Literal

import zmq
from zmq.utils.monitor import parse_monitor_message

ConnectionState = Literal["connected", "not_allowed", "other_mechanism", "hung_up", "mute", "no_listener"]
# Most informative first: a refused peer reconnects repeatedly, and not every attempt reports its reason.
_SIGNS: tuple[tuple[zmq.Event, ConnectionState], ...] = (
    (zmq.Event.HANDSHAKE_SUCCEEDED, "connected"),
    (zmq.Event.HANDSHAKE_FAILED_AUTH, "not_allowed"),
    (zmq.Event.HANDSHAKE_FAILED_PROTOCOL, "other_mechanism"),
    (zmq.Event.HANDSHAKE_FAILED_NO_DETAIL, "hung_up"),
    (zmq.Event.CONNECTED, "mute"),
)


class ConnectionMonitor:
    """Records the events of one socket. Create it before the socket connects, else it misses the first ones."""

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._watched = socket
        self._events = _event_queue(socket, sum(sign for sign, _ in _SIGNS))
        self._seen: Counter[int] = Counter()

    def state(self) -> ConnectionState:
        """The most informative state seen so far.

        `connected`: the ZeroMQ handshake succeeded; `not_allowed`: the server does not list this client's key;
        `other_mechanism`: only one side has CURVE keys; `hung_up`: the other side closed during the handshake (a wrong
        key, or keys on one side only); `mute`: the listener does not speak ZeroMQ; `no_listener`: none is there.
        """
        self._read()
        return next((state for sign, state in _SIGNS if sign in self._seen), "no_listener")

    def reconnections(self) -> int:
        """How often libzmq has connected again so far. To a router each connection is another peer."""
        self._read()
        return max(self._seen[zmq.Event.HANDSHAKE_SUCCEEDED] - 1, 0)

    def _read(self) -> None:
        while self._events.poll(0):
            self._seen[parse_monitor_message(self._events.recv_multipart())["event"]] += 1

    def close(self) -> None:
        """Stop recording, before the socket is closed."""
        self._watched.disable_monitor()
        self._events.close()


def explain_silence(fate: ConnectionState, *, with_keys: bool) -> str:
    """Why there was no answer and what to do, as far as the connection tells. `with_keys`: of the client."""
    if fate == "no_listener":
        return "nothing listens there. Fix: start a run with `simul up`, or name its endpoint (server.endpoint)."
    if fate == "not_allowed":
        return "the server does not know this key. Fix: put the public key (client.key) into the server's DIR/allowed/."
    if fate == "mute":
        return "something listens there that does not speak ZeroMQ. Fix: check the port."
    if fate == "connected":
        return (
            "connected, but HELLO got no answer. Fix: check that it is Simul's data endpoint, and that the server "
            "is not stuck (`simul status`)."
        )
    if not with_keys:
        return (
            "the server hung up: it wants CURVE keys. Fix: name the folder of your keys with --keys DIR "
            "(in Python: keys=client_keys(Path(DIR)))."
        )
    if fate == "other_mechanism":
        return "the server has no CURVE keys. Fix: leave --keys out, or set server.curve_keys there."
    return "the server hung up: server.key is not its key. Fix: copy server.key over from its folder again."


_COUNTED: dict[int, str] = {
    zmq.Event.HANDSHAKE_SUCCEEDED: "opened",
    zmq.Event.HANDSHAKE_FAILED_AUTH: "failed",
    zmq.Event.HANDSHAKE_FAILED_PROTOCOL: "failed",
    zmq.Event.HANDSHAKE_FAILED_NO_DETAIL: "failed",
    zmq.Event.DISCONNECTED: "closed",
}
_DRAIN_SEC = 0.002


class ConnectionCounter:
    """Counts the connections to a bound socket.

    `opened`: the ZeroMQ handshake succeeded; `failed`: it failed or timed out; `closed`: the connection ended,
    opened or not.

    The event queue is unbounded, so it receives only events that cost a peer a connection each. ACCEPT_FAILED is
    excluded: without file descriptors libzmq retries one connection in a tight loop. The proxy accepts 500 connections
    a second with two events each; `drain`, called every 50 ms, reads more than these 50, so the queue stays empty.
    """

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._watched = socket
        self._events = _event_queue(socket, sum(_COUNTED))

    def drain(self) -> Counter[str]:
        """Counts since the last call; a flood is read in parts of at most _DRAIN_SEC."""
        news: Counter[str] = Counter()
        enough = time.perf_counter() + _DRAIN_SEC
        while time.perf_counter() < enough and self._events.poll(0):
            news[_COUNTED[parse_monitor_message(self._events.recv_multipart())["event"]]] += 1
        return news

    def close(self) -> None:
        """Stop counting, before the socket is closed."""
        self._watched.disable_monitor()
        self._events.close()


def _event_queue(socket: zmq.Socket[bytes], events: int) -> zmq.Socket[bytes]:
    """The socket that receives `events` of another one. Unbounded, since a full queue would block the I/O thread."""
    queue = socket.context.socket(zmq.PAIR)
    queue.setsockopt(zmq.RCVHWM, 0)
    address = f"inproc://events-{os.urandom(8).hex()}"  # libzmq frees the name of a closed one with a delay
    socket.monitor(address, events)
    queue.connect(address)
    return queue
