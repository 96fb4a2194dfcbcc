"""Faults 1 to 10 but 6: bytes that are no message. Numbers are those of the list in docs/protocol.md, section 9."""

from __future__ import annotations

import ast
import contextlib
import pickle
import random
import time
from pathlib import Path

import msgpack
import numpy as np
import psutil
import pytest

from common.checkout import CHECKOUT
from common.codec import Codec, encode
from common.errors import ERR_LIMIT, ERR_MALFORMED, ERR_SHAPE, ERR_VERSION, ProtocolError
from common.messages import PROTOCOL, TO_SERVER, Error, Hello, Pong
from common.step_book import pack_step
from common.transport import sockets
from tests.support.faults import FREE, Neighbour, assert_serves, dial, free_port, wait_for
from tests.support.raw_client import RawClient
from tests.support.stand import SPEC, Stand


@pytest.fixture
def tcp_stand(monkeypatch):
    monkeypatch.setattr(sockets, "HANDSHAKE_MS", 300)
    monkeypatch.setattr(sockets, "MAX_FRAME_BYTES", 1 << 20)
    with Stand(endpoint=f"tcp://127.0.0.1:{free_port()}") as one:
        yield one


def _port(stand: Stand) -> int:
    return int(stand.config.server.endpoint.rpartition(":")[2])


def _refused(raw: RawClient, stand: Stand, frames: list[bytes]) -> Error:
    """The answer to frames that are no message; it is counted."""
    before = stand.server.metrics()["malformed"]
    raw.send_frames(frames)
    answer, _ = raw.receive()
    assert isinstance(answer, Error)
    assert stand.server.metrics()["malformed"] == before + 1
    return answer


@pytest.mark.parametrize("frames", [[b""], [b"", b""], [b"x"], [b"\x81\xa4type"], [b"\xc0"]])
def test_fault_01_an_empty_or_single_frame_is_answered_as_malformed(stand, raw, frames) -> None:
    neighbour = Neighbour(stand)
    assert _refused(raw, stand, frames).code == ERR_MALFORMED
    assert_serves(stand, neighbour)


def test_fault_02_too_many_frames_and_too_many_bytes_in_all_are_refused(stand, raw, monkeypatch) -> None:
    neighbour = Neighbour(stand)
    assert _refused(raw, stand, [b"\x81\xa4type\xa4PING"] + [b""] * 10_000).code == ERR_LIMIT
    monkeypatch.setattr(stand.server._gateway._codec, "_max_bytes", 1 << 20)
    answer = _refused(raw, stand, [b"\x81\xa4type\xa4PING"] + [bytes(100_000)] * 15)
    assert answer.code == ERR_LIMIT
    assert "1500011 bytes in one message; at most 1048576" in answer.message
    assert_serves(stand, neighbour)


def test_fault_03_an_oversized_frame_costs_its_sender_the_connection_and_nobody_else_anything(tcp_stand) -> None:
    neighbour = Neighbour(tcp_stand)
    with RawClient(tcp_stand.config.server.endpoint, SPEC) as raw:
        token = raw.hello("big").token
        raw.send_frames([bytes(2 << 20)])
        deadline = time.monotonic() + 10  # ZeroMQ connects again by itself, as somebody unknown
        while time.monotonic() < deadline:
            raw.socket.send(encode(Hello(protocol=PROTOCOL, client="big", run_id=1,
                                         spec_fingerprint=SPEC.fingerprint(), token=token)))  # fmt: skip
            if raw._poller.wait(0.2):
                break
        welcome, _ = raw.receive()
        assert welcome.resumed
    assert_serves(tcp_stand, neighbour)


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + b"A" * 200,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 500,
        b"\x01\x00\x01\x00\x04\x00\x00\x05hello",
        random.Random(4).randbytes(1 << 20),
    ],
    ids=["http", "tls", "zmtp1", "random"],
)
def test_fault_04_other_protocols_on_the_port_do_no_harm(tcp_stand, data) -> None:
    neighbour = Neighbour(tcp_stand)
    with dial(_port(tcp_stand)) as line:
        line.settimeout(0.5)
        with contextlib.suppress(TimeoutError, ConnectionError):
            line.sendall(data)
            while line.recv(65536):
                pass
        assert_serves(tcp_stand, neighbour)


def test_fault_05_who_connects_and_says_nothing_is_let_go(tcp_stand) -> None:
    neighbour, me = Neighbour(tcp_stand), psutil.Process()
    before = me.num_fds()
    lines = [dial(_port(tcp_stand)) for _ in range(100)]
    for line in lines:
        line.sendall(b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f")  # the first bytes of a greeting
    neighbour.play()
    wait_for(lambda: me.num_fds() <= before + len(lines) + 5)  # the server's ends are closed, ours are left
    for line in lines:
        line.close()
    assert_serves(tcp_stand, neighbour)


def test_fault_07_mutated_messages_get_errors_only(stand, raw) -> None:
    neighbour, dice = Neighbour(stand), random.Random(7)
    valid = [bytes(frame) for frame in encode(*pack_step(1, [stand.decision(0, 0, flags=FREE)], stand.spec))]
    for _ in range(400):
        frames = [bytearray(frame) for frame in valid]
        for _ in range(dice.randint(1, 4)):
            frame = dice.choice(frames)
            if frame and dice.random() < 0.7:
                frame[dice.randrange(len(frame))] ^= 1 << dice.randrange(8)
            elif frame:
                del frame[dice.randrange(len(frame)) :]
        raw.send_frames([bytes(frame) for frame in frames])
    assert raw.alive()
    assert stand.server.metrics()["malformed"] > 200
    assert_serves(stand, neighbour)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_fault_07_a_million_mutated_messages_raise_protocol_errors_only_and_memory_stays() -> None:
    dice, codec = random.Random(8), Codec(TO_SERVER)
    valid = [bytes(frame) for frame in encode(*pack_step(1, [], SPEC))]
    me, before = psutil.Process(), 0
    for number in range(1_000_000):
        frames = [bytearray(frame) for frame in valid]
        frame = frames[0]
        for _ in range(dice.randint(1, 4)):
            frame[dice.randrange(len(frame))] = dice.randrange(256)
        with contextlib.suppress(ProtocolError):
            codec.decode([bytes(frame) for frame in frames])
        if number == 100_000:
            before = me.memory_info().rss
    assert me.memory_info().rss < before + (20 << 20)


BOMBS = {
    "array of 2^32 - 1": b"\xdd\xff\xff\xff\xff",
    "map of 2^32 - 1": b"\xdf\xff\xff\xff\xff",
    "depth 60,000": b"\x91" * 60_000,
    "a map of 8,000 keys": msgpack.packb({str(i): 0 for i in range(8_000)}),
    "keys that are no text": msgpack.packb({1: 2, b"x": 3}),
    "text that is no UTF-8": b"\x81\xa4type\xa4\xff\xfe\xfd\xfc",
    "an ext type": b"\x81\xa4type\xc7\x04\x05abcd",
    "a timestamp": b"\x82\xa4type\xa4PING\xa2id\xd6\xff\x00\x00\x00\x00",
    "NaN for an integer": b"\x82\xa4type\xa4PING\xa2id\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00",
    "an integer of 2^64 - 1": b"\x82\xa4type\xa4STEP\xa2id\xa1x",
}


@pytest.mark.parametrize("name", BOMBS)
def test_fault_08_bombs_are_refused_quickly(stand, raw, name) -> None:
    codec, took = Codec(TO_SERVER), []
    for _ in range(5):
        begin = time.perf_counter()
        with pytest.raises(ProtocolError):
            codec.decode([BOMBS[name]])
        took.append(time.perf_counter() - begin)
    assert min(took) < 0.010
    assert _refused(raw, stand, [BOMBS[name]]).code == ERR_MALFORMED
    assert_serves(stand)


class _Bomb:
    def __reduce__(self):
        return (print, ("a pickle was loaded",))


def test_fault_09_pickles_have_no_effect_and_nobody_loads_any(stand, raw, capsys) -> None:
    payload = pickle.dumps(_Bomb())
    assert _refused(raw, stand, [payload]).code == ERR_MALFORMED
    header = msgpack.packb({"type": "STEP", "id": 1, "tensors": [["keys", "uint8", [len(payload)]]]})
    assert _refused(raw, stand, [header, payload]).code == ERR_SHAPE
    header = msgpack.packb({"type": "HELLO", "protocol": PROTOCOL, "client": payload, "run_id": 1})
    assert _refused(raw, stand, [header]).code == ERR_MALFORMED
    assert "pickle was loaded" not in capsys.readouterr().out
    for file in sorted(p for role in ("common", "inference_server") for p in (CHECKOUT / role).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            module = getattr(node, "module", None) if isinstance(node, ast.ImportFrom) else None
            assert not {"pickle", "cloudpickle", "dill", "marshal"} & {*names, module}, file
            loads_torch = isinstance(node, ast.Attribute) and node.attr == "load" and ast.unparse(node) == "torch.load"
            assert not loads_torch, file
    assert_serves(stand)


def test_fault_10_another_version_or_type_is_refused_by_name(stand) -> None:
    with RawClient(stand.run_dir.endpoint("data"), stand.spec) as raw:
        answer = raw.ask(Hello(protocol="simul/9", client="x", run_id=1, spec_fingerprint="f"))
        assert (answer.code, answer.message) == (ERR_VERSION, "this server speaks simul/1; got 'simul/9'")
        for unknown in ("TELEPORT", "ACTIONS"):
            answer = _refused(raw, stand, [msgpack.packb({"type": unknown, "id": 1})])
            assert answer.code == ERR_VERSION
            assert unknown in answer.message
            assert "simul/1" in answer.message
    assert_serves(stand)


def test_extra_error_texts_name_no_path_and_no_address(stand, raw) -> None:
    texts = [_refused(raw, stand, frames).message for frames in ([b""], [b"\xc0"], [BOMBS["an ext type"]])]
    step, tensors = pack_step(1, [stand.decision(0, 5, flags=0)], stand.spec)
    texts.append(raw.ask(step, tensors).message)
    texts.append(raw.ask(step, tensors | {"mask": np.zeros((1, 3), np.uint8)}).message)
    for text in texts:
        assert text
        assert str(stand.run_dir.root) not in text
        assert not any(word in text for word in ("/home", "/tmp", "ipc://", "tcp://", ".py", "0x"))


def test_extra_the_control_socket_is_its_owners_alone(stand, raw) -> None:
    folder = Path(stand.run_dir.endpoint("control").removeprefix("ipc://")).parent
    assert folder.stat().st_mode & 0o777 == 0o700
    assert _refused(raw, stand, [msgpack.packb({"type": "SHUTDOWN"})]).code == ERR_VERSION
    raw.send_frames([msgpack.packb({"type": "PING", "id": 3})])
    assert isinstance(raw.receive()[0], Pong)
    assert_serves(stand)
