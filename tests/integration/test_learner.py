"""The real learner process against a fake server on real sockets, which checks what it receives."""

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest

from common.codec import Codec, encode
from common.config import Config, LearnerConfig, NetworkConfig, OpponentsConfig
from common.messages import FROM_LEARNER, PROTOCOL, TO_SUPERVISOR, Credit, Report, ServerHello, Unroll, Weights
from common.nets.build import build_network
from common.nets.load import load_policy
from common.nets.weights import bytes_to_state, check_state
from common.rundir import RunDir
from common.specs import GameSpec
from common.transport import DealerSocket, PullSocket
from tests.support.checkpoints import write_checkpoint

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
PATIENCE_SEC = 60.0


class FakeServer:
    """Follows the protocol of a server: hello on both sockets, never more unrolls than its credit."""

    def __init__(self, run_dir: RunDir, served_version: int = -1, spec: GameSpec = SPEC) -> None:
        self.unrolls = DealerSocket(run_dir.endpoint("unrolls"))
        self.weights = DealerSocket(run_dir.endpoint("weights"))
        hello = ServerHello(protocol=PROTOCOL, spec_fingerprint=spec.fingerprint(), served_version=served_version)
        for socket in (self.unrolls, self.weights):
            socket.send(encode(hello))
        self.codec = Codec[Credit | Weights](FROM_LEARNER)
        self.versions: list[int] = []
        self.policies: dict[str, int] = {}
        self.resident: tuple[str, ...] = ()
        self.credit = self.sent = 0
        self.heard_at = 0.0
        self.longest_silence = 0.0
        self.random = np.random.default_rng(0)
        self.template = build_network(NETWORK, SPEC)

    def exchange(self) -> None:
        """Read everything; check every Weights message; send as many unrolls as granted."""
        while (frames := self.weights.receive()) is not None:
            message, tensors = self.codec.decode(frames)
            data = tensors["safetensors"].tobytes()
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
            now = time.monotonic()
            self.longest_silence = max(self.longest_silence, now - (self.heard_at or now))
            self.heard_at = now
        while self.versions and self.sent < self.credit:
            if not self.send(self.versions[-1]):
                return

    def send(self, version: int, length: int = 0, spec: GameSpec = SPEC, reward: float = 1.0) -> bool:
        """One random unroll, legal and finite unless asked otherwise. False while the socket's queue is full."""
        n = length or int(self.random.integers(1, 9))
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


class Supervisor:
    """Starts the learner and reads its reports."""

    def __init__(self, folder: Path, config: Config = CONFIG, spec: GameSpec = SPEC) -> None:
        self.run_dir = RunDir(folder / "run")
        self.run_dir.create()
        self.run_dir.write_config(config)
        self.run_dir.write_spec(spec)
        self.status = PullSocket(self.run_dir.endpoint("status"))
        self.codec = Codec[Report](TO_SUPERVISOR)
        self.reports: list[Report] = []
        self.lives: list[subprocess.Popen[bytes]] = []

    def start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "learner", "--run-dir", str(self.run_dir.root), "--parent", str(os.getpid())]
        self.lives.append(subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE))
        return self.lives[-1]

    def read(self) -> list[Report]:
        while (frames := self.status.receive()) is not None:
            self.reports.append(self.codec.decode(frames)[0])
        return self.reports

    def events(self) -> str:
        return "\n".join(report.event for report in self.read() if report.event)

    def close(self) -> None:
        for life in self.lives:
            if life.poll() is None:
                life.kill()
            life.wait()
            life.stderr.close()
        self.status.close()


@pytest.fixture
def supervisor(tmp_path):
    made = Supervisor(tmp_path)
    yield made
    made.close()


def stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 0, process.stderr.read().decode()


def test_learns_publishes_survives_a_kill_and_stops_cleanly(supervisor):
    first = supervisor.start()
    server = FakeServer(supervisor.run_dir)
    server.until(lambda: server.versions and server.versions[-1] >= 12, "twelve versions")
    assert server.versions[0] == 0
    assert server.versions == sorted(set(server.versions)), "versions only grow, each is sent once"
    server.until(lambda: len(server.resident) == 3, "two past selves")
    assert set(server.resident) <= server.policies.keys()
    assert server.longest_silence < 2.0

    first.kill()
    first.wait()
    server.close()
    served = server.versions[-1] + 1000
    supervisor.start()
    second = FakeServer(supervisor.run_dir, served_version=served)
    second.until(lambda: len(second.versions) > 4, "versions of the second life")
    assert second.versions[0] == served + 1, "a resumed learner goes on above what was served"
    assert set(second.resident) <= second.policies.keys()
    assert any(name.startswith("past/") for name in second.resident), "past selves outlive the learner"
    assert "Resumed from checkpoint" in supervisor.events()

    stop(supervisor.lives[-1])
    second.close()
    last = supervisor.read()[-1]
    assert last.state == "stopped"
    unrolls = last.metrics["unrolls"]
    assert unrolls["received"] == unrolls["learned"] + unrolls["waiting"] + sum(unrolls["dropped"].values())
    newest = max(path for path in supervisor.run_dir.checkpoints.iterdir() if path.name.isdigit())
    assert int(newest.name) == last.metrics["policy_version"] == last.metrics["checkpoint_version"]
    policy = load_policy(newest)
    assert policy.meta.decisions == last.metrics["decisions_learned"]
    assert (supervisor.run_dir.checkpoints / "000000000").is_dir(), "version 0 is a milestone"
    assert (supervisor.run_dir.root / "learner.csv").read_text().count("policy_version") == 1


def test_versions_do_not_repeat_when_learner_and_server_die_before_a_checkpoint(supervisor):
    rare = msgspec.structs.replace(CONFIG.learner, checkpoint_every_sec=1e6, milestone_every_decisions=10**9)
    supervisor.run_dir.write_config(msgspec.structs.replace(CONFIG, learner=rare))
    newest = -1
    for checkpoint in (None, 0):  # none yet; then the one that the first life wrote at its start
        process = supervisor.start()
        server = FakeServer(supervisor.run_dir)  # a new server: it has served nothing
        server.until(lambda server=server: len(server.versions) >= 4, "some versions")
        process.kill()
        process.wait()
        server.exchange()
        server.close()
        assert server.versions[0] > newest, f"with checkpoint {checkpoint}"
        newest = server.versions[-1]
    saved = [int(path.name) for path in supervisor.run_dir.checkpoints.iterdir() if path.name.isdigit()]
    assert max(saved) < newest


def test_drops_by_cause_and_learns_on(supervisor):
    supervisor.start()
    server = FakeServer(supervisor.run_dir)
    server.until(lambda: server.versions and server.versions[-1] >= 1, "the first update")
    server.send(0, spec=GameSpec("another", 4, 2))
    server.send(0, reward=float("nan"))
    server.unrolls.send([b"\xc1 no message"])
    server.send(-100)
    version = server.versions[-1]
    server.until(lambda: server.versions[-1] >= version + 3, "updates after bad unrolls")
    server.close()
    stop(supervisor.lives[-1])
    dropped = supervisor.read()[-1].metrics["unrolls"]["dropped"]
    assert dropped == {"wrong_spec": 1, "bad_value": 1, "malformed": 1, "stale": 1}


def test_a_stranger_gets_no_weights_and_a_full_learner_stops_granting_and_saves_nothing(supervisor):
    write_checkpoint(supervisor.run_dir.checkpoints / "000000003", SPEC, 3)
    config = msgspec.structs.replace(CONFIG, learner=msgspec.structs.replace(CONFIG.learner, batch_steps=100_000))
    supervisor.run_dir.write_config(config)
    supervisor.start()
    stranger = FakeServer(supervisor.run_dir, spec=GameSpec("another", 4, 2))
    server = FakeServer(supervisor.run_dir)
    server.until(lambda: server.credit >= 1000, "credit")
    assert server.credit <= 2 * 100_000
    stranger.exchange()
    assert not stranger.versions
    assert stranger.credit == 0
    for one in (stranger, server):
        one.close()
    stop(supervisor.lives[-1])
    assert "spec fingerprint" in supervisor.events()
    saved = [path.name for path in supervisor.run_dir.checkpoints.iterdir() if path.name.isdigit()]
    assert saved == ["000000003"], "nothing was learned since"


def test_another_encoders_checkpoint_is_refused_with_both_fingerprints(supervisor):
    write_checkpoint(supervisor.run_dir.checkpoints / "000000003", SPEC, 3)
    other = GameSpec("cartpole", 4, 2, encoder_version=2)
    supervisor.run_dir.write_spec(other)
    process = supervisor.start()
    assert process.wait(timeout=60) == 2
    sentence = process.stderr.read().decode()
    assert SPEC.fingerprint() in sentence
    assert other.fingerprint() in sentence
    assert "Traceback" not in sentence
