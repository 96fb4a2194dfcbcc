"""What a learner reads out of a server's memory, and what it refuses to take for an unroll."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

from simul.common.protocol.messages import Unroll
from simul.common.protocol.specs import GameSpec
from simul.common.protocol.unroll_layout import UnrollLayout
from simul.inference_server.unrolls.buffer import SharedUnrolls
from simul.learner.io.rejected import RejectedError
from simul.learner.io.unroll_memory import UnrollMemories

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="granted on Linux only")

SPEC = GameSpec("test", observation_size=5, num_actions=3, observation_dtype="float16")
LAYOUT = UnrollLayout(SPEC, unroll_length=4, state_size=6)
PEER = b"peer"


@pytest.fixture
def memory():
    one = SharedUnrolls(LAYOUT, recordings=3)
    yield one
    one.close()


@pytest.fixture
def memories(memory) -> UnrollMemories:
    made = UnrollMemories(LAYOUT)
    assert not made.map_memory_of(PEER, memory.message, {PEER})
    return made


def lent(memory: SharedUnrolls, row: int = 1, length: int = 2) -> Unroll:
    """An unroll whose numbers are all its row's, lent."""
    for name, table in memory.tables.items():
        if name != "serial":
            table[memory.places.of_recording[row]] = row
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
        memory.places.of_recording[2] = unroll.place
        lent(memory, row=2)
    with pytest.raises(RejectedError) as caught:
        memories.copy_unroll(PEER, unroll)
    assert (caught.value.cause, caught.value.rows) == ("taken_back", 2)


@pytest.mark.parametrize("change", [{"place": 6}, {"length": 0}, {"length": 5}, {"length": -3}])
def test_what_lies_outside_is_refused(memory, memories, change) -> None:
    with pytest.raises(RejectedError) as caught:
        memories.copy_unroll(PEER, msgspec.structs.replace(lent(memory), **change))
    assert caught.value.cause == "bad_shape"


def test_a_memory_that_is_not_here_or_not_this_runs_is_left_alone(memory) -> None:
    memories = UnrollMemories(LAYOUT)
    elsewhere = msgspec.structs.replace(memory.message.memory, path="/proc/1/fd/999999")
    assert not memories.map_memory_of(PEER, msgspec.structs.replace(memory.message, memory=elsewhere), {PEER})
    assert "expected" in memories.map_memory_of(PEER, msgspec.structs.replace(memory.message, unroll_length=9), {PEER})
    assert "expected" in memories.map_memory_of(PEER, msgspec.structs.replace(memory.message, places=-1), {PEER})
    assert not memories.is_mapped(PEER)
    with pytest.raises(RejectedError) as caught:
        memories.copy_unroll(PEER, lent(memory))
    assert caught.value.cause == "no_memory"


def test_memories_of_servers_that_are_gone_are_let_go_when_another_comes(memory, memories) -> None:
    memories.map_memory_of(b"another", memory.message, {b"another"})
    assert memories.is_mapped(b"another")
    assert not memories.is_mapped(PEER)


def test_what_a_server_that_is_gone_had_handed_over_can_still_be_read(memory, memories) -> None:
    unroll = lent(memory)
    memory.close()
    assert not Path(memory.message.memory.path).exists()
    for _ in range(2):
        assert (memories.copy_unroll(PEER, unroll)["observation"] == 1).all()
