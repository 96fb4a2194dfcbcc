"""The real learner against a fake server on real sockets, which checks what it receives.

Where a process must die, or cannot write, the learner is one of its own; else it is in this one.
"""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import closing

import msgspec
import pytest

from simul.common.errors import CheckpointError, DivergedError
from simul.common.protocol.codec import encode
from simul.common.protocol.messages import Unroll
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from tests.support.checkpoints import write_checkpoint
from tests.support.learner_process import CONFIG, SPEC, FakeServer, LearnerProcess
from tests.support.learner_stand import RunningLearner

LINUX = sys.platform == "linux"  # where memory is shared


@pytest.fixture
def supervisor(tmp_path):
    made = LearnerProcess(tmp_path)
    yield made
    made.close()


@pytest.fixture
def run_dir(tmp_path) -> RunDir:
    """What a run has written before its learner starts."""
    made = RunDir(tmp_path / "run")
    made.create()
    made.write_config(CONFIG)
    made.write_spec(SPEC)
    return made


@pytest.fixture
def start(run_dir) -> Iterator[Callable[[], RunningLearner]]:
    """A function that starts the learner in a thread of this process."""
    started = []

    def begin() -> RunningLearner:
        started.append(RunningLearner(run_dir).start())
        return started[-1]

    yield begin
    for one in started:
        one.stop()


def configure(run_dir: RunDir, **learner: float) -> None:
    config = msgspec.structs.replace(CONFIG, learner=msgspec.structs.replace(CONFIG.learner, **learner))
    run_dir.write_config(config)


def saved(run_dir: RunDir) -> list[str]:
    return sorted(path.name for path in run_dir.checkpoints.iterdir() if path.name.isdigit())


def test_versions_do_not_repeat_when_learner_and_server_die_before_a_checkpoint(supervisor):
    configure(supervisor.run_dir, checkpoint_every_sec=1e6, milestone_every_decisions=10**9)
    process = supervisor.start()
    server = FakeServer(supervisor.run_dir)
    server.until(lambda: len(server.versions) >= 4, "some versions")
    process.kill()
    process.wait()
    server.exchange()
    server.close()
    assert not saved(supervisor.run_dir)
    learner = RunningLearner(supervisor.run_dir).start()
    with closing(FakeServer(supervisor.run_dir)) as another:  # it has served nothing
        another.until(lambda: another.versions, "a version of the second life")
        assert another.versions[0] > server.versions[-1]
    learner.stop()
    assert learner.failure is None


@pytest.mark.slow  # .ci/long runs it
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


def test_it_goes_on_above_what_was_served_and_publishes_past_selves_and_drops_by_cause(run_dir, start):
    learner = start()
    with closing(FakeServer(run_dir, served_version=1000, shared_memory=LINUX)) as server:
        server.until(lambda: len(server.resident) > 1 and set(server.resident) <= server.policies.keys(), "a past self")
        assert server.versions == sorted(set(server.versions)), "versions only grow, each is sent once"
        assert server.versions[0] == 1001
        assert server.in_memory >= len(server.versions) * LINUX
        server.send(0, spec=GameSpec("another", 4, 2))
        server.send(0, reward=float("nan"))
        server.unrolls.send([b"\xc1 no message"])
        named = {
            "length": 1, "first_step": 0, "terminated": False, "truncated": False,
            "spec_fingerprint": SPEC.fingerprint(),
        }  # fmt: skip
        server.send(-100)
        server.unrolls.send(encode(Unroll(**named, place=3, serial=1)))
        version = server.versions[-1]
        server.until(lambda: server.versions[-1] >= version + 3, "updates after bad unrolls")
    learner.stop()
    assert learner.failure is None
    unrolls = learner.metrics["unrolls"]
    assert unrolls["dropped"] == {"wrong_spec": 1, "bad_value": 1, "malformed": 1, "stale": 1, "no_memory": 1}
    assert unrolls["received"] == unrolls["learned"] + unrolls["waiting"] + 5


def test_a_stranger_gets_no_weights_and_a_full_learner_stops_granting_and_saves_nothing(run_dir, start):
    write_checkpoint(run_dir.checkpoints / "000000003", SPEC, 3)
    configure(run_dir, batch_steps=100_000)
    learner = start()
    with (
        closing(FakeServer(run_dir, spec=GameSpec("another", 4, 2))) as stranger,
        closing(FakeServer(run_dir, most=2000)) as server,  # far less than a batch, however fast the learner reads
    ):
        server.until(lambda: server.credit >= 1000, "credit")
        assert server.credit <= 2 * 100_000
        stranger.until(lambda: learner.said("spec fingerprint"), "a sentence about the stranger")
        assert not stranger.versions
        assert stranger.credit == 0
    learner.stop()
    assert learner.failure is None
    assert saved(run_dir) == ["000000003"], "nothing was learned since"


def test_another_encoders_checkpoint_is_refused_with_both_fingerprints(run_dir, start):
    write_checkpoint(run_dir.checkpoints / "000000003", SPEC, 3)
    other = GameSpec("cartpole", 4, 2, encoder_version=2)
    run_dir.write_spec(other)
    failure = start().failure
    assert isinstance(failure, CheckpointError)
    assert SPEC.fingerprint() in str(failure)
    assert other.fingerprint() in str(failure)


def test_a_run_that_diverges_serves_and_saves_nothing_of_it_and_says_so(run_dir, start):
    configure(run_dir, learning_rate=1e39)
    learner = start()
    with closing(FakeServer(run_dir)) as server:
        server.until(lambda: learner.ended, "its end")
        assert isinstance(learner.failure, DivergedError)
        assert learner.said("Version 1 has diverged")
        assert server.versions == [0]
    assert not saved(run_dir)
