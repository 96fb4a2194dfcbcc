"""Faults 7 to 9: damaged messages, bombs, pickles."""

from __future__ import annotations

import ast
import pickle
import random
import time

import msgpack
import psutil
import pytest

from simul.common import errors
from simul.common.client.steps import pack_step
from simul.common.errors import ERR_LIMIT, ERR_MALFORMED, ERR_SHAPE
from simul.common.protocol.messages import PROTOCOL, Actions, Error, Hello, Pong
from simul.common.runtime.installation import ROOT
from tests.support.faults import FREE
from tests.support.mutants import mutate, valid_messages
from tests.support.raw_client import RawClient

CODES = {getattr(errors, name) for name in dir(errors) if name.startswith("ERR_")}


@pytest.mark.parametrize("count", [2_000, pytest.param(1_000_000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
@pytest.mark.counts("malformed")
def test_fault_07_mutated_messages_get_typed_errors_only_and_memory_stays(stand, neighbour, count) -> None:
    """Through the whole server: whatever still decodes is admitted, or refused, with a live session to be spoilt."""
    dice, valid, me, before = random.Random(count), valid_messages(stand.spec), psutil.Process(), 0
    fingerprint = stand.spec.fingerprint()
    with RawClient(stand.run_dir.endpoint("data"), stand.spec) as raw:
        for sent in range(0, count, 100):
            raw.send(Hello(PROTOCOL, "mutant", time.time_ns(), fingerprint))  # again: a CLOSE may have survived
            raw.send(*pack_step(1, [stand.decision(0, 0, episode=3, flags=FREE)], stand.spec))
            for _ in range(100):
                raw.send_frames(mutate(dice.choice(valid), dice) or [b""])
            _read_to_the_end(raw, sent)
            neighbour.play(1)
            if sent == min(100_000, count // 2):
                before = me.memory_info().rss
    assert stand.server.metrics()["malformed"] > count / 2
    assert me.memory_info().rss < before + (20 << 20)


def _read_to_the_end(raw: RawClient, number: int) -> None:
    """Every refusal has a code. The end is one that nothing else is answered with, known as a client or not."""
    raw.send(Hello(f"end {number}", "", 0, ""))
    while not (isinstance(answer := raw.receive()[0], Error) and f"'end {number}'" in answer.message):
        assert not isinstance(answer, Error) or answer.code in CODES


@pytest.mark.counts("malformed", by=3)
def test_fault_08_bombs_are_refused(raw) -> None:
    """How quickly and cheaply, and many more of them: tests/unit/common/protocol/test_codec.py."""
    assert raw.refused([b"\xdf\xff\xff\xff\xff"]).code == ERR_MALFORMED
    assert raw.refused([b"\x91" * 60_000]).code == ERR_MALFORMED
    assert raw.refused([msgpack.packb(dict.fromkeys(map(str, range(1_000_000)), 0))]).code == ERR_LIMIT


@pytest.mark.counts("malformed", by=1)
def test_fault_08_the_largest_integer_is_a_number_like_any_other(stand, raw) -> None:
    largest = 2**64 - 1
    _, tensors = pack_step(1, [stand.decision(0, 0, flags=FREE)], stand.spec)
    declared = [[name, tensor.dtype.name, list(tensor.shape)] for name, tensor in tensors.items()]
    frames = [tensor.tobytes() for tensor in tensors.values()]
    raw.send_frames([msgpack.packb({"type": "PING", "id": largest})])
    assert raw.receive()[0] == Pong(id=largest, policies=("learner",))
    raw.send_frames([
        msgpack.packb({"type": "STEP", "id": largest, "deadline_ms": largest, "tensors": declared}), *frames
    ])  # fmt: skip
    answer, _ = raw.receive()
    assert (type(answer), answer.id) == (Actions, largest)
    declared[0][2] = [largest, 5]
    header = msgpack.packb({"type": "STEP", "id": 2, "tensors": declared})
    assert raw.refused([header, *frames]).code == ERR_SHAPE


class _Bomb:
    def __reduce__(self):
        return (print, ("a pickle was loaded",))


@pytest.mark.counts("malformed", by=3)
def test_fault_09_pickles_have_no_effect(raw, capsys) -> None:
    payload = pickle.dumps(_Bomb())
    assert raw.refused([payload]).code == ERR_MALFORMED
    header = msgpack.packb({"type": "STEP", "id": 1, "tensors": [["keys", "uint8", [len(payload)]]]})
    assert raw.refused([header, payload]).code == ERR_SHAPE
    header = msgpack.packb({"type": "HELLO", "protocol": PROTOCOL, "client": payload, "run_id": 1})
    assert raw.refused([header]).code == ERR_MALFORMED
    assert "pickle was loaded" not in capsys.readouterr().out


def test_extra_nobody_loads_pickles() -> None:
    roles = ("common", "env_worker", "inference_server", "launch", "learner")
    files = sorted(p for role in roles for p in (ROOT / role).rglob("*.py") if "node_modules" not in p.parts)
    assert len(files) > 200
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            module = getattr(node, "module", None) if isinstance(node, ast.ImportFrom) else None
            assert not {"pickle", "cloudpickle", "dill", "marshal"} & {*names, module}, file
            loads_torch = isinstance(node, ast.Attribute) and node.attr == "load" and ast.unparse(node) == "torch.load"
            assert not loads_torch, file
