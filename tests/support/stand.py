"""A real server on real sockets in this process, run in a thread, beside a stand-in learner."""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from simul.common.client.client import InferenceClient, Replies
from simul.common.config.schema import Config, LearnerConfig, NetworkConfig, ServerConfig, WorkersConfig
from simul.common.nets.build import build_network
from simul.common.nets.io import weights_to_bytes
from simul.common.protocol.decisions import Decision, start_flags
from simul.common.protocol.messages import TERMINATED
from simul.common.protocol.specs import GameSpec
from simul.common.role.lifecycle import RoleArguments, StopFlag
from simul.common.role.reports import Reporter
from simul.common.role.run_directory import RunDir
from simul.inference_server.build import build_server
from simul.inference_server.proxy.framing import Limits
from simul.inference_server.server import InferenceServer
from tests.support.fake_learner import FakeLearner
from tests.support.waiting import PATIENCE_SEC, wait_for

SPEC = GameSpec(name="test/numbers", observation_size=12, num_actions=5)


def wait_for_the_silent(patch: pytest.MonkeyPatch) -> None:
    """A peer counts as silent after PATIENCE_SEC: nothing is sent again because this process stood still."""
    for limit in (
        "simul.common.client.client.SILENT_AFTER_SEC",
        "simul.common.client.client.RESEND_AFTER_SEC",
        "simul.inference_server.unrolls.learner_link.SILENT_AFTER_SEC",
        "simul.inference_server.proxy.process.FROZEN_SEC",
    ):
        patch.setattr(limit, PATIENCE_SEC)


class Stand:
    """Use as a context manager: `with Stand(deterministic=True) as stand: client = stand.client("a")`."""

    def __init__(
        self, spec: GameSpec = SPEC, *, unroll_length: int = 4, credit: int = 1_000_000, envs: int = 1,
        proxy: Limits | None = None, **server: Any,
    ) -> None:  # fmt: skip
        """`envs`: of the run's only worker, whose sessions are reserved. `server`: its section's settings."""
        defaults = {"max_sessions": 64, "precision": "float32", "device": "cpu", "client_timeout_sec": PATIENCE_SEC}
        server = defaults | server  # whoever is silent in a test of many seconds is not gone
        server.setdefault("max_sessions_of_client", server["max_sessions"])
        self.spec = spec
        self.config = Config(
            network=NetworkConfig(options={"hidden": 32}),
            server=ServerConfig(**server),
            learner=LearnerConfig(unroll_length=unroll_length),
            workers=WorkersConfig(envs=envs),
        )
        self._folder = tempfile.TemporaryDirectory(prefix="simul-test-")
        self.run_dir = RunDir(Path(self._folder.name))
        self.run_dir.create()
        self.run_dir.write_config(self.config)
        self.run_dir.write_spec(spec)
        self._credit = credit
        self._proxy = proxy
        self._clients: list[InferenceClient] = []
        self.stop_flag = StopFlag()

    def weights(self, seed: int = 0) -> bytes:
        """Fresh weights of the served network."""
        return weights_to_bytes(build_network(self.config.network, self.spec, seed=seed))

    def __enter__(self) -> Stand:
        self.learner = self.make_learner().start()
        arguments = RoleArguments(self.run_dir, 0, 1, 0)
        self._reporter = Reporter(arguments, "inference_server")
        log = logging.getLogger("test-server")
        server = build_server(arguments, None, self._reporter, self.stop_flag, log, proxy=self._proxy)
        assert server is not None
        self.server: InferenceServer = server
        server.metrics = _read_beside(server.metrics)  # type: ignore[method-assign]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        wait_for(lambda: self.server.metrics()["learner_alive"])  # what comes before it is dropped
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            client.close()
        self.stop_flag.set()
        self._thread.join(PATIENCE_SEC)
        assert not self._thread.is_alive()
        self.server.close()
        self._reporter.close()
        self.learner.stop()
        self._folder.cleanup()

    def _serve(self) -> None:
        torch.set_num_threads(self.config.server.threads)  # a thread has its own number, a role has one thread only
        self.server.run(self.stop_flag)

    def make_learner(self) -> Any:
        """Who takes the unrolls."""
        return FakeLearner(self.run_dir, self.weights(), credit=self._credit)

    def client(
        self, name: str, *, training: bool = True, run_id: int = 1, timeout_sec: float = PATIENCE_SEC, **more: Any
    ) -> InferenceClient:
        """A connected client."""
        token = self.run_dir.token() if training else ""
        endpoint = self.config.server.endpoint or self.run_dir.endpoint("data")
        client = InferenceClient(endpoint, name=name, spec=self.spec, run_id=run_id, training_token=token, **more)
        self._clients.append(client)
        client.connect(timeout_sec)
        return client

    def decision(self, env: int, step: int, *, seed: int = 0, **more: Any) -> Decision:
        """A decision whose observation depends on (seed, env, step) only; START at step 0."""
        rng = np.random.default_rng((seed, env, step))
        mask = rng.integers(0, 2, self.spec.num_actions).astype(np.uint8)
        mask[rng.integers(self.spec.num_actions)] = 1
        defaults: dict[str, Any] = {
            "seat": 0,
            "episode": 0,
            "flags": start_flags(record=True, greedy=False) if step == 0 else 0,
            "observation": rng.standard_normal(self.spec.observation_size).astype(self.spec.dtype()),
            "mask": mask,
        }
        return Decision(env=env, step=step, **(defaults | more))

    def ends(self, step: int, *envs: int) -> list[Decision]:
        """TERMINATED of these envs' sessions."""
        return [self.decision(env, step, kind=TERMINATED, observation=None, mask=None) for env in envs]


def _read_beside(metrics: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    """Figures of a server whose loop goes on in its thread: again where what they iterate over has grown meanwhile."""

    def read() -> dict[str, Any]:
        while True:
            try:
                return metrics()
            except RuntimeError as error:
                if "during iteration" not in str(error):
                    raise

    return read


def exchange(client: InferenceClient, decisions: list[Decision], timeout_sec: float = PATIENCE_SEC) -> Replies:
    """Submit and wait until every row is answered."""
    client.submit(decisions)
    return gather(client, timeout_sec)


def gather(client: InferenceClient, timeout_sec: float = PATIENCE_SEC) -> Replies:
    """Wait until every row is answered, or the server says that it has forgotten them."""
    total = Replies([], [])
    deadline = time.monotonic() + timeout_sec
    while client.waiting:
        replies = client.poll()
        total.actions += replies.actions
        total.failures += replies.failures
        total.lost |= replies.lost
        if replies.lost or not client.waiting:
            break
        assert time.monotonic() < deadline, f"{client.waiting} rows are not answered"
        client.poller.wait(0.02)
    return total
