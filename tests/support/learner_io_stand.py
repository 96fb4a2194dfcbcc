"""A real server and the learner's I/O thread without the main loop, both in this process."""

from __future__ import annotations

from typing import Any

import numpy as np

from simul.common.nets.build import build_network
from simul.common.protocol.messages import Unroll
from simul.common.protocol.specs import GameSpec
from simul.common.transport import RouterSocket
from simul.learner.io.credits import CreditAllocator
from simul.learner.io.learner_io import LearnerIO
from simul.learner.io.server_handshake import ServerHandshake
from simul.learner.io.unrolls import UnrollChecker
from tests.support.stand import Stand

SPEC = GameSpec("test", observation_size=2, num_actions=2)


def one_step() -> tuple[Unroll, dict[str, np.ndarray]]:
    """The shortest unroll of SPEC."""
    facts = {"terminated": False, "truncated": False, "spec_fingerprint": SPEC.fingerprint()}
    tensors = {
        "observation": np.zeros((2, 2), np.float32), "mask": np.ones((2, 2), np.uint8),
        "value": np.zeros(2, np.float32), "action": np.zeros(1, np.int32), "log_prob": np.zeros(1, np.float32),
        "reward": np.zeros(1, np.float32), "policy_version": np.zeros(1, np.int64), "state": np.zeros(0, np.float32),
    }  # fmt: skip
    return Unroll(length=1, first_step=0, **facts), tensors


class LearnerIOOnly:
    """The learner without its main loop."""

    def __init__(self, stand: Stand) -> None:
        spec, state_size = stand.spec, build_network(stand.config.network, stand.spec).state_size
        self.sockets = [RouterSocket(stand.run_dir.endpoint(name)) for name in ("unrolls", "weights")]
        handshake = ServerHandshake(stand.run_dir.token(), spec.fingerprint())
        checker = UnrollChecker(spec, state_size, stand.config.learner.unroll_length)
        self.io = LearnerIO(*self.sockets, checker, CreditAllocator(10_000, 4), handshake)
        self.io.publish("learner", 0, stand.weights(), ("learner",))

    def start(self) -> LearnerIOOnly:
        self.io.start()
        return self

    def stop(self) -> None:
        self.io.close()
        for socket in self.sockets:
            socket.close()


class LearnerIOStand(Stand):
    """`stand.learner.io` publishes weights and receives unrolls."""

    def make_learner(self) -> Any:
        return LearnerIOOnly(self)
