"""A learner process, and a stand-in for the server it teaches, which checks what it receives."""

from __future__ import annotations

import hashlib
import math
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from simul.common.config.schema import Config, LearnerConfig, NetworkConfig, OpponentsConfig
from simul.common.nets.build import build_network
from simul.common.nets.io import bytes_to_state, check_state
from simul.common.protocol.codec import Codec, Tensors, encode
from simul.common.protocol.messages import (
    FROM_LEARNER,
    PROTOCOL,
    TO_SUPERVISOR,
    Credit,
    Report,
    ServerHello,
    Unroll,
    Weights,
    WeightsAck,
)
from simul.common.protocol.shared_memory import open_sealed
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.common.transport import DealerSocket, PullSocket
from tests.support.waiting import wait_for

ROOT = Path(__file__).parents[2]
SPEC = GameSpec("cartpole", 4, 2)
NETWORK = NetworkConfig("mlp_lstm", {"hidden": 16})
CONFIG = Config(
    network=NETWORK,
    opponents=OpponentsConfig(self_play=0.5, past=0.5),
    learner=LearnerConfig(
        unroll_length=8, batch_steps=128, checkpoint_every_sec=0.2, past_every_decisions=500, past_resident=2,
        milestone_every_decisions=1000, max_policy_lag=20,
    ),
)  # fmt: skip
PATIENCE_SEC = 200.0  # also for the start of a process
FULL_DISK = """
import resource, runpy
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
runpy.run_module("simul.learner", run_name="__main__")
"""


class FakeServer:
    """Follows the protocol of a server: hello on both sockets, never more unrolls than its credit.

    `in_memory`: weights that were read where they lay; the others came by the socket. `most`: unrolls that it has to
    send.
    """

    def __init__(
        self, run_dir: RunDir, served_version: int = -1, spec: GameSpec = SPEC, *, shared_memory: bool = False,
        most: float = math.inf,
    ) -> None:  # fmt: skip
        self.unrolls = DealerSocket(run_dir.endpoint("unrolls"))
        self.weights = DealerSocket(run_dir.endpoint("weights"))
        hello = ServerHello(
            protocol=PROTOCOL, spec_fingerprint=spec.fingerprint(),
            served_version=served_version, shared_memory=shared_memory,
            token=run_dir.token(),
        )  # fmt: skip
        for socket in (self.unrolls, self.weights):
            socket.send(encode(hello))
        self.codec = Codec[Credit | Weights](FROM_LEARNER)
        self.versions: list[int] = []
        self.policies: dict[str, int] = {}
        self.resident: tuple[str, ...] = ()
        self.credit = self.sent = self.in_memory = 0
        self._most = most
        self.random = np.random.default_rng(0)
        self.template = build_network(NETWORK, SPEC)

    def exchange(self) -> None:
        """Read everything; check every Weights message; send as many unrolls as granted."""
        while (frames := self.weights.receive()) is not None:
            message, tensors = self.codec.decode(frames)
            if (data := self._read(message, tensors)) is None:
                continue
            about = {"policy": message.policy, "policy_version": message.policy_version}
            self.weights.send(encode(WeightsAck(**about, accepted=True)))
            assert hashlib.sha256(data).hexdigest() == message.fingerprint
            check_state(bytes_to_state(data), self.template)
            self.policies[message.policy] = message.policy_version
            self.resident = message.resident
            if message.policy == "learner":
                self.versions.append(message.policy_version)
        while (frames := self.unrolls.receive()) is not None:
            message, _ = self.codec.decode(frames)
            assert message.total >= self.credit, "credit never shrinks"
            self.credit = message.total
        while self.versions and self.sent < min(self.credit, self._most):
            if not self.send(self.versions[-1]):
                return

    def _read(self, message: Weights, tensors: Tensors) -> bytes | None:
        """None where newer weights have taken the memory of these."""
        if not message.path:
            return tensors["safetensors"].tobytes()
        assert not tensors
        try:
            with open(open_sealed(message.path, message.file_number), "rb") as file:
                data = file.read()
        except (OSError, ValueError):
            data = b""
        if hashlib.sha256(data).hexdigest() == message.fingerprint:
            self.in_memory += 1
            return data
        about = {"policy": message.policy, "policy_version": message.policy_version}
        self.weights.send(encode(WeightsAck(**about, accepted=False, reason="gone", unreadable=True)))
        return None

    def send(self, version: int, spec: GameSpec = SPEC, reward: float = 1.0) -> bool:
        """One random unroll, legal and finite unless asked otherwise. False while the socket's queue is full."""
        n = int(self.random.integers(1, 9))
        terminated = bool(self.random.random() < 0.3)
        message = Unroll(
            length=n, first_step=0, terminated=terminated, truncated=False, spec_fingerprint=spec.fingerprint()
        )
        tensors = {
            "observation": self.random.normal(size=(n + 1, 4)).astype(np.float32),
            "mask": np.ones((n + 1, 2), np.uint8),
            "action": self.random.integers(0, 2, n).astype(np.int32),
            "log_prob": np.full(n, np.log(0.5), np.float32),
            "value": np.zeros(n + 1, np.float32),
            "reward": np.full(n, reward, np.float32),
            "policy_version": np.full(n, version, np.int64),
            "state": np.zeros(32, np.float32),
        }
        sent = self.unrolls.send(encode(message, tensors))
        self.sent += sent
        return sent

    def until(self, condition, what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SEC
        while not condition():
            assert time.monotonic() < deadline, f"waited {PATIENCE_SEC:.0f} s for {what}"
            self.exchange()
            time.sleep(0.005)

    def close(self) -> None:
        self.unrolls.close()
        self.weights.close()


class LearnerProcess:
    """Starts the learner as its supervisor does, perhaps several times, and reads its reports."""

    def __init__(self, folder: Path, config: Config = CONFIG, spec: GameSpec = SPEC) -> None:
        self.run_dir = RunDir(folder / "run")
        self.run_dir.create()
        self.run_dir.write_config(config)
        self.run_dir.write_spec(spec)
        self.status = PullSocket(self.run_dir.endpoint("status"))
        self.codec = Codec[Report](TO_SUPERVISOR)
        self.reports: list[Report] = []
        self.lives: list[subprocess.Popen[bytes]] = []

    def start(self, *, full_disk: bool = False) -> subprocess.Popen[bytes]:
        """`full_disk`: it can write no byte to any file."""
        module = ["-c", FULL_DISK] if full_disk else ["-m", "simul.learner"]
        command = [sys.executable, *module, "--run-dir", str(self.run_dir.root), "--parent", str(os.getpid())]
        self.lives.append(subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE))
        return self.lives[-1]

    def read(self) -> list[Report]:
        while (frames := self.status.receive()) is not None:
            self.reports.append(self.codec.decode(frames)[0])
        return self.reports

    def events(self) -> str:
        return "\n".join(report.event for report in self.read() if report.event)

    def until_said(self, pattern: str) -> str:
        """All events, once one of them matches `pattern`: a process may be over before its reports are here."""
        wait_for(lambda: re.search(pattern, self.events()))
        return self.events()

    def last_report(self) -> Report:
        """The last one of a life that has stopped."""
        wait_for(lambda: self.read() and self.reports[-1].state == "stopped")
        return self.reports[-1]

    def close(self) -> None:
        for life in self.lives:
            if life.poll() is None:
                life.kill()
            life.wait()
            life.stderr.close()
        self.status.close()
