"""A stand-in for the learner: grants credit, publishes weights, and checks every unroll it receives."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from common.codec import Codec, encode
from common.messages import PROTOCOL, TO_LEARNER, Credit, ServerHello, Unroll, Weights, WeightsAck
from common.nets.weights import fingerprint
from common.rundir import RunDir
from common.transport import Poller, RouterSocket


class FakeLearner:
    """Owns both learner sockets in a thread of its own."""

    def __init__(self, run_dir: RunDir, weights: bytes, version: int = 0, credit: int = 1_000_000) -> None:
        self.unrolls: list[tuple[Unroll, dict[str, Any]]] = []
        self.acks: list[WeightsAck] = []
        self.credit = credit
        self._unroll_socket = RouterSocket(run_dir.endpoint("unrolls"))
        self._weights_socket = RouterSocket(run_dir.endpoint("weights"))
        self._codec: Codec[TO_LEARNER] = Codec(TO_LEARNER)
        self._servers: dict[bytes, bool] = {}
        self._unroll_peers: set[bytes] = set()
        self._current = self.message("learner", version, weights)
        self._outbox: list[tuple[Weights, bytes]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @staticmethod
    def message(policy: str, version: int, data: bytes, resident: tuple[str, ...] = ()) -> tuple[Weights, bytes]:
        """A Weights message for safetensors bytes."""
        return Weights(policy=policy, policy_version=version, fingerprint=fingerprint(data), resident=resident), data

    def start(self) -> FakeLearner:
        self._thread.start()
        return self

    def publish(self, policy: str, version: int, data: bytes, resident: tuple[str, ...] = ()) -> None:
        self._outbox.append(self.message(policy, version, data, resident))

    def publish_raw(self, message: Weights, data: bytes) -> None:
        self._outbox.append((message, data))

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(5)

    def steps(self) -> int:
        return sum(message.length for message, _ in self.unrolls)

    def _run(self) -> None:
        poller = Poller([self._unroll_socket, self._weights_socket])
        next_credit = 0.0
        while not self._stop.is_set():
            poller.wait(0.01)
            while (received := self._unroll_socket.receive()) is not None:
                peer, frames = received
                message, tensors = self._codec.decode(frames)
                if isinstance(message, ServerHello):
                    assert message.protocol == PROTOCOL
                    self._unroll_peers.add(peer)
                    next_credit = 0.0
                else:
                    assert isinstance(message, Unroll)
                    check_unroll(message, tensors)
                    self.unrolls.append((message, {name: array.copy() for name, array in tensors.items()}))
            while (received := self._weights_socket.receive()) is not None:
                peer, frames = received
                message, _ = self._codec.decode(frames)
                if isinstance(message, ServerHello):
                    self._servers[peer] = True
                    self._send(peer, self._current)
                else:
                    assert isinstance(message, WeightsAck)
                    self.acks.append(message)
            while self._outbox:
                item = self._outbox.pop(0)
                for peer in self._servers:
                    self._send(peer, item)
            if time.monotonic() > next_credit:
                next_credit = time.monotonic() + 0.3
                for peer in self._unroll_peers:
                    self._unroll_socket.send(peer, encode(Credit(total=self.credit)))
        self._unroll_socket.close()
        self._weights_socket.close()

    def _send(self, peer: bytes, item: tuple[Weights, bytes]) -> None:
        message, data = item
        self._weights_socket.send(peer, encode(message, {"safetensors": np.frombuffer(data, np.uint8)}))


def check_unroll(message: Unroll, tensors: dict[str, Any]) -> None:
    """The shapes and dtypes that `common.messages.Unroll` promises."""
    n = message.length
    assert n >= 1
    assert not (message.terminated and message.truncated)
    assert len(tensors["observation"]) == len(tensors["mask"]) == len(tensors["value"]) == n + 1
    for name, dtype in (
        ("action", np.int32),
        ("log_prob", np.float32),
        ("reward", np.float32),
        ("policy_version", np.int64),
    ):
        assert tensors[name].shape == (n,)
        assert tensors[name].dtype == dtype
    legal = tensors["mask"][np.arange(n), tensors["action"]]
    assert (legal == 1).all()
    assert (tensors["log_prob"] <= 0).all()
    assert (np.diff(tensors["policy_version"]) >= 0).all()
    if message.terminated:
        assert tensors["value"][-1] == 0
        assert not tensors["observation"][-1].any()
