"""A real server beside the whole learner with `algorithm: alphazero`, in this process; no game plays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from simul.common.client.client import InferenceClient
from simul.common.client.evaluation import Evaluation
from simul.common.config.schema import Config, LearnerConfig, NetworkConfig, ReplayConfig
from simul.common.protocol.samples import Sample
from tests.support.learner_stand import RunningLearner
from tests.support.samples import SampleDraw
from tests.support.stand import Stand
from tests.support.waiting import wait_for


def sample_config(config: Config, learner: dict[str, Any], replay: dict[str, Any]) -> Config:
    """`config` with small settings for samples."""
    small = {"batch_steps": 64, "minibatches": 2, "checkpoint_every_sec": 600.0, "learning_rate": 1e-2}
    sizes = {"min_samples": 32, "memory_mb": 8, "disk_mb": 8}
    return msgspec.structs.replace(
        config,
        network=NetworkConfig(options={"hidden": 32, "memory": False}),
        learner=LearnerConfig(algorithm="alphazero", unroll_length=4, **(small | learner)),
        replay=ReplayConfig(**(sizes | replay)),
    )


class SampleStand(Stand):
    """`stand.learner` is a RunningLearner; what a client submits teaches it."""

    learner: RunningLearner

    def __init__(
        self, learner: dict[str, Any] | None = None, replay: dict[str, Any] | None = None, **server: Any
    ) -> None:
        super().__init__(**server)
        self.config = sample_config(self.config, learner or {}, replay or {})
        self.run_dir.write_config(self.config)
        self.draw = SampleDraw(self.spec)

    def make_learner(self) -> RunningLearner:
        return RunningLearner(self.run_dir)

    def random_samples(self, count: int, **more: Any) -> list[Sample]:
        return [self.draw.sample(**more) for _ in range(count)]

    def stored(self) -> int:
        """Samples in the replay buffer."""
        return int(self.learner.metrics.get("samples", {}).get("stored", 0))


def settle(client: InferenceClient, done: Callable[[], bool] | None = None) -> None:
    """Poll until the server has answered every sample, or until `done()`."""

    def answered() -> bool:
        client.poll()
        return done() if done is not None else not client.samples.waiting

    wait_for(answered)


def evaluate(client: InferenceClient, observation: np.ndarray, mask: np.ndarray) -> Evaluation:
    """Priors and values of rows, from the served policy."""
    number = client.evaluate(observation, mask)
    found: list[Evaluation] = []

    def answered() -> bool:
        found.extend(answer for answer in client.poll().evaluations if answer.id == number)
        return bool(found)

    wait_for(answered)
    assert not found[0].errors
    return found[0]
