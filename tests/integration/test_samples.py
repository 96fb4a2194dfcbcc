"""Samples from a client to the served policy: refused rows, a full learner, deaths on the way, and what is learned."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from simul.common.client.client import InferenceClient
from simul.common.errors import ERR_DENIED, ERR_VALUE
from simul.common.protocol.codec import Codec
from simul.common.protocol.masks import pack_masks
from simul.common.protocol.messages import TO_SUPERVISOR, Report
from simul.common.protocol.samples import Sample
from simul.common.runtime.installation import ROOT
from simul.common.transport import PullSocket
from simul.launch.monitoring.accounting import build_accounts
from simul.launch.processes.role_reports import RoleReports
from tests.support.learner_stand import RunningLearner
from tests.support.sample_stand import SampleStand, evaluate, sample_config, settle
from tests.support.samples import SampleDraw
from tests.support.stand import SPEC, Stand
from tests.support.waiting import PATIENCE_SEC, wait_for


@pytest.fixture(scope="module")
def stand():
    with SampleStand() as one:
        yield one


def balanced(account: dict[str, Any], total: str) -> bool:
    parts = [part for name, part in account.items() if name != total]
    return account[total] == sum(sum(part.values()) if isinstance(part, dict) else part for part in parts)


def test_the_served_policy_becomes_what_the_samples_say() -> None:
    targets = {0: 0.7, 2: 0.2, 4: 0.1}, {1: 0.05, 3: 0.95}
    outcomes = 0.8, -0.6
    masks = np.array([[1, 0, 1, 0, 1], [0, 1, 0, 1, 1]], np.uint8)
    observations = np.random.default_rng(5).normal(size=(2, SPEC.observation_size)).astype(np.float32)
    expected = np.zeros((2, 5))
    for row, target in enumerate(targets):
        expected[row, list(target)] = list(target.values())
    with SampleStand() as stand:
        client = stand.client("search")
        version = 0

        def submit() -> None:
            client.submit_samples([
                Sample(
                    observations[i % 2], pack_masks(masks[i % 2]), outcomes[i % 2], version,
                    np.array(list(targets[i % 2]), np.int32), np.array(list(targets[i % 2].values()), np.float32),
                )
                for i in range(64)
            ])  # fmt: skip

        deadline = time.monotonic() + PATIENCE_SEC
        while True:
            answer = evaluate(client, observations, masks)
            version = int(answer.policy_version.min())
            close = np.abs(answer.priors - expected).max() < 0.03 and np.abs(answer.value - outcomes).max() < 0.1
            if close:
                break
            assert time.monotonic() < deadline, (answer.priors, answer.value, version)
            submit()
            settle(client)
        assert version > 10
        wait_for(lambda: 3.8 < stand.learner.metrics["replay"]["uses"] <= 4)
        metrics = stand.learner.metrics
        assert metrics["policy_loss"] < 1.0
        assert metrics["kl"] < 0.1
        assert metrics["policy_lag"]["mean"] > 1  # the oldest samples stay


def test_bad_rows_get_their_errors_and_the_rows_beside_them_are_stored(stand: SampleStand) -> None:
    client, before, errored = stand.client("bad rows"), stand.stored(), stand.server.metrics()["rows_errored"]
    rows = stand.random_samples(10)
    rows[3] = msgspec.structs.replace(rows[3], outcome=float("nan"))
    rows[5] = msgspec.structs.replace(rows[5], mask=np.zeros_like(rows[5].mask))
    rows[8] = msgspec.structs.replace(rows[8], probabilities=2 * rows[8].probabilities)
    client.submit_samples(rows)
    settle(client)
    assert (client.samples.submitted, client.samples.accepted) == (10, 7)
    assert client.samples.refused == {"ERR_VALUE": 2, "ERR_MASK": 1}
    assert client.samples.errors["ERR_VALUE"] == "row 3: outcome nan; expected -1 to 1"
    wait_for(lambda: stand.stored() == before + 7)
    metrics = stand.server.metrics()
    assert balanced(metrics["samples"], "admitted")
    assert balanced(stand.learner.metrics["samples"], "received")
    assert metrics["rows_errored"][ERR_VALUE] == errored.get(ERR_VALUE, 0) + 2


def test_versions_that_were_never_published_are_dropped_row_by_row(stand: SampleStand) -> None:
    client, before = stand.client("future"), stand.stored()
    dropped = stand.learner.metrics["samples"]["dropped"].get("bad_version", 0)
    client.submit_samples([*stand.random_samples(3), *stand.random_samples(2, version=10**6)])
    settle(client)
    wait_for(lambda: stand.stored() == before + 3)
    assert stand.learner.metrics["samples"]["dropped"]["bad_version"] == dropped + 2
    assert balanced(stand.learner.metrics["samples"], "received")


def test_without_the_runs_token_nothing_is_stored(stand: SampleStand) -> None:
    client, before = stand.client("stranger", training=False), stand.server.metrics()["samples"]["admitted"]
    client.submit_samples(stand.random_samples(4))
    settle(client)
    assert client.samples.refused == {ERR_DENIED: 4}
    assert "training token" in client.samples.errors[ERR_DENIED]
    assert stand.server.metrics()["samples"]["admitted"] == before


def test_a_learner_of_another_algorithm_takes_no_samples() -> None:
    with Stand() as stand:
        client = stand.client("search")
        client.submit_samples([SampleDraw(SPEC).sample()])
        settle(client)
        assert "the algorithm ppo, which learns from steps" in client.samples.errors[ERR_DENIED]


def test_samples_wait_at_their_client_while_the_learner_is_full() -> None:
    stand = Stand(credit=2)
    stand.config = sample_config(stand.config, {}, {})
    stand.run_dir.write_config(stand.config)
    with stand:
        client, draw = stand.client("search"), SampleDraw(SPEC)
        for _ in range(6):
            client.submit_samples([draw.sample()])
        settle(client, lambda: client.busy >= 6)
        account = stand.server.metrics()["samples"]
        assert (account["sent"], account["waiting"], account["dropped"]) == (2, 1, {})
        assert (client.samples.accepted, client.samples.waiting) == (3, 3)
        stand.learner.credit = 100
        settle(client)
        wait_for(lambda: len(stand.learner.samples) == 6)
        assert client.samples.accepted == 6
        assert len({message.batch for message, _ in stand.learner.samples}) == 6


def test_without_a_learner_samples_drop_and_are_counted() -> None:
    stand = Stand()
    stand.config = sample_config(stand.config, {}, {})
    stand.run_dir.write_config(stand.config)
    with stand:
        client, draw = stand.client("search"), SampleDraw(SPEC)
        client.submit_samples([draw.sample()])
        settle(client)
        wait_for(lambda: len(stand.learner.samples) == 1)  # one that is still on its way would be sent again
        stand.learner.stop()
        wait_for(lambda: not stand.server.metrics()["learner_alive"])
        client.submit_samples([draw.sample(), draw.sample()])
        settle(client)
        account = stand.server.metrics()["samples"]
        assert account == {"admitted": 3, "sent": 1, "waiting": 0, "dropped": {"learner_down": 2}}
        stand.learner = stand.make_learner().start()
        wait_for(lambda: stand.server.metrics()["learner_alive"])
        client.submit_samples([draw.sample()])
        settle(client)
        wait_for(lambda: len(stand.learner.samples) == 1)


def test_a_learner_goes_on_with_the_samples_of_its_former_life() -> None:
    with SampleStand(replay={"min_samples": 1000}) as stand:
        client = stand.client("search")
        client.submit_samples(stand.random_samples(300))
        settle(client)
        wait_for(lambda: stand.stored() == 300)
        assert stand.learner.metrics["updates"] == 0
        stand.learner.stop()
        wait_for(lambda: not stand.server.metrics()["learner_alive"])  # what is sent before would be lost on the way
        stand.learner = RunningLearner(stand.run_dir).start()
        assert stand.learner.said("Resumed with 300 of 300 samples")
        wait_for(lambda: stand.server.metrics()["learner_alive"])
        client.submit_samples(stand.random_samples(800))
        settle(client)
        wait_for(lambda: stand.learner.metrics["replay"]["total"] >= 1100)
        wait_for(lambda: stand.learner.metrics["replay"]["uses"] > 3.5)
        assert stand.learner.metrics["replay"]["total"] == 1100
        assert stand.learner.metrics["decisions_learned"] == 800


class _ServerLives:
    """A learner in this process, and servers one after the other, whose reports are kept."""

    def __init__(self, stand: SampleStand) -> None:
        self.stand = stand
        self.status = PullSocket(stand.run_dir.endpoint("status"))
        self.reports = RoleReports()
        self._codec: Codec[Report] = Codec(TO_SUPERVISOR)
        self._run_id = 0

    def start(self) -> None:
        self._run_id += 1
        line = [sys.executable, "-m", "simul.inference_server", "--run-dir", str(self.stand.run_dir.root)]
        line += ["--run-id", str(self._run_id), "--parent", str(os.getpid())]
        self.process = subprocess.Popen(line, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end(self, how: int) -> None:
        self.process.send_signal(how)
        self.process.wait()
        self.read()
        if how == signal.SIGTERM:
            wait_for(self._stopped)
        self.reports.mark_ended(("inference_server", 0), self._run_id, 0.0)

    def read(self) -> None:
        while (frames := self.status.receive()) is not None:
            self.reports.add_report(self._codec.decode(frames)[0], 0.0)

    def _stopped(self) -> bool:
        """Whether the last report has come: it may arrive behind the end of its process."""
        self.read()
        last = self.reports.last_report(("inference_server", 0), self._run_id)
        return last is not None and last.state == "stopped"

    def accounts(self) -> dict[str, dict[str, Any]]:
        learner = Report(role="learner", index=0, run_id=1, pid=1, state="stopped", metrics=self.stand.learner.metrics)
        self.reports.add_report(learner, 0.0)
        self.reports.mark_all_ended()
        roles = {"server": self.reports.totals("inference_server"), "learner": self.reports.totals("learner")}
        return build_accounts(SimpleNamespace(**roles, workers={}))


@pytest.mark.slow  # .ci/long runs it; three lives of a server that imports torch
def test_the_books_balance_over_a_killed_server_and_nothing_is_stored_twice() -> None:
    stand = SampleStand(learner={"batch_steps": 4096}, replay={"min_samples": 10**5, "memory_mb": 64})
    lives = _ServerLives(stand)
    stand.learner = RunningLearner(stand.run_dir).start()
    client = InferenceClient(
        stand.run_dir.endpoint("data"), name="search", spec=SPEC, training_token=stand.run_dir.token()
    )
    try:
        lives.start()
        client.connect(PATIENCE_SEC)
        for _ in range(40):
            client.submit_samples(stand.random_samples(10))
            client.poll()
        settle(client, lambda: client.samples.accepted >= 100)
        lives.end(signal.SIGKILL)
        client.submit_samples(stand.random_samples(10))
        lives.start()
        settle(client)
        assert client.samples.submitted == client.samples.accepted == 410
        assert not client.samples.refused
        for _ in range(3):
            client.submit_samples(stand.random_samples(10))
        settle(client)
        wait_for(lambda: stand.stored() >= 40)
        lives.end(signal.SIGTERM)
    finally:
        client.close()
        if lives.process.poll() is None:
            lives.process.kill()
            lives.process.wait()
        stand.learner.stop()
        lives.status.close()
        stand._folder.cleanup()
    accounts = lives.accounts()
    for name in ("samples_admitted", "samples_sent", "samples_received"):
        assert accounts[name]["difference"] == 0, accounts[name]
    received = accounts["samples_received"]
    assert received["dropped"].keys() <= {"duplicate"}
    assert 40 <= received["stored"] <= 440
    assert lives.reports.unreported()["inference_server"]["lives"] == 1
    assert stand.learner.metrics["replay"]["total"] == received["stored"]
