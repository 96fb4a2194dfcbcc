"""The whole server but its sockets, under random interleavings, against every session's game played alone.

Each reply's value is compared with the network stepped by itself through that session's own decisions: a state that
leaked from another session, or a step that was applied twice, would show in the numbers.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from common.config import NetworkConfig
from common.decisions import Decision, start_flags
from common.errors import ERR_CAPACITY, ERR_DEADLINE, ERR_NO_SESSION, ERR_ORDER
from common.evaluation_client import pack_evaluate
from common.messages import ABORTED, TERMINATED, Weights
from common.nets.build import build_network
from common.nets.weights import fingerprint, weights_to_bytes
from common.specs import GameSpec
from common.step_book import pack_step
from inference_server.actor import Actor
from inference_server.admission import Admission
from inference_server.batcher import Batcher
from inference_server.clients import Client, ClientTable
from inference_server.engine.engine import PolicyEngine
from inference_server.evaluation import Evaluator
from inference_server.intake import Intake
from inference_server.limits import InFlight
from inference_server.policies import PolicyTable
from inference_server.recorder import Recorder
from inference_server.sessions import SessionTable
from inference_server.statistics import Statistics
from inference_server.unrolls import UnrollBuilder
from inference_server.workshop import Workshop

SPEC = GameSpec(name="test", observation_size=4, num_actions=3)
NETWORK = NetworkConfig(options={"hidden": 8})
SLOTS, ENVS, NAMES = 4, 3, ("a", "b")
MASK = np.ones(SPEC.num_actions, np.uint8)


class _Gateway:
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


@dataclass
class _Game:
    """What one seat was promised."""

    episode: int
    state: torch.Tensor  # after the last answered step
    before: torch.Tensor  # before it
    step: int = -1
    attempt: int = 0
    waiting: dict[str, Any] | None = None  # the row that is not answered yet
    value: float = 0.0  # of the last answer


class Interleavings(RuleBasedStateMachine):
    """START, STEP, resend, REDO, END, deadlines, EVALUATE, reap, disconnect and new run_id in any order."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.network = build_network(NETWORK, SPEC, seed=3)
        statistics, self.gateway = Statistics(), _Gateway()
        gateway = cast(Any, self.gateway)
        self.policies = PolicyTable(SPEC, Workshop(SPEC, NETWORK, self._engine, (1,)))
        data = weights_to_bytes(self.network)
        self.policies.install(Weights(policy="learner", policy_version=0, fingerprint=fingerprint(data)), data)
        self.sessions = SessionTable(SLOTS, seed=0)
        self.recorder = recorder = Recorder(UnrollBuilder(SPEC, 3, self.network.state_size), None, statistics)
        self.admission = Admission(SPEC, self.sessions, self.policies, recorder, statistics)
        self.actor = Actor(
            self.policies, self.sessions, recorder, self.admission, gateway, statistics, logging.getLogger("test"),
            zero_state=False,
        )  # fmt: skip
        self.batcher = Batcher(3)
        self.evaluator = Evaluator(SPEC, self.sessions, self.policies, gateway, statistics, 3)
        self.intake = Intake(
            SPEC, gateway, self.sessions, self.admission, self.batcher, self.evaluator, InFlight(99, 99, 3), statistics
        )
        self.table = ClientTable("secret")
        self.run_id, self.now, self.message, self.episode = 0, 0.0, 0, 0
        self.clients: dict[str, Client] = {}
        self.games: dict[tuple[str, int], _Game] = {}
        for name in NAMES:
            self._connect(name)

    def _engine(self, network) -> PolicyEngine:
        return PolicyEngine(network, SPEC, max_sessions=SLOTS, device=torch.device("cpu"), precision=torch.float32)

    seats = st.tuples(st.sampled_from(NAMES), st.integers(0, ENVS - 1))

    @rule(seat=seats, record=st.booleans())
    def start(self, seat, record) -> None:
        old = self.games.pop(seat, None)
        full = len(self.sessions) == SLOTS and old is None
        self.episode += 1
        observation = self._observation()
        row = Decision(
            seat[1], 0, self.episode, 0, flags=start_flags(record, False), observation=observation, mask=MASK
        )
        key = self._send(seat, row)
        if full:
            assert self.gateway.answers[key] == [ERR_CAPACITY]
            return
        zero = self.network.initial_state(1)
        game = self.games[seat] = _Game(self.episode, zero, zero)
        game.waiting = {"observation": observation, "keys": [key], "step": 0, "attempt": 0}

    @rule(seat=seats, deadline_ms=st.sampled_from((0, 0, 5)))
    def step(self, seat, deadline_ms) -> None:
        game, observation = self.games.get(seat), self._observation()
        step = game.step + 1 if game else 0
        episode = game.episode if game else 0
        row = Decision(seat[1], 0, episode, step, observation=observation, mask=MASK, reward=1.0)
        key = self._send(seat, row, deadline_ms)
        if game is None:
            assert self.gateway.answers[key] == [ERR_NO_SESSION]
        elif game.waiting is None:
            game.waiting = {"observation": observation, "keys": [key], "step": step, "attempt": 0}
        elif (game.waiting["step"], game.waiting["attempt"]) == (step, 0):
            self._again(game, key, observation)
        else:
            assert self.gateway.answers[key] == [ERR_ORDER]

    @rule(seat=seats)
    def redo(self, seat) -> None:
        game, observation = self.games.get(seat), self._observation()
        if game is None or game.step < 0:
            return
        row = Decision(
            seat[1], 0, game.episode, game.step, attempt=game.attempt + 1, observation=observation, mask=MASK
        )
        key = self._send(seat, row)
        if game.waiting is None:
            game.waiting = {"observation": observation, "keys": [key], "step": game.step, "attempt": game.attempt + 1}
        elif (game.waiting["step"], game.waiting["attempt"]) == (game.step, game.attempt + 1):
            self._again(game, key, observation)
        else:
            assert self.gateway.answers[key] == [ERR_ORDER]

    @rule(seat=seats)
    def resend_what_was_answered(self, seat) -> None:
        game = self.games.get(seat)
        if game is None or game.step < 0 or game.waiting is not None:
            return
        row = Decision(seat[1], 0, game.episode, game.step, game.attempt, observation=self._observation(), mask=MASK)
        assert self.gateway.answers[self._send(seat, row)] == [game.value]

    @rule(seat=seats, kind=st.sampled_from((TERMINATED, ABORTED)))
    def end(self, seat, kind) -> None:
        game = self.games.pop(seat, None)
        episode, step = (game.episode, game.step + 1) if game else (0, 0)
        if game and game.waiting:
            step = game.waiting["step"]
        key = self._send(seat, Decision(seat[1], 0, episode, step, kind=kind))
        assert self.gateway.answers[key] == [0.0]  # acknowledged, known or not

    @rule(seat=seats)
    def reap(self, seat) -> None:
        session = self.sessions.find(self.clients[seat[0]], seat[1], 0)
        assert (session is None) == (seat not in self.games)
        if session is not None:
            for _ in range(2):
                self.admission.end(session, ABORTED, None, "idle", self.now)
            del self.games[seat]

    @rule(name=st.sampled_from(NAMES), politely=st.booleans())
    def a_new_life(self, name, politely) -> None:
        if politely:
            self._forget(self.clients[name])
            self.table.forget(self.clients[name])
        for older in self._connect(name):
            self._forget(older)
        for seat in [seat for seat in self.games if seat[0] == name]:
            del self.games[seat]

    @rule(late=st.booleans())
    def batch(self, late) -> None:
        self.now += 1.0 if late else 0.0
        self.intake.refuse_late(self.now)
        taken = self.batcher.take()
        slots = [slot for chunk in taken for slot in chunk.slots[self._alive(chunk)].tolist()]
        assert len(slots) == len(set(slots))  # never two steps of one session in a batch
        self.actor.act(taken, self.now)
        self._settle()

    @rule(seat=seats, own=st.booleans())
    def evaluate(self, seat, own) -> None:
        game, observation = self.games.get(seat), self._observation()
        sessions = [(seat[1], 0, game.episode if game else 0)] if own else None
        self.message += 1
        message, tensors = pack_evaluate(self.message, observation[None], MASK[None], SPEC, sessions=sessions)
        self.intake.take(self.clients[seat[0]], message, tensors, self.now)
        self.evaluator.act()
        (answer,) = self.gateway.answers[self.message, 0]
        if own and game is None:
            assert answer == ERR_NO_SESSION
        else:
            state = game.state if own and game else self.network.initial_state(1)
            assert answer == pytest.approx(self._forward(observation, state)[0], abs=1e-5)

    @invariant()
    def every_slot_has_one_owner(self) -> None:
        self.sessions.check()
        assert len(self.sessions) == len(self.games)

    @invariant()
    def every_recorded_step_is_accounted_for(self) -> None:
        steps = self.recorder.steps(self.sessions.pending_recorded())
        assert steps["seen"] == steps["sent"] + sum(steps["dropped"].values()) + steps["open"]

    @invariant()
    def no_row_is_answered_twice(self) -> None:
        assert all(len(answers) == 1 for answers in self.gateway.answers.values())

    def teardown(self) -> None:
        while self.batcher.waiting:
            self.batch(late=False)
        for game in self.games.values():  # every row was answered; one that was late may still come again
            assert game.waiting is None or self.gateway.answers[game.waiting["keys"][-1]] == [ERR_DEADLINE]

    def _connect(self, name: str) -> list[Client]:
        self.run_id += 1
        self.clients[name], ended = self.table.open(name, self.run_id, "secret", str(self.run_id).encode(), self.now)
        return ended

    def _forget(self, client: Client) -> None:
        self.admission.end_all_of(client, "closed")

    def _observation(self) -> np.ndarray:
        return np.random.default_rng(self.message).standard_normal(SPEC.observation_size).astype(np.float32)

    def _send(self, seat: tuple[str, int], row: Decision, deadline_ms: int = 0) -> tuple[int, int]:
        self.message += 1
        message, tensors = pack_step(self.message, [row], SPEC)
        message = type(message)(id=message.id, policies=message.policies, deadline_ms=deadline_ms)
        self.intake.take(self.clients[seat[0]], message, tensors, self.now)
        return self.message, 0

    def _again(self, game: _Game, key: tuple[int, int], observation: np.ndarray) -> None:
        """A row that waits was sent again: nothing happens, unless its deadline had passed."""
        assert key not in self.gateway.answers
        if game.waiting["keys"][-1] in self.gateway.answers:  # ERR_DEADLINE: this copy is the one that counts now
            game.waiting["observation"] = observation
            game.waiting["keys"].append(key)

    def _settle(self) -> None:
        for game in self.games.values():
            if game.waiting is None or game.waiting["keys"][-1] not in self.gateway.answers:
                continue
            (answer,) = self.gateway.answers[game.waiting["keys"][-1]]
            if answer == ERR_DEADLINE:
                continue
            redo = game.waiting["attempt"] > 0
            before = game.before if redo else game.state
            wanted, game.state = self._forward(game.waiting["observation"], before)
            assert answer == pytest.approx(wanted, abs=1e-5)
            game.before, game.value = before, answer
            game.step, game.attempt, game.waiting = game.waiting["step"], game.waiting["attempt"], None

    def _alive(self, chunk) -> np.ndarray:
        return self.sessions.number.take(chunk.slots) == chunk.numbers

    @torch.inference_mode()
    def _forward(self, observation: np.ndarray, state: torch.Tensor) -> tuple[float, torch.Tensor]:
        _, value, after = self.network(torch.from_numpy(observation)[None], torch.ones(1, SPEC.num_actions) > 0, state)
        return value.item(), after


class ManyInterleavings(Interleavings):
    """The same, for longer."""


Interleavings.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
ManyInterleavings.TestCase.settings = settings(max_examples=3000, stateful_step_count=60, deadline=None)
TestInterleavings = Interleavings.TestCase
TestManyInterleavings = pytest.mark.timeout(3600)(pytest.mark.slow(ManyInterleavings.TestCase))
