"""Golden vectors, both ways, and against the plain msgpack package: what an external client without Simul sees."""

import json
from pathlib import Path
from typing import get_args

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
)

GOLDEN = Path(__file__).parents[3] / "golden" / "protocol" / "vectors.json"
VECTORS = json.loads(GOLDEN.read_text())["vectors"]
BY_NAME = {vector["name"].split(":")[0]: vector for vector in VECTORS}
DIRECTIONS = {"to the server": TO_SERVER, "to the client": TO_CLIENT}


def frames_of(vector):
    return [bytes.fromhex(frame) for frame in vector["frames"]]


def test_the_vectors_are_complete():
    assert json.loads(GOLDEN.read_text())["protocol"] == PROTOCOL
    assert len(BY_NAME) == len(VECTORS) == 30
    for direction, messages in DIRECTIONS.items():
        named = {vector["header"]["type"] for vector in VECTORS if vector["direction"] == direction}
        assert named == {kind.__struct_config__.tag for kind in get_args(messages)}


@pytest.mark.parametrize("name", BY_NAME)
def test_golden_frames_decode_and_encode(name):
    vector = BY_NAME[name]
    declared = vector["header"].get("tensors", [])
    message, tensors = Codec(DIRECTIONS[vector["direction"]]).decode(frames_of(vector))
    assert msgspec.json.decode(msgspec.json.encode(message)) == vector["header"]
    assert {key: tensor.tolist() for key, tensor in tensors.items()} == vector["tensors"]
    assert [[key, tensor.dtype.name, list(tensor.shape)] for key, tensor in tensors.items()] == declared
    written = {key: np.array(vector["tensors"][key], dtype) for key, dtype, _ in declared}
    again = encode(msgspec.structs.replace(message, tensors=()), written)
    assert [bytes(frame) for frame in again] == frames_of(vector)


def test_a_resend_repeats_the_row_and_its_answer_to_the_bit():
    for first, again in (("STEP", "STEP that is a resend"), ("ACTIONS", "ACTIONS for a resend")):
        columns = zip(BY_NAME[first]["tensors"].items(), BY_NAME[again]["tensors"].items(), strict=True)
        assert all((name, column[:1]) == (other, resent) for (name, column), (other, resent) in columns)


def test_the_golden_rows_are_of_every_kind_and_have_every_flag():
    rows = [vector["tensors"] for vector in VECTORS if vector["header"]["type"] == "STEP"]
    assert {kind for row in rows for kind in row["kind"]} == {DECISION, TERMINATED, TRUNCATED, ABORTED}
    assert {flags for row in rows for flags in row["flags"]} >= {0, START, START | RECORD}
    assert any(key[4] for row in rows for key in row["keys"])  # a REDO


@pytest.mark.parametrize("name", BY_NAME)
def test_a_client_with_plain_msgpack_reads_and_writes_the_same_bytes(name):
    vector = BY_NAME[name]
    header, *rest = frames_of(vector)
    assert msgpack.unpackb(header) == vector["header"]
    assert msgpack.packb(vector["header"]) == header
    for (key, dtype, shape), frame in zip(vector["header"].get("tensors", []), rest, strict=True):
        array = np.frombuffer(frame, np.dtype(dtype).newbyteorder("<")).reshape(shape)
        assert array.tolist() == vector["tensors"][key]


def test_the_order_of_keys_does_not_matter():
    codec, vector = Codec(TO_CLIENT), BY_NAME["WELCOME"]
    backwards = msgpack.packb(dict(reversed(vector["header"].items())))
    assert codec.decode([backwards]) == codec.decode(frames_of(vector))


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_a_message_is_read_in_its_own_direction_only(vector):
    other = {"to the server": TO_CLIENT, "to the client": TO_SERVER}[vector["direction"]]
    with pytest.raises(ProtocolError, match="does not decode: Invalid value") as error:
        Codec(other).decode(frames_of(vector))
    assert error.value.code == "ERR_VERSION"
