"""Faults 33 to 36: strangers on the learner's sockets, rewards that nothing can be learned from, damaged checkpoints,
and files beside the training that cannot be written."""

from __future__ import annotations

import csv
import re
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from simul.common.checkpoints.meta import WEIGHTS_FILE
from simul.common.errors import NothingLearnedError
from simul.common.nets.io import load_policy
from simul.common.protocol.codec import encode
from simul.common.protocol.messages import (
    PROTOCOL,
    ListPolicies,
    Message,
    ServerHello,
    Shutdown,
    Unroll,
    UnrollMemory,
    WeightsAck,
)
from simul.common.protocol.messages.serving import SharedMemory
from simul.common.transport import DealerSocket
from simul.launch.monitoring.curves.curve_log import CurveLog
from simul.launch.monitoring.curves.curves_csv import CsvWriter
from simul.launch.monitoring.curves.figures import CurveReport
from simul.launch.monitoring.curves.tensorboard_file import TensorBoardWriter
from simul.learner.checkpoints.checkpoint_store import CheckpointStore, RunFacts, write_folder
from tests.support.faults import unharmed
from tests.support.learner_stand import LearnerStand
from tests.support.waiting import wait_for

HUGE = 9223372036854775800


@pytest.fixture(scope="module")
def stand() -> Iterator[LearnerStand]:
    with LearnerStand() as one:
        yield one


class Stranger:
    """A process of the same user, which may know the run's token or not."""

    def __init__(self, stand: LearnerStand) -> None:
        self._stand = stand
        self._sockets = [DealerSocket(stand.run_dir.endpoint(name)) for name in ("unrolls", "weights")]

    def hello(self, token: str, served: int) -> None:
        """On both sockets."""
        fingerprint = self._stand.spec.fingerprint()
        hello = ServerHello(protocol=PROTOCOL, spec_fingerprint=fingerprint, served_version=served, token=token)
        for socket in self._sockets:
            assert socket.send(encode(hello))

    def unroll(self, version: int) -> None:
        """A well-formed one."""
        spec = self._stand.spec
        tensors = {
            "observation": np.zeros((3, spec.observation_size), np.float32),
            "mask": np.ones((3, spec.num_actions), np.uint8), "action": np.zeros(2, np.int32),
            "log_prob": np.zeros(2, np.float32), "value": np.zeros(3, np.float32), "reward": np.zeros(2, np.float32),
            "policy_version": np.full(2, version, np.int64), "state": np.zeros(64, np.float32),
        }  # fmt: skip
        facts = {"first_step": 0, "terminated": False, "truncated": False, "spec_fingerprint": spec.fingerprint()}
        assert self._sockets[0].send(encode(Unroll(length=2, **facts), tensors))

    def send(self, message: Message, *, weights: bool = False) -> None:
        assert self._sockets[weights].send(encode(message))

    def heard(self) -> bool:
        """Anything at all came for it."""
        return any(socket.receive() is not None for socket in self._sockets)

    def close(self) -> None:
        for socket in self._sockets:
            socket.close()


@pytest.fixture
def stranger(stand) -> Iterator[Stranger]:
    one = Stranger(stand)
    yield one
    one.close()


def _learns_on(stand: LearnerStand) -> None:
    """It teaches versions of its own, and its books are balanced."""
    learner, client = stand.learner, stand.client("teacher", run_id=stand._episode + 2)
    before = learner.metrics["policy_version"]
    stand.train(client, lambda: learner.metrics["policy_version"] >= before + 2)
    client.close()
    unrolls = learner.metrics["unrolls"]
    assert unrolls["received"] == unrolls["learned"] + unrolls["waiting"] + sum(unrolls["dropped"].values())
    assert int((stand.run_dir.checkpoints / "last_version").read_text()) < 1000


@pytest.mark.parametrize("token", ["", "0" * 32])
def test_fault_33_what_comes_without_the_runs_token_is_refused_and_teaches_nothing(stand, stranger, token) -> None:
    with unharmed(stand):
        before = stand.learner.metrics["untrusted"]
        stranger.unroll(10**9)
        wait_for(lambda: stand.learner.metrics["untrusted"] != before)  # the sockets keep no order between them
        stranger.hello(token, HUGE)
        stranger.unroll(0)
        memory = SharedMemory(path="/proc/1/fd/0", size=1, nonce="")
        stranger.send(UnrollMemory(memory=memory, places=1, unroll_length=4, state_size=64))
        ack = WeightsAck(policy="learner", policy_version=HUGE, accepted=False, reason="forged", unreadable=True)
        stranger.send(ack, weights=True)
        came = {"UNROLL": 2, "SERVER_HELLO": 2, "UNROLL_MEMORY": 1, "WEIGHTS_ACK": 1}
        wanted = {name: number + before.get(name, 0) for name, number in came.items()}
        wait_for(lambda: stand.learner.metrics["untrusted"] == wanted)
        _learns_on(stand)
        assert not stranger.heard()
        assert stand.learner.said("A message (UNROLL) of a process that has not shown the run's token was refused")
        assert not stand.learner.said("forged")


def test_fault_33_versions_that_were_never_published_are_not_believed_of_anybody(stand, stranger) -> None:
    with unharmed(stand):
        stranger.hello(stand.run_dir.token(), HUGE)
        wait_for(lambda: stand.learner.said(f"served version {HUGE}, which no learner of this run can have published"))
        stranger.hello(stand.run_dir.token(), -1)
        stranger.unroll(10**9)
        stranger.unroll(HUGE)
        wait_for(lambda: stand.learner.metrics["unrolls"]["dropped"].get("bad_version") == 2)
        _learns_on(stand)
        assert 0 <= stand.learner.metrics["policy_lag"]["max"] < 1000


def test_fault_33_a_run_that_was_hurt_by_such_a_version_resumes_from_its_newest_checkpoint() -> None:
    stand = LearnerStand()
    files = {WEIGHTS_FILE: stand.weights()}
    facts = RunFacts(stand.spec, stand.config.network, "0" * 16, 0)
    write_folder(stand.run_dir.checkpoints / "000000003", facts.meta(3, 500, 9, files, False), files)
    (stand.run_dir.checkpoints / "last_version").write_text(str(HUGE + 1))
    with stand, unharmed(stand):
        assert stand.learner.said(f"holds version {HUGE + 1}, which this run cannot have published")
        assert stand.learner.said("Resumed from checkpoint 3 (500 decisions learned).")
        assert stand.learner.metrics["policy_version"] == 4
        _learns_on(stand)


def test_fault_33_the_control_socket_obeys_who_shows_the_runs_token(stand) -> None:
    with unharmed(stand), DealerSocket(stand.run_dir.endpoint("control")) as control:
        for message in (Shutdown(), ListPolicies(token="0" * 32)):
            assert control.send(encode(message))
        answers: list[bytes] = []
        wait_for(lambda: answers.extend(map(bytes, control.receive() or ())) or len(answers) == 2)
        assert all(b"expected the run's token" in answer for answer in answers)
        assert not stand.server._operations.control.shutdown


def test_fault_34_rewards_that_nothing_can_be_learned_from_end_the_learner_with_a_sentence(monkeypatch) -> None:
    monkeypatch.setattr(
        "simul.inference_server.unrolls.learner_link.SILENT_AFTER_SEC", 1.0
    )  # clients need not wait for so long
    with LearnerStand(max_skipped_minibatches=30, epochs=3) as stand, unharmed(stand):
        learner, client = stand.learner, stand.client("teacher")
        stand.train(client, lambda: learner.metrics.get("policy_version", 0) >= 2)
        stand.train(client, lambda: learner.ended, reward=1e30)
        assert isinstance(learner.failure, NothingLearnedError)
        assert learner.said("ALARM: a minibatch was skipped, nothing was learned from it")
        metrics, version = learner.metrics, learner.metrics["policy_version"]
        newest = stand.run_dir.checkpoints / f"{version:09d}"
        (sentence,) = (event for event in learner.events if event.startswith("The run ends: "))
        assert re.match(r"The run ends: 3\d minibatches in a row were skipped", sentence)
        assert "largest absolute reward in these unrolls 1e+30" in sentence
        assert f"The newest good checkpoint is {newest}." in sentence
        assert (
            load_policy(newest).meta.decisions
            == metrics["decisions_learned"]
            == sum(metrics["policy_lag"]["histogram"].values())
        )
        unrolls = metrics["unrolls"]
        assert unrolls["dropped"]["not_finite"] > 0
        assert unrolls["received"] == unrolls["learned"] + unrolls["waiting"] + sum(unrolls["dropped"].values())
        assert metrics["skipped_minibatches"] >= 30


@pytest.mark.parametrize("damage", ["truncated", "flipped", "meta"])
def test_fault_35_a_damaged_checkpoint_is_set_aside_and_pushes_out_no_good_one(damage: str) -> None:
    with LearnerStand(checkpoint_every_sec=0.001) as stand, unharmed(stand):
        client, store = stand.client("teacher"), CheckpointStore(stand.run_dir.checkpoints)
        stand.train(client, lambda: len(store.versions()) == 2)
        wait_for(stand.idle)
        good, newest = store.versions()[-2:]
        _damage(store.path(newest), damage)
        stand.train(client, lambda: stand.learner.said(f"It is now damaged-{newest:09d}"))
        wait_for(stand.idle)
        assert stand.learner.said(f"The checkpoint {store.path(newest)} is damaged")
        later = [version for version in store.versions() if version > newest]
        assert good in store.versions() or len(later) >= 2, "two whole ones at any time"
        assert CheckpointStore(stand.run_dir.checkpoints).latest(stand.spec).meta.version == max(later)


def _damage(checkpoint: Path, how: str) -> None:
    path = checkpoint / ("meta.json" if how == "meta" else WEIGHTS_FILE)
    data = bytearray(path.read_bytes())
    if how == "flipped":
        data[len(data) // 2] ^= 1
    else:
        del data[len(data) // 2 :]
    path.write_bytes(data)


def test_fault_36_files_beside_the_training_fail_and_come_back_while_it_goes_on() -> None:
    """As in a run: the reports of the learner's figures are written while it learns."""
    with LearnerStand() as stand:
        root, said = stand.run_dir.root, []
        (root / "curves.csv").mkdir()
        (root / "tensorboard").write_text("in the way")
        log = CurveLog([CsvWriter(root), TensorBoardWriter(root, 0)])

        def write() -> list[str]:
            figures = {"learner/policy_version": stand.learner.metrics["policy_version"]}
            decisions = stand.learner.metrics["decisions_learned"]
            said.extend(log.write(CurveReport(decisions, 0.0, time.time(), figures)))
            return said

        with unharmed(stand):
            learner, client = stand.learner, stand.client("teacher")
            stand.train(client, lambda: "TensorBoard's file could not be written" in "".join(write()))
            assert said[0].startswith("curves.csv could not be written: ")
            before = learner.metrics["policy_version"]
            stand.train(client, lambda: learner.metrics["policy_version"] >= before + 2)
            (root / "curves.csv").rmdir()
            (root / "tensorboard").unlink()
            stand.train(client, lambda: "TensorBoard's file is written again" in "".join(write()))
            log.close()
            assert log.lost == 0
            with (root / "curves.csv").open() as file:
                rows = list(csv.DictReader(file))
            assert int(rows[0]["learner/policy_version"]) <= before < int(rows[-1]["learner/policy_version"])
            assert list((root / "tensorboard").iterdir())
