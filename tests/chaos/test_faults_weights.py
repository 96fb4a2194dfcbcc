"""Fault 32: swap upon swap under load, uploads that are cut off, weights that are half written, learners that die."""

from __future__ import annotations

import contextlib
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from simul.common.nets.build import build_network
from simul.common.nets.io import weights_to_bytes
from simul.common.protocol.codec import Codec, encode
from simul.common.protocol.messages import FROM_LEARNER, Weights
from simul.common.runtime.installation import ROOT
from simul.inference_server.engine.engine import PolicyEngine
from simul.inference_server.policies import engine_factory
from tests.support.fake_learner import FakeLearner
from tests.support.faults import FREE, assert_balanced, unharmed
from tests.support.stand import Stand, exchange
from tests.support.waiting import PATIENCE_SEC, wait_for

STORM, ENVS = 60, 8


def _constant(stand: Stand, versions: range) -> list[bytes]:
    """Weights whose value is the number of their version, whatever they are asked."""
    network, every = build_network(stand.config.network, stand.spec), []
    for version in versions:
        for parameter in network.value_head.parameters():
            parameter.data.zero_()
        network.value_head.bias.data.fill_(float(version))
        every.append(weights_to_bytes(network))
    return every


def _storm(stand: Stand) -> dict[str, list[int]]:
    """Versions as they came to two clients, each of which plays as fast as it is answered, with ever new weights."""
    every = _constant(stand, range(1, STORM + 1))
    clients = {name: stand.client(name, training=False) for name in ("a", "b")}
    found, step = {name: [] for name in clients}, dict.fromkeys(clients, 0)
    published, deadline = 0, time.monotonic() + PATIENCE_SEC
    while not all(seen and seen[-1] == STORM for seen in found.values()):
        if published < STORM:
            stand.learner.publish("learner", published + 1, every[published])
            published += 1
        for name, client in clients.items():
            replies = client.poll()
            assert not replies.failures
            assert all(a.value == a.policy_version for a in replies.actions if a.policy_version)
            found[name] += [a.policy_version for a in replies.actions]
            if not client.waiting:
                assert time.monotonic() < deadline
                flags = 0 if step[name] else FREE
                client.submit([stand.decision(env, step[name], flags=flags) for env in range(ENVS)])
                step[name] += 1
        next(iter(clients.values())).poller.wait(0.01)
    return found


@pytest.mark.parametrize(("precision", "exact"), [("float32", True), ("bfloat16", False)])
def test_fault_32_a_storm_of_swaps_while_clients_play(precision: str, exact: bool) -> None:
    """How many a second there are, and how long replies take meanwhile: benchmarks/RESULTS.md."""
    with Stand(precision=precision) as stand, unharmed(stand, "swaps") if exact else contextlib.nullcontext():
        before, found, after = stand.server.metrics(), _storm(stand), stand.server.metrics()
        assert all(seen == sorted(seen) for seen in found.values())
        swaps, overtaken = (after[name] - before[name] for name in ("swaps", "weights_overtaken"))
        assert swaps + overtaken == STORM
        assert after["weights_refused"] == 0
        assert set(after["swap_us"]) == {"p50", "p99"}
        assert_balanced(stand)


@contextlib.contextmanager
def _held(monkeypatch: pytest.MonkeyPatch, where: object, name: str):
    """The function stands still where it is called, until the event is set."""
    inside, go, original = threading.Event(), threading.Event(), getattr(where, name)

    def held(*arguments, **named):
        inside.set()
        assert go.wait(PATIENCE_SEC)
        return original(*arguments, **named)

    monkeypatch.setattr(where, name, held)
    try:
        yield inside, go
    finally:
        go.set()


def test_fault_32_replies_go_on_while_weights_are_verified_and_only_the_newest_wait(monkeypatch) -> None:
    with Stand() as stand:
        client, every = stand.client("a"), _constant(stand, range(6))
        exchange(client, [stand.decision(0, 0)])
        with _held(monkeypatch, engine_factory, "verify") as (inside, go):
            stand.learner.publish("learner", 1, every[1])
            assert inside.wait(PATIENCE_SEC)
            for version in (2, 3, 4):
                stand.learner.publish("learner", version, every[version])
            wait_for(lambda: stand.server.metrics()["weights_overtaken"] == 2)
            for step in range(1, 6):
                assert exchange(client, [stand.decision(0, step)]).actions[0].policy_version == 0
            assert stand.server.metrics()["swaps"] == 1
            go.set()
        wait_for(lambda: stand.server.metrics()["policy_version"] == 4)
        assert exchange(client, [stand.decision(0, 6)]).actions[0].value == 4.0
        wait_for(lambda: len(stand.learner.acks) == 5)
        overtaken = {2: True, 3: True, 1: False, 4: False}
        assert {ack.policy_version: ack.overtaken for ack in stand.learner.acks[1:]} == overtaken
        assert [ack.policy_version for ack in stand.learner.acks if ack.accepted] == [0, 1, 4]


def test_replies_go_on_while_a_past_self_joins_and_nothing_is_recorded_again(monkeypatch) -> None:
    with Stand() as stand:
        client, policies = stand.client("a"), stand.server._weight_updates._policies
        exchange(client, [stand.decision(0, 0)])
        monkeypatch.setattr("simul.inference_server.engine.engine.trace_network", None)
        with _held(monkeypatch, PolicyEngine, "twin") as (inside, go):
            stand.learner.publish("past/7", 7, _constant(stand, range(7, 8))[0], resident=("learner", "past/7"))
            assert inside.wait(PATIENCE_SEC)
            for step in range(1, 6):
                assert exchange(client, [stand.decision(0, step)]).actions[0].policy_version == 0
            assert policies.names == ("learner",)
            go.set()
        wait_for(lambda: policies.names == ("learner", "past/7"))
        assert exchange(client, [stand.decision(1, 0, policy="past/7")]).actions[0].value == 7.0
        assert exchange(client, [stand.decision(0, 6)]).actions[0].value != 7.0


def test_fault_32_what_is_half_written_or_changed_on_its_way_is_refused() -> None:
    with Stand() as stand, unharmed(stand, "weights_refused"):
        client, good = stand.client("a"), _constant(stand, range(9, 10))[0]
        message, _ = FakeLearner.message("learner", 9, good)
        half = len(good) // 2
        flipped = bytearray(good)
        flipped[-5] ^= 0x10
        damaged = [good[:half] + bytes(len(good) - half), bytes(flipped), good[:half], good[:-1], good + b"\0", b""]
        for data in damaged:
            stand.learner.publish_raw(message, data)
        stand.learner.publish("learner", 5, b"\x80\x04pickle")  # whole, and no weights
        wait_for(lambda: stand.server.metrics()["weights_refused"] == len(damaged) + 1)
        assert exchange(client, [stand.decision(0, 0)]).actions[0].policy_version == 0
        assert ["torn" in ack.reason for ack in stand.learner.acks[1:]] == [True] * len(damaged) + [False]
        assert not any(ack.accepted for ack in stand.learner.acks[1:])
        stand.learner.publish_raw(message, good)
        wait_for(lambda: stand.server.metrics()["policy_version"] == 9)
        assert exchange(client, [stand.decision(0, 1)]).actions[0].value == 9.0


def _half_an_upload(stand: Stand) -> bytes:
    """ZMTP 3.0 by hand: greeting, READY, a WEIGHTS message whose second frame breaks off."""
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
    ready = b"\x05READY\x0bSocket-Type" + struct.pack(">I", 6) + b"ROUTER"
    header, tensor = encode(*_weights(stand))
    return b"".join((
        greeting, bytes((4, len(ready))), ready, struct.pack(">BQ", 3, len(header)), header,
        struct.pack(">BQ", 2, len(tensor)), bytes(tensor)[: len(tensor) // 2],
    ))  # fmt: skip


def _weights(stand: Stand):
    message, data = FakeLearner.message("learner", 5, _constant(stand, range(5, 6))[0])
    return message, {"safetensors": np.frombuffer(data, np.uint8)}


def test_fault_32_a_learner_killed_in_the_middle_of_an_upload_leaves_the_old_weights(monkeypatch) -> None:
    with Stand() as stand:
        client = stand.client("a", training=False)
        exchange(client, [stand.decision(0, 0, flags=FREE)])
        stand.learner.stop()
        path = stand.run_dir.sockets / "weights.ipc"
        path.unlink(missing_ok=True)  # closed sockets leave it behind
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen()
            listener.settimeout(PATIENCE_SEC)
            line, _ = listener.accept()
            with line:
                line.sendall(_half_an_upload(stand))
                assert exchange(client, [stand.decision(0, 1)]).actions[0].policy_version == 0
        path.unlink()
        assert exchange(client, [stand.decision(0, 2)]).actions[0].policy_version == 0
        metrics = stand.server.metrics()
        assert (metrics["swaps"], metrics["weights_refused"], metrics["offered_version"]) == (1, 0, 0)
        monkeypatch.setattr("simul.inference_server.unrolls.learner_link.SILENT_AFTER_SEC", 0.6)  # it has been silent
        stand.learner = FakeLearner(stand.run_dir, _constant(stand, range(7, 8))[0], version=7).start()
        wait_for(lambda: stand.server.metrics()["policy_version"] == 7)
        assert exchange(client, [stand.decision(0, 3)]).actions[0].value == 7.0


linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is shared on Linux only")

PUBLISHER = """
import hashlib, sys
from pathlib import Path
from simul.common.protocol.messages import Weights
from simul.learner.io.weight_publisher import Publication
weights = Path(sys.argv[1]).read_bytes()
fingerprint = hashlib.sha256(weights).hexdigest()
publication = Publication(Weights(policy="learner", policy_version=5, fingerprint=fingerprint), weights)
assert publication.write_to_memory()
sys.stdout.write(publication.frames(in_memory=True)[0].hex() + "\\n")
sys.stdout.flush()
sys.stdin.read()
"""


@pytest.fixture
def stand() -> Iterator[Stand]:
    with Stand() as one:
        yield one


@pytest.fixture
def publisher(stand: Stand, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], Weights]]:
    """A process in whose memory weights lie, and its message."""
    file = tmp_path / "weights"
    file.write_bytes(stand.weights(seed=5))
    command = [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); {PUBLISHER}", file]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        header = bytes.fromhex(process.stdout.readline().decode())
        message, _ = Codec[Weights](FROM_LEARNER).decode([header])
        yield process, message
        process.kill()


@linux
def test_fault_32_a_learner_killed_before_its_weights_were_read_leaves_the_old_ones(stand, publisher) -> None:
    process, message = publisher
    client = stand.client("a")
    exchange(client, [stand.decision(0, 0)])
    process.kill()
    process.wait()
    stand.learner.publish_raw(message)
    wait_for(lambda: stand.server.metrics()["weights_unreadable"] == 1)
    assert exchange(client, [stand.decision(0, 1)]).actions[0].policy_version == 0
    wait_for(lambda: len(stand.learner.acks) == 2)
    answer = stand.learner.acks[-1]
    assert (answer.policy_version, answer.accepted, answer.unreadable) == (5, False, True)
    stand.learner.publish_raw(*FakeLearner.message("learner", 6, stand.weights(seed=6)))
    wait_for(lambda: stand.server.metrics()["policy_version"] == 6)
    assert exchange(client, [stand.decision(0, 2)]).actions[0].policy_version == 6  # in a turn behind the swap's
    metrics = stand.server.metrics()
    assert (metrics["swaps"], metrics["weights_refused"], metrics["weights_in_memory"]) == (2, 0, 0)
    assert_balanced(stand)


@linux
def test_fault_32_of_a_learner_killed_while_its_weights_are_read_they_are_served(stand, publisher, monkeypatch) -> None:
    process, message = publisher
    open_then = engine_factory.open_sealed

    def killing(path: str, number: int) -> int:
        file = open_then(path, number)
        process.kill()
        process.wait()
        return file

    monkeypatch.setattr(engine_factory, "open_sealed", killing)
    client = stand.client("a")
    stand.learner.publish_raw(message)
    wait_for(lambda: stand.server.metrics()["policy_version"] == 5)
    assert not Path(message.path).exists()
    assert exchange(client, [stand.decision(0, 0)]).actions[0].policy_version == 5
    metrics = stand.server.metrics()
    assert (metrics["swaps"], metrics["weights_in_memory"], metrics["weights_unreadable"]) == (2, 1, 0)
    assert_balanced(stand)
