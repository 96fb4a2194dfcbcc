"""The whole server but its sockets, under random interleavings, against every session's game played alone.

Each reply's value is compared with the network stepped by itself through that session's own decisions: a state that
leaked from another session, or a step that was applied twice, would show in the numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from msgspec import structs
from numpy.typing import NDArray

from simul.common.client.evaluation import pack_evaluate
from simul.common.client.steps import pack_step
from simul.common.errors import ERR_CAPACITY, ERR_DEADLINE, ERR_NO_SESSION, ERR_ORDER
from simul.common.protocol.decisions import Decision, start_flags
from simul.common.protocol.messages import ABORTED, TERMINATED, TRUNCATED
from tests.support.contract import ENVS, MASK, NAMES, SLOTS, SPEC, Game, ServerWithoutSockets


class Interleavings(ServerWithoutSockets):
    """START, STEP, resend, REDO, END, deadlines, EVALUATE, reap, reconnect, disconnect and new run_id in any order."""

    seats = st.tuples(st.sampled_from(NAMES), st.integers(0, ENVS - 1))

    @rule(seat=seats, record=st.booleans(), attempt=st.sampled_from((0, 0, 0, 1)))
    def start(self, seat, record, attempt) -> None:
        self.episode += 1
        observation, flags = self.observation(), start_flags(record, False)
        row = Decision(seat[1], 0, self.episode, 0, attempt, flags=flags, observation=observation, mask=MASK)
        key = self.send(seat, row)
        if attempt:
            assert self.client_socket.answers[key] == [ERR_ORDER]
            return
        full = len(self.sessions) == SLOTS and key in self.client_socket.answers
        old = self.games.pop(seat, None)
        if full and old is None:
            assert self.client_socket.answers[key] == [ERR_CAPACITY]
            return
        zero = self.network.initial_state(1)
        game = self.games[seat] = Game(self.episode, record, zero, zero)
        game.waiting = {"observation": observation, "keys": [key], "step": 0, "attempt": 0}

    @rule(seat=seats, deadline_ms=st.sampled_from((0, 0, 5)))
    def step(self, seat, deadline_ms) -> None:
        game, observation = self.games.get(seat), self.observation()
        step = game.step + 1 if game else 0
        episode = game.episode if game else 0
        row = Decision(seat[1], 0, episode, step, observation=observation, mask=MASK, reward=1.0)
        key = self.send(seat, row, deadline_ms)
        if game is None:
            assert self.client_socket.answers[key] == [ERR_NO_SESSION]
        elif game.waiting is None:
            game.waiting = {"observation": observation, "keys": [key], "step": step, "attempt": 0}
        elif (game.waiting["step"], game.waiting["attempt"]) == (step, 0):
            self.again(game, key, observation)
        else:
            assert self.client_socket.answers[key] == [ERR_ORDER]

    @rule(seat=seats)
    def redo(self, seat) -> None:
        game, observation = self.games.get(seat), self.observation()
        if game is None or game.step < 0:
            return
        row = Decision(
            seat[1], 0, game.episode, game.step, attempt=game.attempt + 1, observation=observation, mask=MASK
        )
        key = self.send(seat, row)
        if game.waiting is None:
            game.waiting = {"observation": observation, "keys": [key], "step": game.step, "attempt": game.attempt + 1}
        elif (game.waiting["step"], game.waiting["attempt"]) == (game.step, game.attempt + 1):
            self.again(game, key, observation)
        else:
            assert self.client_socket.answers[key] == [ERR_ORDER]

    @rule(seat=seats)
    def resend_what_was_answered(self, seat) -> None:
        game = self.games.get(seat)
        if game is None or game.step < 0 or game.waiting is not None:
            return
        row = Decision(seat[1], 0, game.episode, game.step, game.attempt, observation=self.observation(), mask=MASK)
        assert self.client_socket.answers[self.send(seat, row)] == [game.value]

    @rule(seat=seats, kind=st.sampled_from((TERMINATED, TRUNCATED, ABORTED)))
    def end(self, seat, kind) -> None:
        game, final = self.games.pop(seat, None), self.observation()
        episode, step = (game.episode, game.step + 1) if game else (0, 0)
        if game and game.waiting:
            step = game.waiting["step"]
        learned, row = len(self.learner.last), Decision(seat[1], 0, episode, step, kind=kind, observation=final)
        for _ in range(2):  # acknowledged, known or not, however often it comes
            assert self.client_socket.answers[self.send(seat, row)] == [0.0]
        ends = {TERMINATED: (True, False, [0.0] * len(final)), TRUNCATED: (False, True, final.tolist())}
        to_learn = game is not None and game.record and game.step >= 0 and kind != ABORTED
        assert self.learner.last[learned:] == ([ends[kind]] if to_learn else [])

    @rule(seat=seats)
    def reap(self, seat) -> None:
        session = self.sessions.find(self.clients[seat[0]], seat[1], 0)
        assert (session is None) == (seat not in self.games)
        if session is not None:
            for _ in range(2):
                self.session_closer.close_session(session, ABORTED, None, "idle", self.now)
            del self.games[seat]

    @rule(name=st.sampled_from(NAMES), politely=st.booleans())
    def a_new_life(self, name, politely) -> None:
        self.void.append(self.clients[name].token)
        if politely:
            self.forget(self.clients[name])
            self.table.forget(self.clients[name])
        for older in self.connect(name):
            self.forget(older)
        for seat in [seat for seat in self.games if seat[0] == name]:
            del self.games[seat]

    @rule(name=st.sampled_from(NAMES))
    def reconnect(self, name) -> None:
        client, peer = self.clients[name], f"line {next(self.lines)}".encode()
        for void in ("f" * 32, *self.void):
            assert self.table.resume(void, peer, self.now) is None
        before = client.peer
        assert self.table.resume(client.token, peer, self.now) is client
        assert self.table.of_peer(peer) is client
        assert self.table.of_peer(before) is None

    @rule(late=st.booleans())
    def batch(self, late) -> None:
        self.now += 1.0 if late else 0.0
        self.admission_control.refuse_expired(self.now)
        taken = self.batcher.take_batch()
        slots = [slot for chunk in taken for slot in chunk.slots[self.alive(chunk)].tolist()]
        assert len(slots) == len(set(slots))  # never two steps of one session in a batch
        self.actor.act(taken, self.now)
        self.settle()

    @rule(seat=seats, own=st.booleans())
    def evaluate(self, seat, own) -> None:
        game, observation = self.games.get(seat), self.observation()
        sessions = [(seat[1], 0, game.episode if game else 0)] if own else None
        self.message += 1
        message, tensors = pack_evaluate(self.message, observation[None], MASK[None], SPEC, sessions=sessions)
        self.admission_control.admit_message(self.clients[seat[0]], message, tensors, self.now)
        self.evaluator.act()
        (answer,) = self.client_socket.answers[self.message, 0]
        if own and game is None:
            assert answer == ERR_NO_SESSION
        else:
            state = game.state if own and game else self.network.initial_state(1)
            assert answer == pytest.approx(self.forward(observation, state)[0], abs=1e-5)

    @invariant()
    def every_slot_has_one_owner(self) -> None:
        self.sessions.check()
        assert len(self.sessions) == len(self.games)

    @invariant()
    def every_recorded_step_is_accounted_for(self) -> None:
        steps = self.recorder.steps(self.sessions.count_pending_recorded())
        assert steps["seen"] == steps["sent"] + sum(steps["dropped"].values()) + steps["open"]
        buffer = self.recorder._buffer
        assert len(buffer._free) + sum(game.record for game in self.games.values()) == len(buffer._filled)
        assert self.sessions.started == len(self.sessions) + self.admission_control._statistics.sessions_ended.total()

    @invariant()
    def no_row_is_answered_twice(self) -> None:
        assert all(len(answers) == 1 for answers in self.client_socket.answers.values())

    def teardown(self) -> None:
        while self.batcher.waiting:
            self.batch(late=False)
        for game in self.games.values():  # every row was answered; one that was late may still come again
            assert game.waiting is None or self.client_socket.answers[game.waiting["keys"][-1]] == [ERR_DEADLINE]


class Laid(NamedTuple):
    """Memory of a client in which one message's observations lie, float32 [N, D]."""

    rows: NDArray[np.float32]

    def observation(self, spec, offset, rows) -> NDArray[np.float32]:
        return self.rows

    def close(self) -> None:
        pass


class InterleavingsInMemory(Interleavings):
    """The same, with observations in memory: they are read when their batch is made."""

    def send(self, seat, row, deadline_ms=0) -> tuple[int, int]:
        self.message += 1
        message, tensors = pack_step(self.message, [row], SPEC)
        message = structs.replace(message, deadline_ms=deadline_ms, observation_at=64)
        client = self.clients[seat[0]]
        client.memory = cast(Any, Laid(tensors.pop("observation")))
        self.admission_control.admit_message(client, message, tensors, self.now)
        return self.message, 0


Interleavings.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
InterleavingsInMemory.TestCase.settings = settings(max_examples=15, stateful_step_count=40, deadline=None)
TestInterleavings = Interleavings.TestCase
TestInterleavingsInMemory = InterleavingsInMemory.TestCase
