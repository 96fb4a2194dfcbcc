"""The real learner process against a fake server on real sockets, which checks what it receives."""

import signal
import subprocess
import sys

import msgspec
import pytest

from simul.common.protocol.codec import encode
from simul.common.protocol.messages import Unroll
from simul.common.protocol.specs import GameSpec
from tests.support.checkpoints import write_checkpoint
from tests.support.learner_process import CONFIG, SPEC, FakeServer, LearnerProcess

LINUX = sys.platform == "linux"  # where memory is shared


@pytest.fixture
def supervisor(tmp_path):
    made = LearnerProcess(tmp_path)
    yield made
    made.close()


def stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=240) == 0, process.stderr.read().decode()


def configure(supervisor: LearnerProcess, **learner: float) -> None:
    config = msgspec.structs.replace(CONFIG, learner=msgspec.structs.replace(CONFIG.learner, **learner))
    supervisor.run_dir.write_config(config)


def saved(supervisor: LearnerProcess) -> list[str]:
    return sorted(path.name for path in supervisor.run_dir.checkpoints.iterdir() if path.name.isdigit())


def test_versions_do_not_repeat_when_learner_and_server_die_before_a_checkpoint(supervisor):
    configure(supervisor, checkpoint_every_sec=1e6, milestone_every_decisions=10**9)
    newest = -1
    for life in (1, 2):
        process = supervisor.start()
        server = FakeServer(supervisor.run_dir)  # a new server: it has served nothing
        server.until(lambda server=server: len(server.versions) >= 4, "some versions")
        process.kill()
        process.wait()
        server.exchange()
        server.close()
        assert server.versions[0] > newest, f"life {life}"
        newest = server.versions[-1]
    assert not saved(supervisor)


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit there")
def test_a_learner_that_starts_on_a_full_disk_learns_and_says_what_it_cannot_write(supervisor):
    process = supervisor.start(full_disk=True)
    server = FakeServer(supervisor.run_dir)
    server.until(lambda: server.versions and server.versions[-1] >= 3, "updates")
    server.close()
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=240) == 1, process.stderr.read().decode()
    said = supervisor.until_said(r"there is none yet\. What was learned since is lost: [1-9]\d* steps\.")
    assert said.count("could not be noted") == 1
    assert not list(supervisor.run_dir.checkpoints.rglob("*.safetensors"))


def test_it_goes_on_above_what_was_served_and_publishes_past_selves_and_drops_by_cause(supervisor):
    supervisor.start()
    server = FakeServer(supervisor.run_dir, served_version=1000, shared_memory=LINUX)
    server.until(lambda: len(server.resident) > 1 and set(server.resident) <= server.policies.keys(), "a past self")
    assert server.versions == sorted(set(server.versions)), "versions only grow, each is sent once"
    assert server.versions[0] == 1001
    assert server.in_memory >= len(server.versions) * LINUX
    server.send(0, spec=GameSpec("another", 4, 2))
    server.send(0, reward=float("nan"))
    server.unrolls.send([b"\xc1 no message"])
    named = {
        "length": 1, "first_step": 0, "terminated": False, "truncated": False, "spec_fingerprint": SPEC.fingerprint(),
    }  # fmt: skip
    server.send(-100)
    server.unrolls.send(encode(Unroll(**named, place=3, serial=1)))
    version = server.versions[-1]
    server.until(lambda: server.versions[-1] >= version + 3, "updates after bad unrolls")
    server.close()
    stop(supervisor.lives[-1])
    unrolls = supervisor.last_report().metrics["unrolls"]
    assert unrolls["dropped"] == {"wrong_spec": 1, "bad_value": 1, "malformed": 1, "stale": 1, "no_memory": 1}
    assert unrolls["received"] == unrolls["learned"] + unrolls["waiting"] + 5


def test_a_stranger_gets_no_weights_and_a_full_learner_stops_granting_and_saves_nothing(supervisor):
    write_checkpoint(supervisor.run_dir.checkpoints / "000000003", SPEC, 3)
    configure(supervisor, batch_steps=100_000)
    supervisor.start()
    stranger = FakeServer(supervisor.run_dir, spec=GameSpec("another", 4, 2))
    server = FakeServer(supervisor.run_dir, most=2000)  # far less than a batch, however fast the learner reads
    server.until(lambda: server.credit >= 1000, "credit")
    assert server.credit <= 2 * 100_000
    stranger.until(lambda: "spec fingerprint" in supervisor.events(), "a sentence about the stranger")
    assert not stranger.versions
    assert stranger.credit == 0
    for one in (stranger, server):
        one.close()
    stop(supervisor.lives[-1])
    assert saved(supervisor) == ["000000003"], "nothing was learned since"


def test_another_encoders_checkpoint_is_refused_with_both_fingerprints(supervisor):
    write_checkpoint(supervisor.run_dir.checkpoints / "000000003", SPEC, 3)
    other = GameSpec("cartpole", 4, 2, encoder_version=2)
    supervisor.run_dir.write_spec(other)
    process = supervisor.start()
    assert process.wait(timeout=240) == 2
    sentence = process.stderr.read().decode()
    assert SPEC.fingerprint() in sentence
    assert other.fingerprint() in sentence
    assert "Traceback" not in sentence


def test_a_run_that_diverges_serves_and_saves_nothing_of_it_and_says_so(supervisor):
    configure(supervisor, learning_rate=1e39)
    process = supervisor.start()
    server = FakeServer(supervisor.run_dir)
    while process.poll() is None:
        server.exchange()
    assert process.wait() == 1
    supervisor.until_said("Version 1 has diverged")
    assert server.versions == [0]
    assert not saved(supervisor)
    server.close()
