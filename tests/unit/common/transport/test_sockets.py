"""Sockets never block, and say who is gone."""

import os
import socket
import time

import psutil

from simul.common.transport import DealerSocket, Poller, PullSocket, PushSocket, RouterSocket
from simul.env_worker.games.pokemon.showdown.local_server import free_port
from tests.support.sockets import receive
from tests.support.waiting import wait_for


def test_a_router_answers_its_dealers(endpoint):
    with RouterSocket(endpoint) as router, DealerSocket(endpoint) as one, DealerSocket(endpoint) as two:
        assert router.receive() is None
        assert one.send([b"from one", b""])
        assert two.send([b"from two"])
        peers = {}
        for _ in range(2):
            peer, frames = receive(router)
            peers[frames[0]] = peer
            assert len(frames) == (2 if frames[0] == b"from one" else 1)
        assert router.send(peers[b"from two"], [b"to two", memoryview(b"raw")])
        assert receive(two) == [b"to two", b"raw"]
        assert one.receive() is None


def test_a_peer_whose_machine_vanished_is_noticed_by_tcp():
    port = free_port()
    with RouterSocket(f"tcp://127.0.0.1:{port}") as router, DealerSocket(f"tcp://127.0.0.1:{port}") as dealer:
        dealer.send([b"x"])
        receive(router)
        (end,) = (
            one.fd
            for one in psutil.Process().net_connections("tcp4")
            if one.raddr and one.laddr.port == port and one.status == psutil.CONN_ESTABLISHED
        )
        with socket.socket(fileno=os.dup(end)) as accepted:
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


def test_a_peer_that_left_is_false(endpoint):
    with RouterSocket(endpoint) as router:
        with DealerSocket(endpoint) as dealer:
            dealer.send([b"x"])
            peer, _ = receive(router)
        wait_for(lambda: not router.send(peer, [b"y"]))
        assert router.send(b"unknown", [b"x"]) is False


def test_a_peer_that_does_not_read_is_false_and_the_others_are_served(endpoint):
    with (
        RouterSocket(endpoint, queue=5) as router,
        DealerSocket(endpoint, queue=5) as deaf,
        DealerSocket(endpoint) as other,
    ):
        deaf.send([b"deaf"])
        lazy, _ = receive(router)
        other.send([b"other"])
        keen, _ = receive(router)
        big = bytes(1_000_000)
        assert any(not router.send(lazy, [big]) for _ in range(200))
        assert router.send(keen, [b"y"])
        assert receive(other) == [b"y"]


def test_a_dealer_without_a_server_fills_up_and_does_not_block(endpoint):
    with DealerSocket(endpoint, queue=5) as dealer:
        sent = [dealer.send([b"x"]) for _ in range(10)]
        assert sent == [True] * 5 + [False] * 5


def test_push_and_pull(endpoint):
    with PullSocket(endpoint) as pull, PushSocket(endpoint) as push:
        assert push.send([b"a", b"b"])
        assert receive(pull) == [b"a", b"b"]


def test_the_poller_waits_for_sockets_and_files(endpoint):
    with RouterSocket(endpoint) as router, DealerSocket(endpoint) as dealer:
        poller = Poller([router])
        began = time.monotonic()
        assert not poller.wait(0.03)
        assert time.monotonic() - began >= 0.025
        dealer.send([b"x"])
        assert poller.wait(60.0)
        receive(router)
        reading, writing = os.pipe()
        poller.set_files([reading])
        assert not poller.wait(0.0)
        os.write(writing, b"x")
        assert poller.wait(60.0)
        poller.set_files([])
        assert not poller.wait(0.0)
        os.close(reading)
        os.close(writing)


def test_a_brief_wait_is_short_and_ends_with_what_comes(endpoint):
    with RouterSocket(endpoint) as router, DealerSocket(endpoint) as dealer:
        poller = Poller([router])
        begin = time.monotonic()
        assert not poller.wait_briefly(0.0005)
        assert 0.0005 <= time.monotonic() - begin < 10
        assert dealer.send([b"x"])
        assert poller.wait_briefly(120.0)
        assert time.monotonic() - begin < 60
