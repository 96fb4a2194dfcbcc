"""`python -m simul.inference_server.loadtest.local`: a client process that runs the policy itself, without a server.

It is the load test's baseline, and times the bare forward.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from simul.common.checkpoints.meta import check_spec, read_meta
from simul.common.client.columns import Answer, Columns
from simul.common.client.load.driver import masks
from simul.common.client.load.orders import SetUp, carry_out
from simul.common.config.schema import Config
from simul.common.config.trust import Trust
from simul.common.errors import CheckpointError, WeightsError
from simul.common.nets.base import RecurrentNetwork
from simul.common.nets.build import build_network, network_outline
from simul.common.nets.devices import choose_device, choose_precision
from simul.common.nets.io import read_weights
from simul.common.nets.traced import traced_forward
from simul.common.protocol.messages import Error
from simul.common.protocol.specs import GameSpec, random_observations
from simul.common.role.run_directory import RunDir
from simul.inference_server.engine.sampling import sample

WARM_UP_FORWARDS = 5


class LocalPolicy:
    """Forward and sampling of all envs of a client at once. Answers are ready when `submit` returns.

    A client's envs are always submitted together, so the recurrent state passes from one forward to the next unchanged.
    """

    def __init__(self, config: Config, spec: GameSpec, checkpoint: Path, trust: Trust) -> None:
        torch.set_num_threads(config.server.threads)
        self.refusals: list[Error] = []
        self._spec = spec
        self._device = choose_device(config.server.device)
        self._network = _network(config, spec, checkpoint, self._device, trust)
        self._run = traced_forward(self._network, spec)
        self._state = torch.zeros(0, self._network.state_size)
        self._answers: list[Answer] = []
        self._next_id = 0

    @torch.inference_mode()
    def submit(self, columns: Columns) -> int:
        """One forward over rows of all envs, in order."""
        rows = len(columns.flags)
        if self._state.shape[0] != rows:
            self._state = self._network.initial_state(rows)
        observation = torch.from_numpy(columns.observation).to(self._device)
        legal = torch.from_numpy(columns.mask).to(self._device) > 0
        logits, value, self._state = self._run(observation, legal, self._state)
        noise = -torch.empty_like(logits, dtype=torch.float32).exponential_().log()
        action, log_prob = sample(logits.float(), legal, noise)
        on_host = torch.stack((action.float(), log_prob, value.float())).cpu().numpy()  # device-to-host sync here
        self._next_id += 1
        numbers = np.arange(rows, dtype=np.int32)
        versions = np.zeros(rows, np.int64)
        self._answers.append(
            Answer(self._next_id, numbers, on_host[0].astype(np.int32), on_host[1], on_host[2], versions)
        )
        return self._next_id

    def poll(self) -> list[Answer]:
        """The answers since the last poll."""
        answers, self._answers = self._answers, []
        return answers

    def wait(self, timeout_sec: float) -> None:
        """Returns at once: answers are ready when `submit` returns."""

    def close(self) -> None:
        """Nothing to release."""

    @torch.inference_mode()
    def forward_per_sec(self, batch: int, seconds: float) -> float:
        """Rows a second of the network alone at `batch`: no sampling, no server, the state carried along."""
        draw = np.random.default_rng(0)
        observation = torch.from_numpy(random_observations(self._spec, batch, draw)).to(self._device)
        legal = torch.from_numpy(masks(self._spec, batch, draw)).to(self._device) > 0
        state = self._network.initial_state(batch)
        forwards, begin = -WARM_UP_FORWARDS, 0.0
        while forwards <= 0 or time.perf_counter() - begin < seconds:
            _, value, state = self._run(observation, legal, state)
            value.cpu()  # device-to-host sync here
            forwards += 1
            if forwards == 0:
                begin = time.perf_counter()
        return forwards * batch / (time.perf_counter() - begin)


def _network(
    config: Config, spec: GameSpec, checkpoint: Path, device: torch.device, trust: Trust
) -> RecurrentNetwork:  # fmt: skip
    meta = read_meta(checkpoint)
    check_spec(checkpoint, meta, spec)
    try:
        state = read_weights(checkpoint, meta, network_outline(config.network, spec, trust=trust))
    except WeightsError as error:
        raise CheckpointError(f"The checkpoint {checkpoint} does not fit the configured network: {error}.") from None
    network = build_network(config.network, spec, trust=trust)
    network.load_state_dict(state)
    precision = choose_precision(config.server.precision, device)
    own = network.lowered(precision) if precision != torch.float32 else network
    return own.to(device).eval().requires_grad_(False)


def set_up(setup: SetUp, spec: GameSpec) -> Callable[[], LocalPolicy]:
    """Load the policy of a run directory. Raises ConfigError, CheckpointError."""
    config, trust = RunDir(setup.run_dir).read_trusted_config()
    policy = LocalPolicy(config, spec, Path(setup.checkpoint), trust)
    return lambda: policy


if __name__ == "__main__":
    sys.exit(carry_out(set_up))
