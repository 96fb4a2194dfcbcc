"""Fault 32 where weights lie in memory: their learner is killed before the server has read them, or while it does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from simul.common.protocol.codec import Codec
from simul.common.protocol.messages import FROM_LEARNER, Weights
from simul.common.runtime.installation import ROOT
from simul.inference_server.policies import engine_factory as module
from tests.support.fake_learner import FakeLearner
from tests.support.faults import assert_balanced
from tests.support.stand import Stand, exchange
from tests.support.waiting import wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is shared on Linux only")

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


def test_fault_32_of_a_learner_killed_while_its_weights_are_read_they_are_served(stand, publisher, monkeypatch) -> None:
    process, message = publisher
    open_then = module.open_sealed

    def killing(path: str, number: int) -> int:
        file = open_then(path, number)
        process.kill()
        process.wait()
        return file

    monkeypatch.setattr(module, "open_sealed", killing)
    client = stand.client("a")
    stand.learner.publish_raw(message)
    wait_for(lambda: stand.server.metrics()["policy_version"] == 5)
    assert not Path(message.path).exists()
    assert exchange(client, [stand.decision(0, 0)]).actions[0].policy_version == 5
    metrics = stand.server.metrics()
    assert (metrics["swaps"], metrics["weights_in_memory"], metrics["weights_unreadable"]) == (2, 1, 0)
    assert_balanced(stand)
