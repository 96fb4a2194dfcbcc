"""Frames: round trips, every refusal with its code, mutated messages and headers that ask for too much."""

from __future__ import annotations

import random
import time
import tracemalloc

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from simul.common.errors import ERR_LIMIT, ERR_MALFORMED, ERR_SHAPE, ERR_VERSION, ProtocolError
from simul.common.protocol.codec import MAX_FRAMES, MAX_HEADER_BYTES, Codec, encode, expect
from simul.common.protocol.messages import TO_CLIENT, TO_SERVER, Error, Step
from simul.common.protocol.specs import GameSpec
from tests.support.mutants import mutate, valid_messages

DTYPES = ["float16", "float32", "float64", "uint8", "int8", "int16", "int32", "int64"]
SERVER = Codec(TO_SERVER)


def header(**fields):
    return msgpack.packb({"type": "STEP", "id": 1, **fields})


def refused(frames, codec=SERVER):
    with pytest.raises(ProtocolError) as caught:
        codec.decode(frames)
    assert str(caught.value)
    return caught.value


tensor_dicts = st.dictionaries(
    st.text(min_size=1, max_size=20),
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: npst.arrays(dtype, npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5))
    ),
    max_size=MAX_FRAMES - 1,
)


@given(tensors=tensor_dicts, number=st.integers(0, 2**63 - 1), policies=st.lists(st.text(max_size=9)).map(tuple))
@settings(max_examples=60, deadline=None)
def test_round_trip(tensors, number, policies):
    frames = [bytes(frame) for frame in encode(Step(id=number, policies=policies), tensors)]
    message, decoded = SERVER.decode(frames)
    assert (message.id, message.policies) == (number, policies)
    assert list(decoded) == list(tensors)
    for name, array in tensors.items():
        assert decoded[name].dtype == array.dtype
        assert decoded[name].shape == array.shape
        assert decoded[name].tobytes() == array.tobytes()
        assert not decoded[name].flags.writeable


def test_tensors_are_views_of_the_frames():
    frame = np.arange(4, dtype="<i4").tobytes()
    _, tensors = SERVER.decode([header(tensors=[["a", "int32", [2, 2]]]), frame])
    assert not tensors["a"].flags.owndata
    assert np.shares_memory(tensors["a"], np.frombuffer(frame, np.uint8))


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=">f4").reshape(2, 3),
        np.arange(6, dtype=np.float32).reshape(3, 2).T,
        np.arange(12, dtype=np.int64)[::2],
        np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)),
    ],
)
def test_any_memory_layout_travels_little_endian_and_row_major(array):
    frames = encode(Step(id=1), {"a": array})
    little = array.astype(array.dtype.newbyteorder("<"))
    assert bytes(frames[1]) == little.tobytes(order="C")
    assert np.array_equal(SERVER.decode(frames)[1]["a"], array)


@pytest.mark.parametrize("dtype", ["bool", "complex64", "uint64", "U4", "object"])
def test_other_dtypes_are_not_sent(dtype):
    with pytest.raises(ProtocolError, match="expected one of float16") as caught:
        encode(Step(id=1), {"a": np.zeros(2, dtype)})
    assert caught.value.code == ERR_SHAPE


@pytest.mark.parametrize(
    ("frames", "code", "says"),
    [
        ([], ERR_MALFORMED, "empty message"),
        ([b""], ERR_MALFORMED, "does not decode"),
        ([b"\xc1"], ERR_MALFORMED, "does not decode"),
        ([header() + b"\x00"], ERR_MALFORMED, "trailing"),
        ([msgpack.packb([1, 2])], ERR_MALFORMED, "Expected `object`"),
        ([msgpack.packb({"id": 1})], ERR_MALFORMED, "does not decode"),
        ([msgpack.packb({"type": "STEEP", "id": 1})], ERR_VERSION, "'STEEP'"),
        ([msgpack.packb({"type": "X" * 9999})], ERR_VERSION, "simul/1, which is spoken here"),
        ([msgpack.packb({"type": 7})], ERR_MALFORMED, "got `int`"),
        ([msgpack.packb({"type": "STEP"})], ERR_MALFORMED, "`id`"),
        ([header(colour=1)], ERR_MALFORMED, "unknown field `colour`"),
        ([header(policies="learner")], ERR_MALFORMED, "$.policies"),
        ([msgpack.packb({"type": "STEP", "id": "1"})], ERR_MALFORMED, "$.id"),
        ([msgpack.packb({"type": "STEP", "id": 2**63}), b"x"], ERR_MALFORMED, "declares 0 tensors, 1 frames follow"),
        ([header(tensors=[["a", "uint8", [1]]])], ERR_MALFORMED, "declares 1 tensors, 0 frames follow"),
        ([header(tensors=[["a", "uint8", [1]]] * 2), b"1", b"2"], ERR_MALFORMED, "'a' twice"),
        ([header(tensors=[["a", "uint8"]]), b"1"], ERR_MALFORMED, "does not decode"),
        ([header(tensors=[["a", "uint9", [1]]]), b"1"], ERR_SHAPE, "dtype 'uint9'"),
        ([header(tensors=[["a", "object", [1]]]), b"1"], ERR_SHAPE, "dtype 'object'"),
        ([header(tensors=[["a", "uint8", [-1]]]), b"1"], ERR_SHAPE, "sizes >= 0"),
        ([header(tensors=[["a", "uint8", [1] * 5]]), b"1"], ERR_SHAPE, "at most 4"),
        ([header(tensors=[["a", "int32", [2]]]), b"1234567"], ERR_SHAPE, "int32 [2] is 8 bytes, the frame has 7"),
        ([header(tensors=[["a", "int32", [2**62] * 4]]), b"1234"], ERR_SHAPE, "the frame has 4"),
        ([header(tensors=[["a", "int64", [0, 2**62]]]), b""], ERR_SHAPE, "impossible shape"),
        ([header(tensors=[["a", "uint8", [2**64 - 1, 0]]]), b""], ERR_SHAPE, "impossible shape"),
        ([b"\x00" * (MAX_HEADER_BYTES + 1)], ERR_LIMIT, f"at most {MAX_HEADER_BYTES}"),
        ([header(), *[b""] * MAX_FRAMES], ERR_LIMIT, f"at most {MAX_FRAMES}"),
    ],
)
def test_what_is_refused(frames, code, says):
    error = refused(frames)
    assert error.code == code
    assert says in str(error)


def test_a_message_over_the_limit_is_refused_before_it_is_read():
    error = refused([header(tensors=[["a", "uint8", [100]]]), b"x" * 100], Codec(TO_SERVER, max_bytes=100))
    assert error.code == ERR_LIMIT
    assert "at most 100" in str(error)


@pytest.mark.parametrize(
    "frames",
    [
        [header(tensors=[["a" * 60_000, "uint8", [2]]]), b"1"],
        [header(tensors=[["a", "b" * 60_000, [2]]]), b"1"],
        [header(tensors=[["a", "uint8", [1] * 10_000]]), b"1"],
        [header(tensors=[["a" * 20_000, "uint8", [1]]] * 2), b"1", b"1"],
        [msgpack.packb({"type": "x" * 60_000})],
        [header(**{"x" * 60_000: 1})],
    ],
)
def test_an_error_repeats_little_of_what_came(frames):
    error = refused(frames)
    assert len(str(error)) < 400
    Codec(TO_CLIENT).decode(encode(Error(code=error.code, message=str(error))))


def test_expect():
    tensors = {"a": np.zeros((2, 3), np.float32)}
    assert expect(tensors, "a", "float32", (2, 3)) is tensors["a"]
    assert expect(tensors, "a", np.dtype("float32"), (None, 3)) is tensors["a"]
    for name, dtype, shape, says in [
        ("b", "float32", (2, 3), "'b' is missing"),
        ("a", "float16", (2, 3), "expected float16 [2, 3], got float32 [2, 3]"),
        ("a", "float32", (None, 4), "expected float32 [*, 4], got float32 [2, 3]"),
        ("a", "float32", (2,), "expected float32 [2], got"),
    ]:
        with pytest.raises(ProtocolError) as caught:
            expect(tensors, name, dtype, shape)
        assert caught.value.code == ERR_SHAPE
        assert says in str(caught.value)


SPEC = GameSpec(name="toy", observation_size=3, num_actions=2)
STEP = b"\x83\xa4type\xa4STEP\xa2id\x01"
BOMBS = {
    "array of 2^32-1": b"\xdd\xff\xff\xff\xff",
    "map of 2^32-1": b"\xdf\xff\xff\xff\xff",
    "binary of 2^32-1": b"\xc6\xff\xff\xff\xff",
    "string of 2^32-1": b"\xdb\xff\xff\xff\xff",
    "policies of 2^32-1": STEP + b"\xa8policies\xdd\xff\xff\xff\xff",
    "tensors of 2^32-1": STEP + b"\xa7tensors\xdd\xff\xff\xff\xff",
    "a shape of 2^32-1": STEP + b"\xa7tensors\x91\x93\xa1a\xa1b\xdd\xff\xff\xff\xff",
    "a string in a string": STEP + b"\xa8policies\x91\xdb\xff\xff\xff\xff",
    "depth 60,000": b"\x91" * 60_000,
    "depth 100,000": b"\x91" * 100_000,
    "maps, depth 20,000": b"\x81\xa1x" * 20_000,
    "depth before the tag": b"\x82\xa1x" + b"\x91" * 60_000,
    "depth in a field": STEP + b"\xa8policies" + b"\x91" * 60_000,
    "ext of 2^32-1": b"\xc9\xff\xff\xff\xff\x05",
    "ext": msgpack.packb(msgpack.ExtType(5, b"x" * 100)),
    "ext as a field": STEP[:-1] + b"\xc7\x0c\xff" + b"\xff" * 12 + b"\xa8policies\x90",
    "timestamp": b"\xd7\xff" + b"\xff" * 8,
    "broken text": b"\x82\xa4type\xa4STEP\xa2\xff\xfe\x01",
    "a surrogate": STEP + b"\xa8policies\x91\xa3\xed\xa0\x80",
    "a map of 8,000 keys": msgpack.packb({str(i): 0 for i in range(8_000)}),
    "keys that are no text": msgpack.packb({1: 2, b"x": 3}),
    "NaN for an integer": b"\x82\xa4type\xa4PING\xa2id\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00",
    "text for an integer": b"\x82\xa4type\xa4STEP\xa2id\xa1x",
    "huge keys": b"\x82\xa4type\xa4STEP\xd9\xff" + b"k" * 255 + b"\x01",
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("direction", [TO_SERVER, TO_CLIENT])
def test_bombs_are_refused_quickly_and_cheaply(name, direction):
    codec = Codec(direction)
    frames = [BOMBS[name]]
    tracemalloc.start()
    try:
        began = time.thread_time()
        with pytest.raises(ProtocolError) as refused:
            codec.decode(frames)
        took = time.thread_time() - began
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert refused.value.code in (ERR_MALFORMED, ERR_LIMIT, ERR_VERSION)  # the last in the other direction
    assert took < 1.0
    assert peak < 2_000_000


def test_20_000_mutated_messages_raise_protocol_errors_only():
    dice = random.Random(20_000)
    messages = valid_messages(SPEC)
    refusals, codes = 0, set()
    for _ in range(20_000):
        frames = mutate(dice.choice(messages), dice)
        try:
            SERVER.decode(frames)
        except ProtocolError as error:
            refusals += 1
            codes.add(error.code)
    assert codes <= {ERR_MALFORMED, ERR_SHAPE, ERR_LIMIT, ERR_VERSION}
    assert 10_000 < refusals < 20_000
    assert all(SERVER.decode(frames) for frames in messages)  # and a normal message is still read
