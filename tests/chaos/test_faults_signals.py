"""Fault 30 in a real process: SIGTERM with a row in the forward and hundreds behind it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from simul.common.client.client import InferenceClient, Replies
from simul.common.protocol.codec import Codec
from simul.common.protocol.messages import TO_SUPERVISOR, Report
from simul.common.runtime.installation import ROOT
from simul.common.transport import PullSocket
from tests.support.fake_learner import FakeLearner
from tests.support.stand import Stand
from tests.support.waiting import PATIENCE_SEC

pytestmark = pytest.mark.timeout(600)  # of which the server needs most to start on a loaded machine


class ServerProcess(Stand):
    """A server in a process of its own, beside the stand-in learner in this one."""

    def __enter__(self) -> ServerProcess:
        self.status = PullSocket(self.run_dir.endpoint("status"))
        self.learner = FakeLearner(self.run_dir, self.weights()).start()
        line = [sys.executable, "-m", "simul.inference_server", "--run-dir", str(self.run_dir.root)]
        self.process = subprocess.Popen(line, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        codec: Codec[Report] = Codec(TO_SUPERVISOR)
        while (frames := self.status.receive()) is None or codec.decode(frames)[0].state != "ready":
            assert self.process.poll() is None, "the server ended before it was ready"
            time.sleep(0.02)
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            client.close()
        self.process.kill()
        self.process.wait()
        self.learner.stop()
        self.status.close()
        self._folder.cleanup()


@pytest.fixture
def stand() -> Iterator[ServerProcess]:
    with ServerProcess(max_batch=1, max_sessions=16_384) as made:
        yield made


def _read(client: InferenceClient, replies: Replies) -> None:
    more = client.poll()
    replies.actions += more.actions
    replies.failures += more.failures
    client.poller.wait(0.01)


def _under_load(stand: Stand, rows: int) -> list[tuple[InferenceClient, Replies]]:
    """Two clients with `rows` rows each, all of which have arrived: the first are answered."""
    clients = [(stand.client(name), Replies([], [])) for name in ("a", "b")]
    for client, _ in clients:
        client.submit([stand.decision(env, 0) for env in range(rows)])
    for client, replies in clients:
        while not replies.actions:
            _read(client, replies)
    return clients


def test_fault_30_sigterm_under_load_answers_every_row_and_exits_with_0(stand) -> None:
    clients = _under_load(stand, 300)
    stand.process.send_signal(signal.SIGTERM)
    for client, replies in clients:
        deadline = time.monotonic() + PATIENCE_SEC
        while client.waiting:
            _read(client, replies)
            assert time.monotonic() < deadline
        assert sorted(action.env for action in replies.actions) == list(range(300))
        assert not replies.failures
    assert stand.process.wait(PATIENCE_SEC) == 0
