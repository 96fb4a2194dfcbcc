"""How credit is divided among servers, and how much there is of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from simul.learner.io.credits import CreditAllocator


def test_two_batches_are_granted_and_no_more():
    allocator = CreditAllocator(capacity_steps=1000, unroll_length=10)
    allocator.add_server(b"a")
    assert allocator.grant_credits(0) == {b"a": 100}
    assert allocator.grant_credits(0) == {b"a": 100}, "what is granted is counted as on its way"
    for _ in range(40):
        allocator.count_received(b"a", 10)
    assert allocator.grant_credits(400) == {b"a": 100}
    assert allocator.grant_credits(0) == {b"a": 140}, "taken by the learner: room again"


def test_a_lost_server_frees_its_grant_and_a_new_hello_starts_at_0():
    allocator = CreditAllocator(1000, 10)
    allocator.add_server(b"a")
    allocator.grant_credits(0)
    allocator.remove_server(b"a")
    allocator.add_server(b"b")
    assert allocator.grant_credits(0) == {b"b": 100}
    allocator.count_received(b"b", 10)
    allocator.add_server(b"b")
    assert allocator.grant_credits(0) == {b"b": 100}
    allocator.count_received(b"a", 10)
    assert allocator.grant_credits(0) == {b"b": 100}, "what a removed server had sent counts no more"


def test_short_unrolls_are_granted_in_greater_number():
    allocator = CreditAllocator(1000, 10)
    allocator.add_server(b"a")
    for _ in range(2000):
        allocator.grant_credits(0)
        allocator.count_received(b"a", 1)
    assert allocator.grant_credits(0)[b"a"] - 2000 > 800


@given(st.lists(st.tuples(st.integers(1, 10), st.integers(0, 2)), max_size=300), st.integers(1, 3))
def test_what_waits_and_what_may_come_stays_bounded(events, servers):
    allocator = CreditAllocator(200, 10)
    peers = [bytes([i]) for i in range(servers)]
    for peer in peers:
        allocator.add_server(peer)
    granted = allocator.grant_credits(0)
    sent = dict.fromkeys(peers, 0)
    waiting = 0
    for length, who in events:
        peer = peers[who % servers]
        if sent[peer] < granted[peer]:
            sent[peer] += 1
            allocator.count_received(peer, length)
            waiting += length
        else:
            waiting = 0  # the learner takes all
        totals = allocator.grant_credits(waiting)
        assert servers > 1 or totals[peer] >= granted[peer], "a lone server's grant is never taken back"
        granted = totals
        assert waiting < 200 + 10 * sum(granted[p] - sent[p] for p in peers) + 200
        assert waiting or all(granted[p] > sent[p] for p in peers), "an idle learner never starves a server"


class Load:
    """Servers that send all that they are granted, as `learner` takes it."""

    def __init__(self, *names: str) -> None:
        self.allocator = CreditAllocator(1000, 10)
        self.sent = {name.encode(): 0 for name in names}
        for peer in self.sent:
            self.allocator.add_server(peer)

    def fill(self, *busy: str) -> dict[str, int]:
        """Unrolls that each of `busy` sends, taking turns, until none has credit left; then the learner takes all."""
        found, waiting, idle_turns = dict.fromkeys(busy, 0), 0, 0
        while idle_turns <= len(busy):
            idle_turns += 1
            for name in busy:
                peer = name.encode()
                if self.sent[peer] < self.allocator.grant_credits(waiting)[peer]:
                    self.sent[peer] += 1
                    self.allocator.count_received(peer, 10)
                    waiting += 10
                    found[name] += 1
                    idle_turns = 0
        return found


def test_a_busy_server_gets_nearly_all_beside_an_idle_one_and_the_other_way_round_when_they_change():
    load = Load("a", "b")
    for busy in ("a", "b", "a"):
        for _ in range(5):
            sent = load.fill(busy)[busy]
        assert sent >= 90, "of 100 alone"


def test_two_busy_servers_share_equally_whatever_came_before():
    load = Load("a", "b")
    for _ in range(10):
        load.fill("a")
    for _ in range(10):
        sent = load.fill("a", "b")
    assert abs(sent["a"] - sent["b"]) <= 5, sent


def test_a_server_that_comes_later_and_one_that_stops_reading_cost_the_busy_one_little():
    load = Load("a")
    load.fill("a")
    load.allocator.add_server(b"b")  # says hello and is stopped
    for _ in range(5):
        sent = load.fill("a")
    assert sent["a"] >= 90
