"""Golden vectors, both ways, and against the plain msgpack package: what an external client without Simul sees."""

import json
from pathlib import Path

import msgpack
import msgspec
import numpy as np
import pytest

from simul.common.errors import ProtocolError
from simul.common.protocol.codec import Codec, encode
from simul.common.protocol.messages import (
    ABORTED,
    DECISION,
    PROTOCOL,
    RECORD,
    START,
    TERMINATED,
    TO_CLIENT,
    TO_SERVER,
    TRUNCATED,
    Actions,
    Close,
    Error,
    Evaluate,
    Evaluated,
    Figures,
    Hello,
    Message,
    Ping,
    Pong,
    RowErrors,
    Sampled,
    Samples,
    SharedMemory,
    StatusRequest,
    Step,
    Welcome,
)

GOLDEN = Path(__file__).parents[3] / "golden" / "protocol" / "vectors.json"
VECTORS = json.loads(GOLDEN.read_text())["vectors"]
BY_NAME = {vector["name"].split(":")[0]: vector for vector in VECTORS}
DIRECTIONS = {"to the server": TO_SERVER, "to the client": TO_CLIENT}
LIMITS = {
    "rows_per_step": 4096, "rows_waiting": 32768, "rows_of_client": 8192, "sessions": 4096, "sessions_of_client": 2048,
    "clients": 512, "frames": 16,
    "header_bytes": 65536, "message_bytes": 268435456, "tensor_dimensions": 4, "slow_reader_replies": 100,
    "idle_timeout_ms": 120000, "client_timeout_ms": 10000,
}  # fmt: skip
TOKEN = "00112233445566778899aabbccddeeff"
MEMORY = SharedMemory(path="/proc/4242/fd/17", size=196672, nonce=TOKEN)

EXPECTED = {
    "HELLO of an external agent": Hello(
        protocol="simul/1", client="my-bot", run_id=1, spec_fingerprint="0123456789abcdef"
    ),
    "HELLO after a reconnect": Hello(
        protocol="simul/1", client="my-bot", run_id=1, spec_fingerprint="0123456789abcdef", token=TOKEN
    ),
    "HELLO that asks for shared memory": Hello(
        protocol="simul/1", client="my-bot", run_id=1, spec_fingerprint="0123456789abcdef", shared_memory=True
    ),
    "WELCOME with shared memory": Welcome(
        protocol="simul/1", token=TOKEN, resumed=False, game="toy", observation_size=3, num_actions=2,
        observation_dtype="float32", policies=("learner",), limits=LIMITS,
        shared_memory=MEMORY,
    ),
    "STEP whose observations lie in shared memory": Step(id=7, observation_at=64),
    "WELCOME": Welcome(
        protocol="simul/1", token=TOKEN, resumed=False, game="toy", observation_size=3, num_actions=2,
        observation_dtype="float32", policies=("learner",), limits=LIMITS,
    ),
    "WELCOME after a reconnect": Welcome(
        protocol="simul/1", token=TOKEN, resumed=True, game="toy", observation_size=3, num_actions=2,
        observation_dtype="float32", policies=("learner",), limits=LIMITS,
    ),
    "STEP": Step(id=7),
    "STEP that is a resend": Step(id=10),
    "ACTIONS for a resend": Actions(id=10),
    "STEP with a REDO, a RECORD and two ends": Step(id=11),
    "ACTIONS after a REDO": Actions(id=11),
    "ACTIONS": Actions(id=7),
    "ERROR about row 0": Error(
        code="ERR_NO_SESSION", message="env 0 seat 0 has no live session of episode 5; begin one with START",
        id=7, rows=(0,),
    ),
    "PING": Ping(id=3),
    "PONG": Pong(id=3, policies=("learner",)),
    "PONG of a server that shuts down": Pong(id=3, policies=("learner",), ready=False),
    "CLOSE": Close(),
    "STEP with a temperature and a deadline": Step(id=8, policies=("learner", "past/3"), deadline_ms=250),
    "EVALUATE": Evaluate(id=9),
    "EVALUATED": Evaluated(id=9, policy_version=12),
    "SAMPLES": Samples(id=12),
    "SAMPLED": Sampled(id=12, accepted=2),
    "SAMPLED but for row 1": Sampled(
        id=13, accepted=1, errors=(RowErrors("ERR_VALUE", "outcome 1.5 of row 1; expected -1 to 1", (1,)),)
    ),
    "STATUS": StatusRequest(id=4),
    "FIGURES": Figures(
        id=4, ready=True, policies={"learner": 12, "past/3": 3}, sessions=96, own_sessions=2, clients=3, waiting=40,
        own_waiting=2, mean_batch=31.5, decisions=123456, limits=LIMITS, batches=3919,
    ),
    "ERROR busy": Error(
        code="ERR_BUSY", message="2 rows on top of 8191 of yours and 8191 of all that wait; at most 8192 of a client "
        "and 32768 of all may. None was admitted; send them again", id=8, retry_after_ms=12,
    ),
    "ERROR deadline": Error(
        code="ERR_DEADLINE", message="taken from the queue 3 ms after the deadline; the session waits for this very "
        "step", id=8, rows=(1,), retry_after_ms=5,
    ),
    "ERROR version": Error(
        code="ERR_VERSION", message="the header frame does not decode: Invalid value 'TELEPORT' - at `$.type`; "
        "simul/1, which is spoken here, has no such message this way",
    ),
}  # fmt: skip


def frames_of(vector):
    return [bytes.fromhex(frame) for frame in vector["frames"]]


def test_the_vectors_are_complete():
    assert json.loads(GOLDEN.read_text())["protocol"] == PROTOCOL
    assert set(BY_NAME) == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_golden_frames_decode(name):
    vector = BY_NAME[name]
    message, tensors = Codec(DIRECTIONS[vector["direction"]]).decode(frames_of(vector))
    assert msgspec.structs.replace(message, tensors=()) == EXPECTED[name]
    assert {key: tensor.tolist() for key, tensor in tensors.items()} == vector["tensors"]
    assert [[key, tensor.dtype.name, list(tensor.shape)] for key, tensor in tensors.items()] == vector["header"].get(
        "tensors", []
    )


def test_a_resend_repeats_the_row_and_its_answer_to_the_bit():
    for first, again in (("STEP", "STEP that is a resend"), ("ACTIONS", "ACTIONS for a resend")):
        columns = zip(BY_NAME[first]["tensors"].items(), BY_NAME[again]["tensors"].items(), strict=True)
        assert all((name, column[:1]) == (other, resent) for (name, column), (other, resent) in columns)


def test_the_golden_rows_are_of_every_kind_and_have_every_flag():
    rows = [vector["tensors"] for vector in VECTORS if vector["header"]["type"] == "STEP"]
    assert {kind for row in rows for kind in row["kind"]} == {DECISION, TERMINATED, TRUNCATED, ABORTED}
    assert {flags for row in rows for flags in row["flags"]} >= {0, START, START | RECORD}
    assert any(key[4] for row in rows for key in row["keys"])  # a REDO


@pytest.mark.parametrize("name", EXPECTED)
def test_golden_frames_encode(name):
    vector = BY_NAME[name]
    declared = vector["header"].get("tensors", [])
    tensors = {key: np.array(vector["tensors"][key], dtype) for key, dtype, _ in declared}
    assert [bytes(frame) for frame in encode(EXPECTED[name], tensors)] == frames_of(vector)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_client_with_plain_msgpack_reads_and_writes_the_same_bytes(name):
    vector = BY_NAME[name]
    header, *rest = frames_of(vector)
    assert msgpack.unpackb(header) == vector["header"]
    assert msgpack.packb(vector["header"]) == header
    for (key, dtype, shape), frame in zip(vector["header"].get("tensors", []), rest, strict=True):
        array = np.frombuffer(frame, np.dtype(dtype).newbyteorder("<")).reshape(shape)
        assert array.tolist() == vector["tensors"][key]


def test_the_order_of_keys_does_not_matter():
    backwards = dict(reversed(BY_NAME["WELCOME"]["header"].items()))
    message, _ = Codec(TO_CLIENT).decode([msgpack.packb(backwards)])
    assert message == EXPECTED["WELCOME"]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_a_message_is_read_in_its_own_direction_only(vector):
    other = {"to the server": TO_CLIENT, "to the client": TO_SERVER}[vector["direction"]]
    with pytest.raises(ProtocolError, match="does not decode: Invalid value") as error:
        Codec(other).decode(frames_of(vector))
    assert error.value.code == "ERR_VERSION"


def test_every_message_has_a_name_and_a_meaning():
    kinds = Message.__subclasses__()
    assert len({kind.__struct_config__.tag for kind in kinds}) == len(kinds) == 27
    assert all(kind.__doc__ for kind in kinds)
    assert set(DIRECTIONS) == {vector["direction"] for vector in VECTORS}
