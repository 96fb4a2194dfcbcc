"""Faults 1, 2 and 10: what is no message. Numbers are those of the fault list in docs/protocol.md, section 9."""

from __future__ import annotations

from pathlib import Path

import msgpack
import numpy as np
import pytest

from simul.common.client.steps import pack_step
from simul.common.errors import ERR_LIMIT, ERR_MALFORMED, ERR_VERSION
from simul.common.protocol.messages import Hello, Pong
from tests.support.raw_client import RawClient


@pytest.mark.parametrize("frames", [[b""], [b"", b""], [b"x"], [b"\x81\xa4type"], [b"\xc0"]])
@pytest.mark.counts("malformed", by=1)
def test_fault_01_an_empty_or_single_frame_is_answered_as_malformed(stand, raw, frames) -> None:
    assert raw.refused(frames).code == ERR_MALFORMED


@pytest.mark.counts("malformed", by=2)
def test_fault_02_too_many_frames_and_too_many_bytes_in_all_are_refused(stand, raw, monkeypatch) -> None:
    assert raw.refused([b"\x81\xa4type\xa4PING"] + [b""] * 10_000).code == ERR_LIMIT
    monkeypatch.setattr(stand.server._client_socket._codec, "_max_bytes", 1 << 20)
    answer = raw.refused([b"\x81\xa4type\xa4PING"] + [bytes(100_000)] * 15)
    assert answer.code == ERR_LIMIT
    assert "1500011 bytes in one message; at most 1048576" in answer.message


@pytest.mark.counts("malformed", by=3)
def test_fault_10_another_version_or_type_is_refused_by_name(stand) -> None:
    with RawClient(stand.run_dir.endpoint("data"), stand.spec) as raw:
        answer = raw.ask(Hello(protocol="simul/9", client="x", run_id=1, spec_fingerprint="f"))
        assert (answer.code, answer.message) == (ERR_VERSION, "this server speaks simul/1; got 'simul/9'")
        for unknown in ("TELEPORT", "ACTIONS"):
            answer = raw.refused([msgpack.packb({"type": unknown, "id": 1})])
            assert answer.code == ERR_VERSION
            assert unknown in answer.message
            assert "simul/1" in answer.message


@pytest.mark.counts("malformed")
def test_extra_error_texts_name_no_path_and_no_address(stand, raw) -> None:
    texts = [raw.refused(frames).message for frames in ([b""], [b"\xc0"], [b"\x81\xa4type\xc7\x04\x05abcd"])]
    step, tensors = pack_step(1, [stand.decision(0, 5, flags=0)], stand.spec)
    texts.append(raw.ask(step, tensors).message)
    texts.append(raw.ask(step, tensors | {"mask": np.zeros((1, 3), np.uint8)}).message)
    for text in texts:
        assert text
        assert str(stand.run_dir.root) not in text
        assert not any(word in text for word in ("/home", "/tmp", "ipc://", "tcp://", ".py", "0x"))


@pytest.mark.counts("malformed", by=1)
def test_extra_the_control_socket_is_its_owners_alone(stand, raw) -> None:
    folder = Path(stand.run_dir.endpoint("control").removeprefix("ipc://")).parent
    assert folder.stat().st_mode & 0o777 == 0o700
    assert raw.refused([msgpack.packb({"type": "SHUTDOWN"})]).code == ERR_VERSION
    raw.send_frames([msgpack.packb({"type": "PING", "id": 3})])
    assert isinstance(raw.receive()[0], Pong)
