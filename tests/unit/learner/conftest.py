"""Unrolls, networks and facts the learner is tested on."""

import numpy as np
import pytest

from simul.common.config.schema import NetworkConfig
from simul.common.nets.build import build_network
from simul.common.protocol.messages import Unroll
from simul.common.protocol.specs import GameSpec
from simul.learner.checkpoints.checkpoint_store import RunFacts
from simul.learner.io.unrolls import UnrollChecker

SPEC = GameSpec("cartpole", 4, 2)
NETWORK = NetworkConfig("mlp_lstm", {"hidden": 8})


class Draw:
    """Random unrolls of SPEC, as messages or checked."""

    spec = SPEC

    def __init__(self) -> None:
        self.random = np.random.default_rng(0)
        self.checker = UnrollChecker(SPEC, 16, unroll_length=8)

    def message(self, length: int = 5, version: int = 0, terminated: bool = False, first_step: int = 0):
        message = Unroll(
            length=length, first_step=first_step, terminated=terminated, truncated=False,
            spec_fingerprint=SPEC.fingerprint(),
        )  # fmt: skip
        tensors = {
            "observation": self.random.normal(size=(length + 1, 4)).astype(np.float32),
            "mask": np.ones((length + 1, 2), np.uint8),
            "action": self.random.integers(0, 2, length).astype(np.int32),
            "log_prob": np.full(length, np.log(0.5), np.float32),
            "value": np.zeros(length + 1, np.float32),
            "reward": self.random.normal(size=length).astype(np.float32),
            "policy_version": np.full(length, version, np.int64),
            "state": self.random.normal(size=16).astype(np.float32),
        }
        return message, tensors

    def unroll(self, length: int = 5, version: int = 0, terminated: bool = False, first_step: int = 0):
        return self.checker.check(*self.message(length, version, terminated, first_step))


@pytest.fixture
def draw() -> Draw:
    return Draw()


@pytest.fixture
def network():
    return build_network(NETWORK, SPEC, seed=1)


@pytest.fixture
def facts() -> RunFacts:
    return RunFacts(SPEC, NETWORK, "0123456789abcdef", 1)
