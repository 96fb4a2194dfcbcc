"""What the mock server tells the author of a client about their frames."""

from __future__ import annotations

import json
import subprocess
import sys

import msgpack
import msgspec
import numpy as np
import pytest

from simul.common.client.steps import pack_step
from simul.common.protocol.codec import Codec, encode
from simul.common.protocol.decisions import Decision
from simul.common.protocol.frame_dump import describe_frames
from simul.common.protocol.messages import (
    ABORTED,
    PROTOCOL,
    TERMINATED,
    TO_CLIENT,
    Close,
    Error,
    Hello,
    Ping,
    StatusRequest,
)
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.installation import ROOT
from simul.inference_server.mock_server import MockServer

SPEC = GameSpec("toy", 3, 2)
HELLO = Hello(protocol=PROTOCOL, client="c", run_id=1, spec_fingerprint="f")
VECTORS = json.loads((ROOT / "tests" / "golden" / "protocol" / "vectors.json").read_text())["vectors"]


def decision(step=0, **more):
    start = {"flags": 1} if step == 0 else {}
    given = {"observation": np.zeros(3, np.float32), "mask": np.ones(2, np.uint8), **start, **more}
    return Decision(env=0, seat=0, episode=0, step=step, **given)


def tell(mock, message, tensors=None):
    """(what is printed, the answers)"""
    frames = message if isinstance(message, list) else [bytes(frame) for frame in encode(message, tensors)]
    lines, replies = mock.handle(frames)
    return "\n".join(lines), [Codec(TO_CLIENT).decode([bytes(frame) for frame in reply]) for reply in replies]


def after_hello():
    mock = MockServer(SPEC)
    words, [(welcome, _)] = tell(mock, HELLO)
    assert "valid: answered with WELCOME" in words
    assert (welcome.game, welcome.observation_size, welcome.num_actions, welcome.resumed) == ("toy", 3, 2, False)
    return mock


@pytest.mark.parametrize(
    "declared", [5, None, {"observation": 1}, [["a", "O", [1]]], [["a", [], [1]]], [["a", "S4", [1]]]], ids=str
)
def test_whatever_a_header_declares_is_described(declared):
    header = msgpack.packb({"type": "STEP", "id": 1, "tensors": declared})
    words, [(error, _)] = tell(after_hello(), [header, b"1234"])
    assert "wrong: " in words
    assert error.code in ("ERR_MALFORMED", "ERR_SHAPE")


def test_a_message_that_it_does_not_answer_is_named():
    words, answers = tell(after_hello(), StatusRequest(id=1))
    assert (answers, "the mock server has no answer to it" in words) == ([], True)


def test_a_right_client_is_answered():
    mock = after_hello()
    for step in (0, 1, 1):
        words, [(_, tensors)] = tell(mock, *pack_step(9, [decision(step)], SPEC))
        assert "observation: float32 [1, 3] declared = 12 bytes, found: 0, 0, 0" in words
        assert tensors["action"].item() in (0, 1)
        assert tensors["log_prob"].item() == pytest.approx(np.log(0.5))
    _, [(_, tensors)] = tell(mock, *pack_step(9, [decision(2, kind=TERMINATED)], SPEC))
    assert (tensors["action"].item(), tensors["policy_version"].item()) == (-1, -1)
    assert tell(mock, Ping(id=4))[1][0][0].id == 4
    assert tell(mock, Close())[1] == []
    assert tell(mock, Ping())[1][0][0].code == "ERR_HELLO"


def test_a_client_that_asks_for_the_fingerprint_is_told_it_as_by_the_server():
    for mock, fingerprint in ((MockServer(SPEC), SPEC.fingerprint()), (MockServer(SPEC, "feed"), "feed")):
        _, [(error, _)] = tell(mock, msgspec.structs.replace(HELLO, spec_fingerprint="?"))
        assert (error.code, error.message) == ("ERR_SPEC", f"this server plays toy with spec {fingerprint}; got '?'")


def test_the_golden_messages_of_a_client_are_understood():
    mock = after_hello()
    for vector in VECTORS:
        if vector["direction"] == "to the server" and vector["header"]["type"] in ("HELLO", "PING", "CLOSE"):
            words, _ = tell(mock, [bytes.fromhex(frame) for frame in vector["frames"]])
            assert "wrong" not in words, vector["name"]


@pytest.mark.parametrize(
    ("hello", "said"),
    [
        ({"protocol": "simul/0"}, "ERR_VERSION: this server speaks simul/1; got 'simul/0'. Fix: use a client"),
        ({"spec_fingerprint": "0bad"}, "with spec feed; got '0bad'. Fix: the client encodes for another game"),
    ],
)
def test_a_handshake_that_is_refused_says_why(hello, said):
    words, [(error, _)] = tell(MockServer(SPEC, "feed"), msgspec.structs.replace(HELLO, **hello))
    assert said in words
    assert error.code in said or error.code == "ERR_SPEC"


HEADER = {"type": "STEP", "id": 1}


@pytest.mark.parametrize(
    ("frames", "said"),
    [
        ([], "no frame at all"),
        ([b"", b"\x80"], "it is empty: send no delimiter; use a DEALER socket, not REQ"),
        ([b'{"type": "HELLO"}'], "it looks like JSON: the header is MessagePack"),
        ([b"GET / HTTP/1.1\r\n"], "it is HTTP"),
        ([b"\xc1"], "it is not MessagePack"),
        ([msgpack.packb({"type": "HELLO", "protocol": "simul/1"})], "missing required field `client`"),
        ([msgpack.packb({"type": "STEP", "id": 3.0})], "Expected `int`, got `float` - at `$.id`"),
        ([msgpack.packb({"type": "STEP", "id": 1, "row": 1})], "contains unknown field `row`"),
        ([msgpack.packb({"type": "MOVE"})], "Invalid value 'MOVE'"),
        (
            [msgpack.packb({**HEADER, "tensors": [["keys", "int64", [1, 5]]]})],
            "int64 [1, 5] declared = 40 bytes; the fr",
        ),
        ([msgpack.packb(HEADER), b"abc"], "3 bytes that the header does not declare"),
        ([msgpack.packb({**HEADER, "tensors": [["keys", "int64", [1, 5]]]}), b"abc"], "= 40 bytes; 3 found: 61 62 63"),
        ([msgpack.packb({**HEADER, "tensors": [["keys", "bool", [1]]]}), b"a"], "has dtype 'bool'; expected one of"),
        ([msgpack.packb({**HEADER, "tensors": [["keys"]]}), b"a"], "declared as ['keys']: expected [name, dtype, "),
        ([msgpack.packb(HEADER)], "tensor 'keys' is missing"),
    ],
)
def test_frames_that_do_not_fit_are_explained(frames, said):
    words, answers = tell(after_hello(), frames)
    assert said in words
    assert [type(answer) for answer, _ in answers] == [Error]


def spoilt(**columns):
    """A good STEP of one row with some tensors replaced."""
    message, tensors = pack_step(1, [decision()], SPEC)
    return message, {**tensors, **{name: np.array(values) for name, values in columns.items()}}


@pytest.mark.parametrize(
    ("columns", "code", "said"),
    [
        ({"observation": np.zeros((1, 3))}, "ERR_SHAPE", "expected float32 [1, 3], got float64 [1, 3]"),
        ({"observation": np.zeros((1, 4), np.float32)}, "ERR_SHAPE", "got float32 [1, 4]"),
        ({"extra": np.zeros(1)}, "ERR_SHAPE", "tensor 'extra' is not of this message"),
        ({"flags": np.array([9], np.uint8)}, "ERR_VALUE", "flags 9; expected a sum of 1 START, 2 RECORD and 4 GREEDY"),
        ({"observation": np.full((1, 3), np.nan, np.float32)}, "ERR_VALUE", "observation[0] is nan; expected finite"),
        ({"reward": np.array([np.inf], np.float32)}, "ERR_VALUE", "the reward is inf; expected a finite number"),
        ({"kind": np.array([9], np.uint8)}, "ERR_VALUE", "kind 9; expected 0 (decision) to 3 (aborted)"),
        ({"mask": np.zeros((1, 2), np.uint8)}, "ERR_MASK", "the mask allows no action"),
        ({"mask": np.full((1, 2), 255, np.uint8)}, "ERR_MASK", "1 legal and 0 not"),
        ({"policy": np.array([1], np.uint8)}, "ERR_SHAPE", "policy index 1 of 1 names"),
        ({"temperature": np.zeros(1, np.float32)}, "ERR_VALUE", "temperature 0; expected 0.001 to 100"),
        ({"flags": np.array([3], np.uint8)}, "ERR_DENIED", "RECORD needs the run's training token"),
        ({"flags": np.zeros(1, np.uint8)}, "ERR_NO_SESSION", "flag START (1) at step 0"),
        ({"keys": np.array([[0, 0, 0, 1, 0]], np.int64)}, "ERR_ORDER", "START belongs to step 0 attempt 0; got step 1"),
    ],
)
def test_rows_that_do_not_fit_are_explained(columns, code, said):
    words, [(error, _)] = tell(after_hello(), *spoilt(**columns))
    assert said in words
    assert error.code == code


def test_a_bad_row_does_not_hold_up_its_mates_and_steps_are_counted():
    mock = after_hello()
    tell(mock, *pack_step(1, [decision()], SPEC))
    other = decision()
    other.env = 1
    words, [(_, tensors), (error, _)] = tell(mock, *pack_step(2, [other, decision(5)], SPEC))
    assert tensors["row"].tolist() == [0]
    assert (error.code, error.rows) == ("ERR_ORDER", (1,))
    assert "wrong (rows [1]): ERR_ORDER: expected step 1 attempt 0, or step 0 attempt 1; got step 5" in words
    assert tell(mock, *pack_step(3, [decision(7, kind=ABORTED)], SPEC))[1][0][1]["action"].tolist() == [-1]


def test_numbers_in_the_other_byte_order_are_pointed_out():
    words, _ = tell(after_hello(), *spoilt(keys=np.array([[1, 0, 0, 0, 0]], np.int64).byteswap()))
    assert "the keys look byte-swapped; numbers are little-endian" in words


def test_it_needs_no_torch():
    code = "import sys, simul.inference_server.mock_server; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "False"


def test_a_header_full_of_nonsense_stays_short():
    assert max(map(len, describe_frames([msgpack.packb({"type": "x" * 10_000})]))) < 1200
