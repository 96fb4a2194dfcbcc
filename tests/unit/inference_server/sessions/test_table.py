"""The session table against random interleavings: one owner frees a slot, once; no step is applied twice."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from simul.common.errors import ERR_CAPACITY, ERR_NO_SESSION, ERR_ORDER, ProtocolError
from simul.common.protocol.messages import START
from simul.inference_server.sessions.clients import ClientTable
from simul.inference_server.sessions.rules import Verdict, classify_row
from simul.inference_server.sessions.table import Session, SessionTable

SLOTS = 3
REPLY = (1, -0.5, 0.25, 7)


def _client(name: str = "a", training: str = ""):
    return ClientTable("secret").register_client(name, 1, training, name.encode(), 0.0)[0]


def _commit(table: SessionTable, session: Session) -> None:
    """Forward what waits."""
    slots = np.array([session.slot])
    read, write = np.zeros(1, np.int64), np.zeros(1, np.int64)
    table.find_state_rows(slots, np.array([session.redoing]), read, write)
    action, log_prob, value, version = REPLY
    table.commit(
        slots, write, np.array([action], np.int32), np.array([log_prob], np.float32),
        np.array([value], np.float32), version, 0.0,
    )  # fmt: skip


def test_a_client_without_the_training_token_does_not_take_every_session() -> None:
    table, stranger, worker = SessionTable(SLOTS, seed=0, max_of_client=1), _client(), _client("b", "secret")
    table.open_session(stranger, 0, 0, 0, START, "learner", 0.0)
    with pytest.raises(ProtocolError, match="1 sessions of yours") as enough:
        table.open_session(stranger, 1, 0, 0, START, "learner", 0.0)
    assert enough.value.code == ERR_CAPACITY
    for env in range(SLOTS - 1):
        table.open_session(worker, env, 0, 0, START, "learner", 0.0)
    assert len(table) == SLOTS


def test_noise_depends_on_names_not_on_slots() -> None:
    table, client = SessionTable(SLOTS, seed=5), _client()
    first = table.open_session(client, 4, 0, 2, START, "learner", 0.0)
    key = first.noise_key
    table.free_slot(first)
    table.open_session(client, 9, 0, 0, START, "learner", 0.0)
    again = table.open_session(client, 4, 0, 2, START, "learner", 0.0)
    assert again.slot != first.slot
    assert again.noise_key == key


class Interleavings(RuleBasedStateMachine):
    """START, STEP, resend, REDO, END and reap in any order, against a model of what each seat was promised."""

    def __init__(self) -> None:
        super().__init__()
        self.table = SessionTable(SLOTS, seed=0)
        self.clients = [_client("a"), _client("b")]
        self.dead: list[Session] = []
        self.episode = 0

    seats = st.tuples(st.integers(0, 1), st.integers(0, 2))

    def _find(self, seat: tuple[int, int]) -> Session | None:
        return self.table.find(self.clients[seat[0]], seat[1], 0)

    @rule(seat=seats)
    def start(self, seat: tuple[int, int]) -> None:
        old = self._find(seat)
        if old is not None:
            assert self.table.free_slot(old)
            self.dead.append(old)
        self.episode += 1
        arguments = (self.clients[seat[0]], seat[1], 0, self.episode, START, "learner", 0.0)
        if len(self.table) == SLOTS:
            with pytest.raises(ProtocolError, match="in use"):
                self.table.open_session(*arguments)
            return
        session = self.table.open_session(*arguments)
        self.table.begin_step(session, 0, 0)

    @rule(seat=seats, step=st.integers(0, 4), attempt=st.integers(0, 2))
    def step(self, seat: tuple[int, int], step: int, attempt: int) -> None:
        session = self._find(seat)
        key = (seat[1], 0, session.episode if session else 0, step, attempt)
        same = session is not None and (step, attempt) == (session.step, session.attempt)
        if session is None or not (same or (not session.pending and self._follows(session, step, attempt))):
            with pytest.raises(ProtocolError) as refused:
                classify_row(session, key)
            assert refused.value.code == (ERR_NO_SESSION if session is None else ERR_ORDER)
            return
        verdict = classify_row(session, key)
        if same:
            assert verdict is (Verdict.PENDING if session.pending else Verdict.CACHED)
            return
        self.table.begin_step(session, step, attempt)
        assert session.redoing == (verdict is Verdict.REDO)

    @staticmethod
    def _follows(session: Session, step: int, attempt: int) -> bool:
        return (step, attempt) in ((session.step + 1, 0), (session.step, session.attempt + 1))

    rows = st.tuples(st.integers(-1, 3), st.integers(-1, 1), st.integers(0, 3), st.integers(-1, 3), st.integers(-1, 1))

    @rule(client=st.integers(0, 1), rows=st.lists(rows, max_size=6), data=st.data())
    def message(self, client: int, rows: list[tuple[int, int, int, int, int]], data: st.DataObject) -> None:
        """Rows that are admitted together are those that each, alone and in order, would be a new step."""
        seats = Counter(row[:2] for row in rows)
        plain = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
        expected = []
        keys = []
        for env, seat, back, ahead, attempt in rows:
            session = self.table.find(self.clients[client], env, seat)
            step = ahead + (session.step if session else 0)
            keys.append((env, seat, (session.episode if session else 0) - back // 3, step, attempt))
            try:
                verdict = classify_row(session, keys[-1])
            except ProtocolError:
                verdict = None
            expected.append(verdict is Verdict.ACT and seats[env, seat] == 1 and plain[len(expected)])
        columns = np.array(keys, np.int64).reshape(-1, 5)
        slots = self.clients[client].seats.guess_slots(columns)
        matches, rows_admitted, slots_admitted = self.table.admit_next_steps(
            self.clients[client], columns, np.array(plain, np.bool_)
        )
        assert rows_admitted.tolist() == np.flatnonzero(matches).tolist()
        assert slots_admitted.tolist() == slots[matches].tolist()
        for i, match in enumerate(matches):
            assert not (match and not expected[i])
            if expected[i] and seats[rows[i][:2]] == 1 and not match:
                # a seat without a session may be taken for another's at first; its row is then judged alone
                assert (slots == slots[i]).sum() > 1
        for (env, seat, *_), match in zip(keys, matches):
            session = self.table.find(self.clients[client], env, seat)
            assert not match or (session is not None and session.pending)

    @rule(seat=seats)
    def answer(self, seat: tuple[int, int]) -> None:
        session = self._find(seat)
        if session is not None and session.pending:
            _commit(self.table, session)
            assert session.reply == REPLY

    @rule(seat=seats)
    def end(self, seat: tuple[int, int]) -> None:
        session = self._find(seat)
        if session is not None:
            assert self.table.free_slot(session)
            self.dead.append(session)

    @precondition(lambda self: self.dead)
    @rule(data=st.data())
    def end_again(self, data: st.DataObject) -> None:
        assert not self.table.free_slot(data.draw(st.sampled_from(self.dead)))

    @invariant()
    def every_slot_has_one_owner(self) -> None:
        self.table.check()


Interleavings.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestInterleavings = Interleavings.TestCase
