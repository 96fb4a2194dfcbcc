"""What a learner reads out of a server's memory, and what it refuses to take for an unroll."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

from simul.common.protocol.codec import Codec
from simul.common.protocol.messages import TO_LEARNER, Unroll, UnrollMemory
from simul.common.protocol.specs import GameSpec
from simul.common.protocol.unroll_layout import UnrollLayout
from simul.inference_server.unrolls import buffer as server_memory
from simul.learner.batches import RejectedUnroll
from simul.learner.memories import UnrollMemories

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="granted on Linux only")

SPEC = GameSpec("test", observation_size=5, num_actions=3, observation_dtype="float16")
LAYOUT = UnrollLayout(SPEC, unroll_length=4, state_size=6)
PEER = b"peer"
CHECKOUT = Path(__file__).parents[3]


@pytest.fixture
def memory():
    one = server_memory.UnrollMemory(LAYOUT, rows=3)
    yield one
    one.close()


@pytest.fixture
def memories(memory) -> UnrollMemories:
    made = UnrollMemories(LAYOUT)
    assert not made.open(PEER, memory.message, {PEER})
    return made


def lent(memory: server_memory.UnrollMemory, row: int = 1, length: int = 2) -> Unroll:
    """An unroll whose numbers are all its row's, lent."""
    for name, table in memory.tables.items():
        if name != "serial":
            table[memory.places.of_row[row]] = row
    place, serial = memory.places.lend(row)
    facts = {"first_step": 0, "terminated": False, "truncated": False, "spec_fingerprint": SPEC.fingerprint()}
    return Unroll(length=length, place=place, serial=serial, **facts)


def test_an_unroll_is_read_as_it_would_have_travelled_and_stays_what_it_was(memory, memories) -> None:
    found = memories.tensors(PEER, lent(memory))
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
        memories.tensors(PEER, unroll)
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
        memories.tensors(PEER, msgspec.structs.replace(lent(memory), **change))
    assert caught.value.cause == cause


def test_a_memory_that_is_not_here_or_not_this_runs_is_left_alone(memory) -> None:
    memories = UnrollMemories(LAYOUT)
    elsewhere = msgspec.structs.replace(memory.message.memory, path="/proc/1/fd/999999")
    assert not memories.open(PEER, msgspec.structs.replace(memory.message, memory=elsewhere), {PEER})
    assert "expected" in memories.open(PEER, msgspec.structs.replace(memory.message, unroll_length=9), {PEER})
    assert "expected" in memories.open(PEER, msgspec.structs.replace(memory.message, places=-1), {PEER})
    assert not memories.has(PEER)
    with pytest.raises(RejectedUnroll) as caught:
        memories.tensors(PEER, lent(memory))
    assert caught.value.cause == "no_memory"


def test_memories_of_servers_that_are_gone_are_let_go_when_another_comes(memory, memories) -> None:
    memories.open(b"another", memory.message, {b"another"})
    assert memories.has(b"another")
    assert not memories.has(PEER)


DYING = """
import os, signal, sys
from simul.common.protocol.codec import encode
from simul.common.protocol.messages import Unroll
from simul.common.protocol.specs import GameSpec
from simul.common.protocol.unroll_layout import UnrollLayout
from simul.inference_server.unrolls.buffer import UnrollMemory
spec = GameSpec("test", observation_size=5, num_actions=3, observation_dtype="float16")
memory = UnrollMemory(UnrollLayout(spec, unroll_length=4, state_size=6), rows=3)
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
        assert not memories.open(PEER, message, {PEER})
        server.communicate(b"\n")
    assert server.returncode == -9
    assert (memories.tensors(PEER, unroll)["observation"] == 2).all()
    assert not Path(message.memory.path).exists()
    assert np.all(memories.tensors(PEER, unroll)["action"] == 2)
