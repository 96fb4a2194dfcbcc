"""Both halves of the shared memory in one process: blocks, their lives, and what a client cannot do."""

from __future__ import annotations

import os
import sys

import msgspec
import numpy as np
import pytest

from simul.common.client.observation_memory import ObservationMemory, open_observation_memory
from simul.common.errors import ERR_SHAPE, ERR_VALUE, ProtocolError
from simul.common.protocol.shared_memory import ALIGNMENT, map_memory
from simul.common.protocol.specs import GameSpec
from simul.inference_server.base.granted_memory import ClientMemory, memory_size, with_observation

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="granted on Linux only")

SPEC = GameSpec(name="test/wide", observation_size=1000, num_actions=3)
ROW = 4000  # bytes
SIZE = ALIGNMENT + 5 * 4032


@pytest.fixture
def granted():
    memory = ClientMemory(SIZE)
    yield memory
    memory.close()


@pytest.fixture
def client(granted) -> ObservationMemory:
    return ObservationMemory(granted.grant)


def test_the_server_reads_what_the_client_wrote(granted, client) -> None:
    first = client.allocate(1, 2, SPEC, owed={1, 2})
    second = client.allocate(2, 2, SPEC, owed={1, 2})
    first.observation[:] = np.arange(2000).reshape(2, 1000)
    second.observation[:] = -1
    keys = np.zeros((2, 5), np.int64)
    tensors = with_observation(granted, SPEC, first.offset, {"keys": keys})
    assert np.array_equal(tensors["observation"], np.arange(2000, dtype=np.float32).reshape(2, 1000))
    assert not tensors["observation"].flags.writeable
    assert (granted.observation(SPEC, second.offset, 2) == -1).all()


def test_a_block_is_free_when_its_message_is_owed_no_longer(client) -> None:
    offsets = [client.allocate(number, 2, SPEC, owed=range(9)).offset for number in (1, 2)]
    assert client.allocate(3, 2, SPEC, owed=range(9)) is None  # full
    assert client.allocate(4, 2, SPEC, owed={2, 4}).offset == offsets[0]
    assert client.allocate(5, 2, SPEC, owed={4, 5}).offset == offsets[1]
    assert client.allocate(6, 5, SPEC, owed={6}).offset == ALIGNMENT
    assert client.allocate(7, 6, SPEC, owed={7}) is None  # more than there is at all


def test_blocks_never_overlap(client) -> None:
    rng, living = np.random.default_rng(1), {}
    for number in range(500):
        block = client.allocate(number, int(rng.integers(2, 4)), SPEC, owed=living)
        for other in living.values():
            assert block is None or not np.shares_memory(block.observation, other)
        if block is not None:
            assert block.offset % ALIGNMENT == 0
            living[number] = block.observation
        if living and rng.random() < 0.6:
            del living[rng.choice(list(living))]


def test_a_single_small_row_is_a_frame(client) -> None:
    assert client.allocate(1, 1, SPEC, owed={1}) is None


@pytest.mark.parametrize("offset", [0, ALIGNMENT + 4, SIZE - ROW, SIZE, 2**62])
def test_what_does_not_lie_inside_is_err_value(granted, offset) -> None:
    with pytest.raises(ProtocolError) as refused:
        granted.observation(SPEC, offset, 1)
    assert refused.value.code == ERR_VALUE


def test_no_memory_and_two_observations_are_refused(granted) -> None:
    keys = np.zeros((1, 5), np.int64)
    with pytest.raises(ProtocolError) as refused:
        with_observation(None, SPEC, ALIGNMENT, {"keys": keys})
    assert refused.value.code == ERR_VALUE
    with pytest.raises(ProtocolError) as refused:
        with_observation(granted, SPEC, ALIGNMENT, {"keys": keys, "observation": np.zeros((1, 1000), np.float32)})
    assert refused.value.code == ERR_SHAPE


def test_nobody_can_take_a_page_away(granted) -> None:
    file = os.open(granted.grant.path, os.O_RDWR)
    try:
        for size in (0, SIZE + 1):
            with pytest.raises(PermissionError):
                os.ftruncate(file, size)
    finally:
        os.close(file)


def test_another_file_of_this_name_is_not_taken(granted, tmp_path) -> None:
    for change in ({"nonce": "0" * 32}, {"size": SIZE - 1}, {"path": str(tmp_path / "none")}):
        assert open_observation_memory(msgspec.structs.replace(granted.grant, **change)) is None
    granted.close()
    assert open_observation_memory(granted.grant) is None
    assert open_observation_memory(None) is None


def test_a_file_that_could_be_cut_short_is_not_taken_and_a_pipe_stops_nobody(granted, tmp_path) -> None:
    plain, pipe = tmp_path / "plain", tmp_path / "pipe"
    plain.write_bytes(granted.grant.nonce.encode().ljust(SIZE, b"\0"))
    os.mkfifo(pipe)
    for path in (plain, pipe):
        grant = msgspec.structs.replace(granted.grant, path=str(path))
        for writable in (False, True):
            with pytest.raises(ValueError, match="a file that is not the server's"):
                map_memory(grant, writable=writable)


@pytest.mark.parametrize(
    ("endpoint", "granted"),
    [("ipc:///tmp/x", True), ("tcp://127.0.0.1:5555", True), ("tcp://*:5555", False), ("tcp://10.0.0.1:5555", False)],
)
def test_clients_of_this_machine_only(endpoint, granted) -> None:
    assert (memory_size(endpoint, SPEC, 10) > 0) == granted
