"""Frames: mutated messages, and headers made to hurt."""

import random
import time
import tracemalloc

import msgpack
import pytest

from simul.common.protocol.codec import Codec
from simul.common.protocol.errors import ERR_LIMIT, ERR_MALFORMED, ERR_SHAPE, ERR_VERSION, ProtocolError
from simul.common.protocol.messages import TO_CLIENT, TO_SERVER
from simul.common.protocol.specs import GameSpec
from tests.support.mutants import mutate, valid_messages

SERVER = Codec(TO_SERVER)
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
    "huge keys": b"\x82\xa4type\xa4STEP\xd9\xff" + b"k" * 255 + b"\x01",
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("direction", [TO_SERVER, TO_CLIENT])
def test_bombs_are_refused_quickly_and_cheaply(name, direction):
    codec = Codec(direction)
    frames = [BOMBS[name]]
    tracemalloc.start()
    try:
        began = time.perf_counter()
        with pytest.raises(ProtocolError) as refused:
            codec.decode(frames)
        took = time.perf_counter() - began
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


def test_mutated_messages_hold_no_memory():
    dice = random.Random(7)
    messages = valid_messages(SPEC)
    tracemalloc.start()
    try:
        for _ in range(2_000):
            try:
                SERVER.decode(mutate(dice.choice(messages), dice))
            except ProtocolError:
                continue
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1_000_000
    assert peak < 4_000_000
