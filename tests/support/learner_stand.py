"""A real server beside the whole learner, in this process: what its loop does with faults."""

from __future__ import annotations

import threading
from typing import Any

import msgspec

from simul.common.checkpoints.meta import CheckpointMeta
from simul.common.client.client import InferenceClient
from simul.common.config.schema import LearnerConfig
from simul.common.protocol.messages import TERMINATED
from simul.common.role.lifecycle import RoleArguments, StopFlag
from simul.common.role.run_directory import RunDir
from simul.learner.build import open_learner
from tests.support.stand import Stand, exchange
from tests.support.waiting import PATIENCE_SEC, wait_for


class RunningLearner:
    """The learner's `main` without its signals. `events` and `metrics` are what it reports."""

    def __init__(self, run_dir: RunDir) -> None:
        self.events: list[str] = []
        self.metrics: dict[str, Any] = {}
        self.failure: BaseException | None = None
        self._run_dir = run_dir
        self._stop = StopFlag()
        self._thread = threading.Thread(target=self._live, daemon=True)

    def start(self) -> RunningLearner:
        """Start it and wait until it is ready: msgspec may not meet a new type in two threads at once."""
        msgspec.json.Decoder(CheckpointMeta)
        self._thread.start()
        wait_for(lambda: self.metrics or self.ended)
        return self

    def stop(self) -> None:
        """Ask it to stop, and wait until it has."""
        self._stop.set()
        self._thread.join(PATIENCE_SEC)
        assert not self._thread.is_alive()

    @property
    def ended(self) -> bool:
        return not self._thread.is_alive()

    def said(self, words: str) -> bool:
        return any(words in event for event in self.events)

    def due(self, now: float) -> bool:
        """As `Reporter`; every turn here, so that tests need not wait for figures."""
        return True

    def send(self, metrics: dict[str, Any], *, state: str | None = None, event: str = "") -> None:
        """As `Reporter`."""
        self.metrics = metrics or self.metrics
        if event:
            self.events.append(event)

    def _live(self) -> None:
        try:
            arguments = RoleArguments(self._run_dir, 0, 1, 0)
            with open_learner(arguments, "", self, self._stop) as learner:  # type: ignore[arg-type]
                learner.run()
        except BaseException as error:  # noqa: BLE001  (the test looks at it)
            self.failure = error


class LearnerStand(Stand):
    """`stand.learner` is a RunningLearner; a client that plays with `record` teaches it."""

    learner: RunningLearner

    def __init__(self, **learner: Any) -> None:
        super().__init__()
        small = {"unroll_length": 4, "batch_steps": 16, "minibatches": 2, "checkpoint_every_sec": 600.0}
        self.config = msgspec.structs.replace(self.config, seed=0, learner=LearnerConfig(**(small | learner)))
        self.run_dir.write_config(self.config)
        self._episode = 0

    def make_learner(self) -> RunningLearner:
        return RunningLearner(self.run_dir)

    def idle(self) -> bool:
        """The learner has learned from all that was sent and makes a batch, and has saved it."""
        metrics = self.learner.metrics
        if "unrolls" not in metrics:
            return False
        unrolls, sent = metrics["unrolls"], self.server.metrics()["unrolls"]["sent"]
        known = unrolls["learned"] + unrolls["waiting"] + sum(unrolls["dropped"].values())
        saved = metrics["checkpoint_version"] == metrics["policy_version"]
        return saved and sent == known and metrics["steps_waiting"] < self.config.learner.batch_steps

    def play(self, client: InferenceClient, reward: float = 1.0) -> None:
        """Four games of eight steps: two batches."""
        self._episode += 1
        for step in range(8):
            rows = [self.decision(env, step, episode=self._episode, reward=reward * (step > 0)) for env in range(4)]
            exchange(client, rows)
        ends = {"kind": TERMINATED, "observation": None, "mask": None, "reward": reward}
        exchange(client, [self.decision(env, 8, episode=self._episode, **ends) for env in range(4)])

    def train(self, client: InferenceClient, until: Any, reward: float = 1.0) -> None:
        """Play until `until()` is true."""
        while not until():
            self.play(client, reward)
