"""What a learner reads out of a server's memory, and what it refuses to take for an unroll."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simul.common.protocol.codec import Codec
from simul.common.protocol.messages import TO_LEARNER, Unroll, UnrollMemory
from simul.common.protocol.specs import GameSpec
from simul.common.protocol.unroll_layout import UnrollLayout
from simul.inference_server.unrolls import buffer as server_memory
from simul.learner.batches import RejectedUnroll
from simul.learner.unroll_receiver import CreditAllocator, UnrollMemories


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
    assert not allocator.count_received(b"stranger", 10)


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


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="granted on Linux only")

SPEC = GameSpec("test", observation_size=5, num_actions=3, observation_dtype="float16")
LAYOUT = UnrollLayout(SPEC, unroll_length=4, state_size=6)
PEER = b"peer"
CHECKOUT = Path(__file__).parents[3]


@pytest.fixture
def memory():
    one = server_memory.SharedUnrolls(LAYOUT, rows=3)
    yield one
    one.close()


@pytest.fixture
def memories(memory) -> UnrollMemories:
    made = UnrollMemories(LAYOUT)
    assert not made.map_memory_of(PEER, memory.message, {PEER})
    return made


def lent(memory: server_memory.SharedUnrolls, row: int = 1, length: int = 2) -> Unroll:
    """An unroll whose numbers are all its row's, lent."""
    for name, table in memory.tables.items():
        if name != "serial":
            table[memory.places.of_row[row]] = row
    place, serial = memory.places.lend(row)
    facts = {"first_step": 0, "terminated": False, "truncated": False, "spec_fingerprint": SPEC.fingerprint()}
    return Unroll(length=length, place=place, serial=serial, **facts)


def test_an_unroll_is_read_as_it_would_have_travelled_and_stays_what_it_was(memory, memories) -> None:
    found = memories.copy_unroll(PEER, lent(memory))
    for table in memory.tables.values():
        table[:] = 77
    shapes = {name: (array.shape, array.dtype.name) for name, array in found.items()}
    assert shapes == {
        "observation": ((3, 5), "float16"),
        "mask": ((3, 3), "uint8"),
        "value": ((3,), "float32"),
        "action": ((2,), "int32"),
        "log_prob": ((2,), "float32"),
        "reward": ((2,), "float32"),
        "policy_version": ((2,), "int64"),
        "state": ((6,), "float32"),
    }
    assert all((array == 1).all() for array in found.values())


@pytest.mark.parametrize("again", [False, True])
def test_what_was_taken_back_is_not_learned_from(memory, memories, again) -> None:
    unroll = lent(memory)
    memory.places.take_back(unroll.place)
    if again:  # another unroll lies there now
        memory.places.of_row[2] = unroll.place
        lent(memory, row=2)
    with pytest.raises(RejectedUnroll) as caught:
        memories.copy_unroll(PEER, unroll)
    assert (caught.value.cause, caught.value.steps) == ("taken_back", 2)


@pytest.mark.parametrize(
    ("cause", "change"),
    [
        ("bad_shape", {"place": 6}),
        ("bad_shape", {"length": 0}),
        ("bad_shape", {"length": 5}),
        ("bad_shape", {"length": -3}),
    ],
)
def test_what_lies_outside_is_refused(memory, memories, cause, change) -> None:
    with pytest.raises(RejectedUnroll) as caught:
        memories.copy_unroll(PEER, msgspec.structs.replace(lent(memory), **change))
    assert caught.value.cause == cause


def test_a_memory_that_is_not_here_or_not_this_runs_is_left_alone(memory) -> None:
    memories = UnrollMemories(LAYOUT)
    elsewhere = msgspec.structs.replace(memory.message.memory, path="/proc/1/fd/999999")
    assert not memories.map_memory_of(PEER, msgspec.structs.replace(memory.message, memory=elsewhere), {PEER})
    assert "expected" in memories.map_memory_of(PEER, msgspec.structs.replace(memory.message, unroll_length=9), {PEER})
    assert "expected" in memories.map_memory_of(PEER, msgspec.structs.replace(memory.message, places=-1), {PEER})
    assert not memories.is_mapped(PEER)
    with pytest.raises(RejectedUnroll) as caught:
        memories.copy_unroll(PEER, lent(memory))
    assert caught.value.cause == "no_memory"


def test_memories_of_servers_that_are_gone_are_let_go_when_another_comes(memory, memories) -> None:
    memories.map_memory_of(b"another", memory.message, {b"another"})
    assert memories.is_mapped(b"another")
    assert not memories.is_mapped(PEER)


DYING = """
import os, signal, sys
from simul.common.protocol.codec import encode
from simul.common.protocol.messages import Unroll
from simul.common.protocol.specs import GameSpec
from simul.common.protocol.unroll_layout import UnrollLayout
from simul.inference_server.unrolls.buffer import SharedUnrolls
spec = GameSpec("test", observation_size=5, num_actions=3, observation_dtype="float16")
memory = SharedUnrolls(UnrollLayout(spec, unroll_length=4, state_size=6), rows=3)
memory.tables["observation"][2] = memory.tables["action"][2] = 2
place, serial = memory.places.lend(2)
facts = {"length": 2, "first_step": 0, "terminated": False, "truncated": False, "spec_fingerprint": ""}
unroll = Unroll(**facts, place=place, serial=serial)
for message in (memory.message, unroll):
    sys.stdout.write(encode(message)[0].hex() + "\\n")
sys.stdout.flush()
sys.stdin.readline()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_server_had_handed_over_can_still_be_read() -> None:
    codec: Codec[UnrollMemory | Unroll] = Codec(TO_LEARNER)
    command = [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, {str(CHECKOUT)!r}); {DYING}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        message, unroll = (codec.decode([bytes.fromhex(server.stdout.readline().decode())])[0] for _ in range(2))
        memories = UnrollMemories(LAYOUT)
        assert not memories.map_memory_of(PEER, message, {PEER})
        server.communicate(b"\n")
    assert server.returncode == -9
    assert (memories.copy_unroll(PEER, unroll)["observation"] == 2).all()
    assert not Path(message.memory.path).exists()
    assert np.all(memories.copy_unroll(PEER, unroll)["action"] == 2)
