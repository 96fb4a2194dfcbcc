"""Policy P, which every figure of serving is measured with, and the configuration that serves it."""

from __future__ import annotations

from typing import Any

import msgspec

from simul.common.config.schema import Config, LearnerConfig, NetworkConfig, ServerConfig, WorkersConfig
from simul.common.protocol.specs import GameSpec

# Linear(2160, 256) + ReLU, LSTM(256), 26 masked logits and a value: 1.09 M parameters
SPEC = GameSpec(name="bench/policy-p", observation_size=2160, num_actions=26)
NETWORK = NetworkConfig(name="mlp_lstm", options={"hidden": 256})
FREE = NetworkConfig(name="benchmarks.serving.free:FreeNetwork", options={"hidden": 256})  # the same state, no forward
UNROLL_LENGTH = 32
PRECISIONS = ("float32", "bfloat16")
STATE_ROW_BYTES = 2 * 2 * 256 * 4  # two rows of h and c, float32
UNROLL_ROW_BYTES = (UNROLL_LENGTH + 1) * (SPEC.observation_size * 4 + SPEC.num_actions) + 2 * 256 * 4


def served(precision: str, *, device: str = "cpu", network: NetworkConfig = NETWORK, **server: Any) -> Config:
    """The server's configuration. The clients have no token of the run and may together use all sessions.

    One further session is reserved for the run's only worker, which is not started.
    """
    limits = ServerConfig(device=device, precision=precision, **server)  # type: ignore[arg-type]
    return Config(
        network=network,
        server=msgspec.structs.replace(
            limits, max_sessions=limits.max_sessions + 1, max_sessions_of_client=limits.max_sessions
        ),
        workers=WorkersConfig(envs=1),
        learner=LearnerConfig(unroll_length=UNROLL_LENGTH),
    )
