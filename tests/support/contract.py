"""The whole server but its sockets, and what every seat was promised: the ground of tests that play against it."""

from __future__ import annotations

import itertools
import logging
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis.stateful import RuleBasedStateMachine

from simul.common.client.steps import pack_step
from simul.common.config.schema import NetworkConfig
from simul.common.errors import ERR_DEADLINE
from simul.common.nets.build import build_network
from simul.common.nets.io import fingerprint, weights_to_bytes
from simul.common.protocol.decisions import Decision
from simul.common.protocol.messages import Weights
from simul.common.protocol.specs import GameSpec
from simul.inference_server.base.statistics import Statistics
from simul.inference_server.batching.batcher import Batcher
from simul.inference_server.engine.engine import PolicyEngine
from simul.inference_server.policies.engine_factory import EngineFactory
from simul.inference_server.policies.table import PolicyTable
from simul.inference_server.serving.actor import Actor
from simul.inference_server.serving.admission_control import AdmissionControl
from simul.inference_server.serving.evaluation import Evaluator
from simul.inference_server.serving.step_admission import StepAdmission
from simul.inference_server.sessions.clients import Client, ClientTable, InFlight
from simul.inference_server.sessions.session_close import SessionCloser
from simul.inference_server.sessions.table import SessionTable
from simul.inference_server.unrolls.buffer import UnrollBuffer
from simul.inference_server.unrolls.recorder import Recorder
from simul.inference_server.unrolls.sample_relay import SampleRelay

SPEC = GameSpec(name="test", observation_size=4, num_actions=3)
NETWORK = NetworkConfig(options={"hidden": 8})
SLOTS, ENVS, NAMES = 4, 3, ("a", "b")
MASK = np.ones(SPEC.num_actions, np.uint8)


class RecordingClientSocket:
    """Keeps what would be sent: (message, row) -> (value or None, error code or None)."""

    def __init__(self) -> None:
        self.answers: dict[tuple[int, int], list[Any]] = {}

    def reply(self, client, message, rows, action, log_prob, value, version) -> None:
        for row, number in zip(rows.tolist(), value.tolist()):
            self.answers.setdefault((message, row), []).append(number)

    def reply_again(self, client, message, replies) -> None:
        for row, reply in replies:
            self.answers.setdefault((message, row), []).append(reply[2])

    def refuse(self, client, message, rows, code, text, *, retry_after_ms=0) -> None:
        for row in list(rows) or [0]:
            self.answers.setdefault((message, row), []).append(code)

    def send_to(self, client, message, tensors=None) -> None:
        for row, number in zip(tensors["row"].tolist(), tensors["value"].tolist()):
            self.answers.setdefault((message.id, row), []).append(number)


class RecordingLearner:
    """Takes every unroll: (terminated, truncated, the last observation)."""

    def __init__(self) -> None:
        self.last: list[tuple[bool, bool, list[float]]] = []

    def backlog(self) -> tuple[int, int]:
        return 0, 0

    def reads_memory(self, now) -> bool:
        return False

    def flush(self) -> None:
        pass

    def offer(self, message, tensors, now) -> bool:
        self.last.append((message.terminated, message.truncated, tensors["observation"][-1].tolist()))
        return True


@dataclass
class Game:
    """What one seat was promised."""

    episode: int
    record: bool
    state: torch.Tensor  # after the last answered step
    before: torch.Tensor  # before it
    step: int = -1
    attempt: int = 0
    waiting: dict[str, Any] | None = None  # the row that is not answered yet
    value: float = 0.0  # of the last answer


class ServerWithoutSockets(RuleBasedStateMachine):
    """Clients a and b with a few seats each; a game's own network says what every answer must be."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.network = build_network(NETWORK, SPEC, seed=3)
        statistics, self.client_socket = Statistics(), RecordingClientSocket()
        client_socket = cast(Any, self.client_socket)
        self.policies = PolicyTable(SPEC, EngineFactory(SPEC, NETWORK, self._engine, (1,)))
        data = weights_to_bytes(self.network)
        self.policies.install(Weights(policy="learner", policy_version=0, fingerprint=fingerprint(data)), data)
        self.sessions = SessionTable(SLOTS, seed=0)
        self.learner = RecordingLearner()
        link = cast(Any, self.learner)
        self.recorder = recorder = Recorder(UnrollBuffer(SPEC, 3, self.network.state_size), link, statistics)
        self.session_closer = SessionCloser(self.sessions, recorder, statistics)
        self.step_admission = StepAdmission(
            SPEC, self.sessions, self.policies, recorder, self.session_closer, statistics
        )
        self.actor = Actor(
            self.policies, self.sessions, recorder, self.session_closer, client_socket, statistics,
            logging.getLogger("test"), zero_state=False,
        )  # fmt: skip
        self.batcher = Batcher(3)
        self.evaluator = Evaluator(SPEC, self.sessions, self.policies, client_socket, statistics, 3)
        self.admission_control = AdmissionControl(
            SPEC,
            client_socket,
            self.sessions,
            self.step_admission,
            self.batcher,
            self.evaluator,
            SampleRelay(SPEC, link, statistics, algorithm="ppo"),
            InFlight(99, 99, 3),
            statistics,
        )
        self.table = ClientTable("secret")
        self.run_id, self.now, self.message, self.episode = 0, 0.0, 0, 0
        self.lines, self.void = itertools.count(), []  # routing ids, tokens of lives that are over
        self.clients: dict[str, Client] = {}
        self.games: dict[tuple[str, int], Game] = {}
        for name in NAMES:
            self.connect(name)

    def _engine(self, network) -> PolicyEngine:
        return PolicyEngine(network, SPEC, max_sessions=SLOTS, device=torch.device("cpu"), precision=torch.float32)

    def connect(self, name: str) -> list[Client]:
        self.run_id += 1
        self.clients[name], ended = self.table.register_client(
            name, self.run_id, "secret", str(self.run_id).encode(), self.now
        )
        return ended

    def forget(self, client: Client) -> None:
        self.session_closer.close_sessions_of(client, "closed")

    def observation(self) -> np.ndarray:
        return np.random.default_rng(self.message).standard_normal(SPEC.observation_size).astype(np.float32)

    def send(self, seat: tuple[str, int], row: Decision, deadline_ms: int = 0) -> tuple[int, int]:
        self.message += 1
        message, tensors = pack_step(self.message, [row], SPEC)
        message = type(message)(id=message.id, policies=message.policies, deadline_ms=deadline_ms)
        self.admission_control.admit_message(self.clients[seat[0]], message, tensors, self.now)
        return self.message, 0

    def again(self, game: Game, key: tuple[int, int], observation: np.ndarray) -> None:
        """A row that waits was sent again: nothing happens, unless its deadline had passed."""
        assert key not in self.client_socket.answers
        if game.waiting["keys"][-1] in self.client_socket.answers:  # ERR_DEADLINE: this copy is the one that counts now
            game.waiting["observation"] = observation
            game.waiting["keys"].append(key)

    def settle(self) -> None:
        for game in self.games.values():
            if game.waiting is None or game.waiting["keys"][-1] not in self.client_socket.answers:
                continue
            (answer,) = self.client_socket.answers[game.waiting["keys"][-1]]
            if answer == ERR_DEADLINE:
                continue
            redo = game.waiting["attempt"] > 0
            before = game.before if redo else game.state
            wanted, game.state = self.forward(game.waiting["observation"], before)
            assert answer == pytest.approx(wanted, abs=1e-5)
            game.before, game.value = before, answer
            game.step, game.attempt, game.waiting = game.waiting["step"], game.waiting["attempt"], None

    def alive(self, chunk) -> np.ndarray:
        return self.sessions.number.take(chunk.slots) == chunk.numbers

    @torch.inference_mode()
    def forward(self, observation: np.ndarray, state: torch.Tensor) -> tuple[float, torch.Tensor]:
        _, value, after = self.network(torch.from_numpy(observation)[None], torch.ones(1, SPEC.num_actions) > 0, state)
        return value.item(), after
