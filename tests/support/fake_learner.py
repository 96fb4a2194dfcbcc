"""A stand-in for the learner: grants credit, publishes weights, and checks every unroll it receives, either way."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from simul.common.nets.io import fingerprint
from simul.common.protocol.codec import Codec, encode
from simul.common.protocol.messages import (
    PROTOCOL,
    TO_LEARNER,
    Credit,
    LentUnrolls,
    SampleBatch,
    ServerHello,
    Unroll,
    UnrollMemory,
    Weights,
    WeightsAck,
)
from simul.common.protocol.unroll_layout import UnrollLayout
from simul.common.role.run_directory import RunDir
from simul.common.transport import Poller, RouterSocket
from simul.learner.io.unroll_memory import UnrollMemories


class FakeLearner:
    """Owns both learner sockets in a thread of its own."""

    def __init__(self, run_dir: RunDir, weights: bytes, version: int = 0, credit: int = 1_000_000) -> None:
        self.unrolls: list[tuple[Unroll, dict[str, Any]]] = []
        self.samples: list[tuple[SampleBatch, dict[str, Any]]] = []
        self.acks: list[WeightsAck] = []
        self.credit = credit
        self.keeps_places = False  # never says that it has taken anything
        self._run_dir = run_dir
        self._memories: UnrollMemories | None = None
        self._taken: dict[bytes, int] = {}
        self._unroll_socket = RouterSocket(run_dir.endpoint("unrolls"))
        self._weights_socket = RouterSocket(run_dir.endpoint("weights"))
        self._codec: Codec[TO_LEARNER] = Codec(TO_LEARNER)
        self._servers: dict[bytes, bool] = {}
        self._current = self.message("learner", version, weights)
        self._outbox: list[tuple[Weights, bytes]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @staticmethod
    def message(
        policy: str, version: int, data: bytes, resident: tuple[str, ...] = (), progress: float = 0.0
    ) -> tuple[Weights, bytes]:
        """A Weights message for safetensors bytes."""
        weights = Weights(
            policy=policy, policy_version=version, fingerprint=fingerprint(data), resident=resident, progress=progress
        )
        return weights, data

    def start(self) -> FakeLearner:
        self._thread.start()
        return self

    def publish(
        self, policy: str, version: int, data: bytes, resident: tuple[str, ...] = (), progress: float = 0.0
    ) -> None:
        self._outbox.append(self.message(policy, version, data, resident, progress))

    def publish_raw(self, message: Weights, data: bytes = b"") -> None:
        """`data` does not travel where the message says that it lies in memory."""
        self._outbox.append((message, data))

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(60)

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
                    assert (message.protocol, message.token) == (PROTOCOL, self._run_dir.token())
                    self._taken[peer] = 0
                elif isinstance(message, UnrollMemory):
                    self._open(peer, message)
                elif isinstance(message, SampleBatch):
                    self._taken[peer] += 1
                    self.samples.append((message, {name: array.copy() for name, array in tensors.items()}))
                else:
                    assert isinstance(message, Unroll | LentUnrolls)
                    for unroll in message.unrolls if isinstance(message, LentUnrolls) else (message,):
                        self._take(peer, unroll, tensors)
                next_credit = 0.0
            while (received := self._weights_socket.receive()) is not None:
                peer, frames = received
                message, _ = self._codec.decode(frames)
                if isinstance(message, ServerHello):
                    self._servers[peer] = True
                    if message.served_version < self._current[0].policy_version:  # as the learner: not those it has
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
                for peer, taken in self._taken.items():
                    opened = self._memories is not None and self._memories.is_mapped(peer)
                    credit = Credit(total=self.credit, taken=taken * (not self.keeps_places), memory=opened)
                    self._unroll_socket.send(peer, encode(credit))
        self._unroll_socket.close()
        self._weights_socket.close()

    def _open(self, peer: bytes, message: UnrollMemory) -> None:
        if self._memories is None:
            spec, length = self._run_dir.read_spec(), self._run_dir.read_config().learner.unroll_length
            self._memories = UnrollMemories(UnrollLayout(spec, length, message.state_size))
        assert not self._memories.map_memory_of(peer, message, self._taken)

    def _take(self, peer: bytes, message: Unroll, tensors: dict[str, Any]) -> None:
        self._taken[peer] += 1
        if message.place >= 0:
            assert not tensors
            assert self._memories is not None
            tensors = self._memories.copy_unroll(peer, message)
        check_unroll(message, tensors)
        self.unrolls.append((message, {name: array.copy() for name, array in tensors.items()}))

    def _send(self, peer: bytes, item: tuple[Weights, bytes]) -> None:
        message, data = item
        tensors = {} if message.path else {"safetensors": np.frombuffer(data, np.uint8)}
        self._weights_socket.send(peer, encode(message, tensors))


def check_unroll(message: Unroll, tensors: dict[str, Any]) -> None:
    """The shapes and dtypes that `simul.common.protocol.messages.Unroll` promises."""
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
