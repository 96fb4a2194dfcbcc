from hypothesis import given
from hypothesis import strategies as st

from simul.learner.credits import CreditBook


def test_two_batches_are_granted_and_no_more():
    book = CreditBook(capacity_steps=1000, unroll_length=10)
    book.joined(b"a")
    assert book.grant(0) == {b"a": 100}
    assert book.grant(0) == {b"a": 100}, "what is granted is counted as on its way"
    for _ in range(40):
        book.received(b"a", 10)
    assert book.grant(400) == {b"a": 100}
    assert book.grant(0) == {b"a": 140}, "taken by the learner: room again"


def test_a_lost_server_frees_its_grant_and_a_new_hello_starts_at_0():
    book = CreditBook(1000, 10)
    book.joined(b"a")
    book.grant(0)
    book.left(b"a")
    book.joined(b"b")
    assert book.grant(0) == {b"b": 100}
    book.received(b"b", 10)
    book.joined(b"b")
    assert book.grant(0) == {b"b": 100}
    assert not book.received(b"stranger", 10)


def test_short_unrolls_are_granted_in_greater_number():
    book = CreditBook(1000, 10)
    book.joined(b"a")
    for _ in range(2000):
        book.grant(0)
        book.received(b"a", 1)
    assert book.grant(0)[b"a"] - 2000 > 800


@given(st.lists(st.tuples(st.integers(1, 10), st.integers(0, 2)), max_size=300), st.integers(1, 3))
def test_what_waits_and_what_may_come_stays_bounded(events, servers):
    book = CreditBook(200, 10)
    peers = [bytes([i]) for i in range(servers)]
    for peer in peers:
        book.joined(peer)
    granted = book.grant(0)
    sent = dict.fromkeys(peers, 0)
    waiting = 0
    for length, who in events:
        peer = peers[who % servers]
        if sent[peer] < granted[peer]:
            sent[peer] += 1
            book.received(peer, length)
            waiting += length
        else:
            waiting = 0  # the learner takes all
        totals = book.grant(waiting)
        assert all(totals[p] >= granted[p] for p in peers), "a grant is never taken back"
        granted = totals
        assert waiting < 200 + 10 * sum(granted[p] - sent[p] for p in peers) + 200
        assert waiting or all(granted[p] > sent[p] for p in peers), "an idle learner never starves a server"
