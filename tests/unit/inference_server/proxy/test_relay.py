"""The proxy's loop, turn by turn, in front of a server that never answers."""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from simul.inference_server.proxy.framing import Limits
from simul.inference_server.proxy.relay import ACCEPTS, FRAMES, Relay
from tests.support.hostile import GREETING, READY, frame
from tests.support.waiting import PATIENCE_SEC

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the proxy needs Unix sockets")
NEVER = float("inf")


class Stage:
    """A relay between `peer`s and `server`."""

    def __init__(self, folder: Path, own: contextlib.ExitStack, limits: Limits | None = None) -> None:
        self._own = own
        self.server = self._listen(folder / "server", backlog=0)
        self._public = self._listen(folder / "public", backlog=100)
        control, theirs = (own.enter_context(side) for side in socket.socketpair())
        self.relay = Relay(theirs, str(folder / "server"), limits or Limits())
        socket.send_fds(control, [b"L"], [self._public.fileno()])
        while self.relay._listener is None:
            self.relay._turn()

    def _listen(self, path: Path, backlog: int) -> socket.socket:
        one = self._own.enter_context(socket.socket(socket.AF_UNIX))
        one.bind(str(path))
        one.listen(backlog)
        one.settimeout(PATIENCE_SEC)
        return one

    def peer(self, said: bytes = b"") -> socket.socket:
        """A connection that has said something."""
        one = self._own.enter_context(socket.socket(socket.AF_UNIX))
        one.connect(self._public.getsockname())
        one.sendall(said)
        return one

    def accept(self) -> socket.socket:
        """The next connection of the relay's to the server."""
        return self._own.enter_context(self.server.accept()[0])

    def look_after(self, seconds: float) -> None:
        """So much later."""
        self.relay._now += seconds
        self.relay._check_timeouts()

    def close(self) -> None:
        for connection in list(self.relay._connections):
            self.relay._close_connection(connection)
        self.relay._listen(None)
        self.relay._selector.close()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with contextlib.ExitStack() as own:
        one = Stage(tmp_path, own)
        yield one
        one.close()


def test_who_waits_for_an_answer_is_not_silent_and_is_cut_late(stage: Stage) -> None:
    """A server that stands still is not the fault of its clients."""
    stage.peer(GREETING + READY + frame(b"hello"))
    while not any(connection.from_client.awaits_answer for connection in stage.relay._connections):
        stage.relay._turn()
    stage.peer(GREETING + READY)
    stage.accept()  # the kernel's queue has place again
    while len(stage.relay._connections) < 2:
        stage.relay._turn()
    (waits,) = (connection for connection in stage.relay._connections if connection.from_client.awaits_answer)
    stage.look_after(11.0)
    assert stage.relay._connections == {waits}
    assert stage.relay._cut == {"silent": 1}
    waits.stuck_since = stage.relay._now
    stage.look_after(29.0)
    assert stage.relay._connections == {waits}
    stage.look_after(2.0)
    assert stage.relay._cut == {"silent": 1, "unanswered": 1}


def test_newcomers_are_accepted_at_a_pace_and_wait_while_the_server_accepts_none(stage: Stage) -> None:
    stage.server.listen(100)
    for _ in range(2 * ACCEPTS):
        stage.peer()
    stage.relay._tick_at = NEVER
    while stage.relay._accepts:
        stage.relay._turn()
    assert len(stage.relay._connections) == ACCEPTS
    stage.relay._tick_at, stage.relay._accept_again_at = 0.0, stage.relay._now
    while len(stage.relay._connections) < 2 * ACCEPTS:
        stage.relay._turn()
    assert not stage.relay._cut


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system refuses such a connection")
def test_newcomers_wait_while_the_servers_queue_is_full(stage: Stage) -> None:
    for _ in range(5):
        stage.peer()
    while stage.relay._accepted_socket is None:
        stage.relay._turn()
    assert len(stage.relay._connections) < 5
    while len(stage.relay._connections) < 5:
        before = len(stage.relay._connections)
        stage.accept()
        while len(stage.relay._connections) == before:
            stage.relay._turn()
    assert not stage.relay._cut
    assert stage.relay._not_accepted


def test_one_turn_takes_no_more_frames_of_a_peer_than_it_should(stage: Stage) -> None:
    stage.peer(GREETING + READY + b"\x00\x00" * 1000)
    while not stage.relay._connections:
        stage.relay._turn()
    (connection,) = stage.relay._connections
    seen = [0]
    while seen[-1] < 1000:
        stage.relay._turn()
        seen.append(connection.from_client.frames)
    assert max(after - before for before, after in pairwise(seen)) <= FRAMES
    server, passed = stage.accept(), b""
    while len(passed) < len(GREETING + READY) + 2000:
        passed += server.recv(65536)
    assert passed == GREETING + READY + b"\x00\x00" * 1000


def test_who_never_became_a_client_makes_room_first_however_often_it_was_refused(stage: Stage) -> None:
    stage.server.listen(100)
    hello = GREETING + READY + frame(b"hello")
    connections = []
    for answer in (b"\x82\xa4type\xa7WELCOME", b"\x82\xa4type\xa5ERROR"):
        stage.peer(hello)
        while len(stage.relay._connections) == len(connections):
            stage.relay._turn()
        (connection,) = stage.relay._connections.difference(connections)
        connections.append(connection)
        while not connection.from_client.awaits_answer:
            stage.relay._turn()
        stage.accept().sendall(GREETING + READY + frame(answer))
        while connection.from_client.awaits_answer:
            stage.relay._turn()
    client, refused = connections
    assert (client.is_client, refused.is_client) == (True, False)
    refused.answered_at = client.answered_at + 10.5
    stage.relay._now = client.answered_at + 11.0
    assert stage.relay._evict_oldest()
    assert stage.relay._connections == {client}


def test_large_messages_are_read_one_after_another_and_who_stops_within_one_is_cut(tmp_path: Path) -> None:
    with contextlib.ExitStack() as own:
        stage = Stage(tmp_path, own, Limits(shared_bytes=100_000, silent_sec=1000.0))
        stage.server.listen(100)
        head = GREETING + READY + b"\x02" + (1 << 20).to_bytes(8, "big")
        for _ in range(3):
            stage.peer(head + bytes(60_000))
        while sum(connection.counted_bytes > 60_000 for connection in stage.relay._connections) < 3:
            stage.relay._turn()
        turn = stage.relay._in_turn
        stage.relay._tick_at = NEVER
        others = [connection for connection in stage.relay._connections if connection is not turn]
        assert all(connection.held_since for connection in others)
        waits = others[0]
        waits.heard_at = stage.relay._now + 5.0
        stage.look_after(5.5)  # `turn` and the third one sent nothing of the rest
        assert stage.relay._cut == {"budget": 2}
        assert stage.relay._connections == {waits}
        assert not waits.held_since
        stage.close()


def test_who_sends_a_large_message_too_slowly_is_cut_while_others_wait_and_only_then(tmp_path: Path) -> None:
    with contextlib.ExitStack() as own:
        stage = Stage(tmp_path, own, Limits(shared_bytes=100_000, silent_sec=1000.0))
        stage.server.listen(100)
        head = GREETING + READY + b"\x02" + (1 << 20).to_bytes(8, "big")
        stage.peer(head + bytes(60_000))
        while not any(connection.large_since for connection in stage.relay._connections):
            stage.relay._turn()
        (slow,) = stage.relay._connections
        slow.heard_at += 100.0
        stage.look_after(31.0)
        assert not stage.relay._cut
        stage.peer(head + bytes(60_000))
        while not stage.relay._crowded:
            stage.relay._turn()
        stage.look_after(31.0)
        assert slow not in stage.relay._connections
        stage.close()
