"""The session table: who may step what, and which row of recurrent state it owns. Pure: no sockets, no torch.

The table is numpy columns, one entry a slot, so that a whole message or batch is a handful of numpy operations or one
compiled loop. S is `max_sessions`; slot S, also called -1, belongs to no session: seats without one point to it, and no
row ever matches it.
Every slot has two rows of state, 2 * slot and 2 * slot + 1. A step reads one and writes the other, so the state
before the last step is still there when the game refuses the action (REDO), and a failed forward changes nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simul.common.errors import (
    ERR_CAPACITY,
    ERR_DENIED,
    ERR_NO_SESSION,
    ERR_NOT_READY,
    ERR_POLICY,
    ProtocolError,
)
from simul.common.protocol.messages import GREEDY, RECORD
from simul.common.runtime import rng
from simul.common.runtime.compiled import BOOL, FLOAT32, FLOAT64, INT32, INT64, column, compiled, read
from simul.inference_server.sessions.clients import Client

Reply = tuple[int, float, float, int]  # action, log_prob, value, policy_version
END_ACKNOWLEDGED: Reply = (-1, 0.0, 0.0, -1)
WAITING = -1  # in the place of the attempt that may come: the server owes the reply of the last one


class SessionColumns:
    """The state of every session, by slot; arrays [S + 1]."""

    def __init__(self, max_sessions: int) -> None:
        n = max_sessions + 1
        self.due = np.full((n, 5), WAITING)  # the ordinary next row: env, seat, episode, step, attempt 0 or WAITING
        self.number = np.zeros(n, np.int64)  # generation of the slot, 0: free
        self.attempt = np.zeros(n, np.int64)  # the last admitted one; above 0 it is a REDO
        self.expired = np.zeros(n, np.bool_)  # the row that waited was refused at its deadline: it may be sent again
        self.temperature = np.ones(n, np.float32)
        self.group = np.zeros(n, np.int64)  # 2 * number of the policy + recorded
        self.recording = np.full(n, -1)  # its number in the unroll buffer, -1: not recorded
        self.greedy = np.zeros(n, np.bool_)
        self.noise_key = np.zeros(n, np.uint64)
        self.touched_at = np.zeros(n)
        self.action = np.zeros(n, np.int32)  # the last reply: action, log_prob, value, version
        self.log_prob = np.zeros(n, np.float32)
        self.value = np.zeros(n, np.float32)
        self.version = np.zeros(n, np.int64)
        self._newest = np.zeros(n, np.int64)  # state row after the last step; the row of zeros before the first
        self._spare = np.zeros(n, np.int64)  # state row that the next step writes


class Session:
    """One seat's run through one episode. A handle: the numbers stand in the table's columns."""

    __slots__ = ("_table", "number", "slot")

    def __init__(self, table: SessionTable, slot: int) -> None:
        self._table = table
        self.slot = slot
        self.number = int(table.number[slot])  # unique for the server's life; a generation counter for its slot

    @property
    def alive(self) -> bool:
        """The session has not ended."""
        return bool(self._table.number[self.slot] == self.number)

    @property
    def env(self) -> int:
        """Number that the client gave its env."""
        return int(self._table.due[self.slot, 0])

    @property
    def seat(self) -> int:
        """Seat of the env."""
        return int(self._table.due[self.slot, 1])

    @property
    def episode(self) -> int:
        """Episode of the seat."""
        return int(self._table.due[self.slot, 2])

    @property
    def step(self) -> int:
        """The last admitted step, -1 before the first."""
        return int(self._table.due[self.slot, 3]) - 1

    @property
    def attempt(self) -> int:
        """The last admitted attempt at that step."""
        return int(self._table.attempt[self.slot])

    @property
    def pending(self) -> bool:
        """The last admitted row waits for its batch."""
        return bool(self._table.due[self.slot, 4] == WAITING)

    @property
    def redoing(self) -> bool:
        """What is pending is a REDO: its step stands in the unroll already."""
        return self.attempt > 0

    @property
    def expired(self) -> bool:
        """What is pending was refused at its deadline, unseen: the same row may come again."""
        return bool(self._table.expired[self.slot])

    @property
    def record(self) -> bool:
        """True if the session is recorded for the learner."""
        return bool(self._table.group[self.slot] & 1)

    @property
    def policy(self) -> str:
        """Name of the policy that the session is bound to."""
        return self._table.policy_of(int(self._table.group[self.slot]))

    @property
    def noise_key(self) -> int:
        """Key of the session's sampling noise."""
        return int(self._table.noise_key[self.slot])

    @property
    def reply(self) -> Reply:
        """The last reply."""
        table, slot = self._table, self.slot
        return int(table.action[slot]), float(table.log_prob[slot]), float(table.value[slot]), int(table.version[slot])


class NextSteps(NamedTuple):
    """Rows that are their session's next step: which bool [N]; indices and slots of these M, int64 [M] each."""

    which: NDArray[np.bool_]
    rows: NDArray[np.int64]
    slots: NDArray[np.int64]


class SessionTable(SessionColumns):
    """Sessions by (client, env, seat). The only owner of slots: every slot is freed once, here."""

    def __init__(self, max_sessions: int, seed: int, max_of_client: int | None = None, reserved: int = 0) -> None:
        """`max_of_client`: of one without the training token; None: no limit. `reserved`: for holders of the token."""
        super().__init__(max_sessions)
        self.max_sessions = max_sessions
        self.max_of_client = max_of_client or max_sessions
        self.max_without_token = max_sessions - reserved
        self.refusal = ""  # the last START that found no room, as a sentence for the view
        self.started = 0
        self._without_token = 0
        self.accepting = True  # False: the server drains, no session begins
        self._zero_row = 2 * max_sessions
        self._positions = np.zeros(max_sessions + 1, np.int64)
        self._seed = seed
        self._free = list(range(max_sessions - 1, -1, -1))
        self._clients: dict[int, Client] = {}  # by slot
        self._policies: list[str] = []

    def __len__(self) -> int:
        return len(self._clients)

    def find(self, client: Client, env: int, seat: int) -> Session | None:
        """The live session of a seat."""
        slot = client.seats.get(env, seat)
        return Session(self, slot) if slot >= 0 else None

    def client_of(self, session: Session) -> Client:
        """The client that owns the session."""
        return self._clients[session.slot]

    def state_row(self, client: Client, env: int, seat: int, episode: int, policy: str) -> int:
        """Row of the state that the next step of a client's own session would read.

        Raises:
            ProtocolError: ERR_NO_SESSION, or ERR_POLICY where the session is bound to another policy than `policy`.
        """
        session = self.find(client, env, seat)
        if session is None or session.episode != episode:
            raise ProtocolError(ERR_NO_SESSION, f"env {env} seat {seat} has no live session of episode {episode}")
        if session.policy != policy:
            raise ProtocolError(ERR_POLICY, f"this session is bound to {session.policy!r}; got {policy!r}")
        return int(self._newest[session.slot])

    def count_pending_recorded(self) -> int:
        """Recorded steps that wait for a batch and are not in the unroll buffers yet."""
        waiting = self.due[:, 4] == WAITING
        return int(np.count_nonzero((self.number > 0) & waiting & (self.group & 1 > 0) & (self.attempt == 0)))

    def bound_to(self, policy: str) -> int:
        """How many live sessions are bound to a policy."""
        if policy not in self._policies:
            return 0
        return int(np.count_nonzero((self.number > 0) & (self.group >> 1 == self._policies.index(policy))))

    def idle(self, since: float) -> list[Session]:
        """Sessions untouched after `since` to which the server owes nothing."""
        idle = (self.number > 0) & (self.touched_at < since) & ((self.due[:, 4] != WAITING) | self.expired)
        return [Session(self, slot) for slot in np.flatnonzero(idle).tolist()]

    def policy_of(self, group: int) -> str:
        """Name of the policy of a group of sessions (column `group`)."""
        return self._policies[group >> 1]

    def open_session(
        self, client: Client, env: int, seat: int, episode: int, flags: int, policy: str, now: float
    ) -> Session:
        """A new session with zero state. The caller ended a live one of the same seat before.

        Raises:
            ProtocolError: ERR_CAPACITY, ERR_NOT_READY, or ERR_DENIED where RECORD lacks the training token.
        """
        if not self.accepting:
            raise ProtocolError(ERR_NOT_READY, "the server is shutting down; connect again when it is back")
        if flags & RECORD and not client.training:
            raise ProtocolError(ERR_DENIED, "RECORD needs the run's training token in HELLO")
        if full := self._full(client):
            self.refusal = f"client {client.name!r}{' (of the run)' * client.training}: {full}"
            raise ProtocolError(ERR_CAPACITY, full)
        if policy not in self._policies:
            self._policies.append(policy)
        self.started += 1
        slot = self._free.pop()
        self.number[slot] = self.started
        self.due[slot] = (env, seat, episode, 0, 0)
        self.attempt[slot] = 0
        self.expired[slot] = False
        self.temperature[slot] = 1.0
        self.group[slot] = 2 * self._policies.index(policy) + bool(flags & RECORD)
        self.greedy[slot] = bool(flags & GREEDY)
        self.noise_key[slot] = rng.session_key(self._seed, client.name, env, seat, episode)
        self.touched_at[slot] = now
        self._newest[slot], self._spare[slot] = self._zero_row, 2 * slot
        self._clients[slot] = client
        self._without_token += not client.training
        client.seats.add_seat(env, seat, slot)
        return Session(self, slot)

    def _full(self, client: Client) -> str:
        """Why a client gets no further session; empty if it gets one."""
        if not client.training and len(client.seats) >= self.max_of_client:
            return f"{len(client.seats)} sessions of yours are open, the limit; end one first"
        if not client.training and self._without_token >= self.max_without_token:
            reserved = self.max_sessions - self.max_without_token
            return (
                f"all {self.max_without_token} sessions for clients without the run's token are in use; the other "
                f"{reserved} of {self.max_sessions} are reserved for the run's workers; end one, or try again later"
            )
        return "" if self._free else f"all {self.max_sessions} sessions are in use; end one first"

    def admit_next_steps(
        self,
        client: Client,
        keys: NDArray[np.int64],
        plain: NDArray[np.bool_],
        recorded_only: NDArray[np.bool_] | None = None,
    ) -> NextSteps:
        """Admit the rows that are simply their session's next step; they wait for their batch.

        Not among them: rows about a session that the message has more rows of.

        Args:
            keys: int64 [N, 5] (env, seat, episode, step, attempt).
            plain: bool [N], rows that may be admitted at all.
            recorded_only: bool [N], those that may be admitted only if their session is recorded; None: none.
        """
        guesses = client.seats.guess_slots(keys)
        if recorded_only is not None:
            plain = plain & ~(recorded_only & (self.recording.take(guesses) < 0))
        n = len(keys)
        ordinary, rows, slots = np.empty(n, np.bool_), np.empty(n, np.int64), np.empty(n, np.int64)
        m = _admit_next_steps(
            keys, plain, guesses, self.due, self.attempt, self._positions, ordinary, rows, slots
        )  # fmt: skip
        return NextSteps(ordinary, rows[:m], slots[:m])

    def begin_step(self, session: Session, step: int, attempt: int) -> None:
        """Admit one row: it waits for its batch."""
        slot = session.slot
        self.due[slot, 3:] = (step + 1, WAITING)
        self.attempt[slot] = attempt

    def mark_expired(self, slots: NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
        """Rows that waited were refused unseen: the same rows, sent again, are queued again. int64 [B] each."""
        self.expired[slots[self.number.take(slots) == numbers]] = True

    def find_state_rows(
        self,
        slots: NDArray[np.int64],
        redo: NDArray[np.bool_],
        read_rows: NDArray[np.int64],
        write_rows: NDArray[np.int64],
    ) -> None:
        """Write the rows of the state before the steps that wait, and the rows that the new states go to.

        slots int64 [B], redo bool [B]; read_rows, write_rows: int64 [B or more], their first B are written.
        """
        _find_state_rows(slots, redo, self._zero_row, self._newest, self._spare, self.due, read_rows, write_rows)

    def commit(
        self,
        slots: NDArray[np.int64],
        written: NDArray[np.int64],
        action: NDArray[np.int32],
        log_prob: NDArray[np.float32],
        value: NDArray[np.float32],
        version: int,
        now: float,
    ) -> None:
        """The forward succeeded: it wrote the state rows `written` and chose the replies; arrays [B]."""
        _commit(
            slots, written, action, log_prob, value, version, now,
            self._newest, self._spare, self.due, self.action, self.log_prob, self.value, self.version, self.touched_at,
        )  # fmt: skip

    def touch(self, session: Session, now: float) -> None:
        """Restart the session's idle time."""
        self.touched_at[session.slot] = now

    def free_slot(self, session: Session) -> bool:
        """Free the slot. True the first time only."""
        if not session.alive:
            return False
        slot = session.slot
        client = self._clients.pop(slot)
        client.seats.remove_seat(session.env, session.seat)
        self._without_token -= not client.training
        self.number[slot] = 0
        self.due[slot] = WAITING
        self.recording[slot] = -1
        self._free.append(slot)
        return True

    def unanswered(self, slots: NDArray[np.int64]) -> int:
        """How many of these sessions wait for a batch with a row that is no REDO."""
        return int(np.count_nonzero((self.due[slots, 4] == WAITING) & (self.attempt[slots] == 0)))

    def free_slots_of(self, client: Client) -> None:
        """Free every slot of a client: thousands of them in less than a millisecond."""
        slots = client.seats.slots
        self.number[slots] = 0
        self.due[slots] = WAITING
        self.recording[slots] = -1
        for slot in slots:
            del self._clients[slot]
        self._free.extend(slots)
        self._without_token -= len(slots) * (not client.training)
        client.seats.clear()

    def check(self) -> None:
        """Assert that every slot is owned exactly once. For tests and debug runs."""
        used = np.flatnonzero(self.number).tolist()
        assert sorted(used + self._free) == list(range(self.max_sessions))
        assert sorted(self._clients) == used
        assert self._without_token == sum(not client.training for client in self._clients.values())
        assert sorted(slot for c in set(self._clients.values()) for slot in c.seats.slots) == used


@compiled(
    read(INT64, 2), read(BOOL), read(INT64), column(INT64, 2), column(INT64), column(INT64),
    column(BOOL), column(INT64), column(INT64),
)  # fmt: skip
def _admit_next_steps(
    keys: NDArray[np.int64],
    plain: NDArray[np.bool_],
    guesses: NDArray[np.int64],
    due: NDArray[np.int64],
    attempt: NDArray[np.int64],
    positions: NDArray[np.int64],
    ordinary: NDArray[np.bool_],
    rows: NDArray[np.int64],
    slots: NDArray[np.int64],
) -> int:
    """Admit the rows that are simply their session's next step, where nothing else in the message is about it.

    keys int64 [N, 5], plain bool [N], guesses int64 [N]: what came, and the slot that each row's seat may have.
    positions: int64 [S + 1], any numbers. ordinary bool [N], and of the M rows admitted rows, slots int64 [N or more]:
    written.

    Returns:
        M.
    """
    for i in range(len(keys)):
        positions[guesses[i]] = i
        ordinary[i] = plain[i] and keys[i, 4] == 0
        for j in range(5):
            ordinary[i] &= due[guesses[i], j] == keys[i, j]
    for i in range(len(keys)):  # seats that have more rows than one: in their order, one by one
        if positions[guesses[i]] != i:
            ordinary[i] = ordinary[positions[guesses[i]]] = False
    admitted = 0
    for i in range(len(keys)):
        if ordinary[i]:
            slot = guesses[i]
            rows[admitted], slots[admitted] = i, slot
            due[slot, 3] += 1
            due[slot, 4] = WAITING
            attempt[slot] = 0
            admitted += 1
    return admitted


@compiled(
    read(INT64), read(BOOL), INT64, read(INT64), read(INT64), read(INT64, 2), column(INT64), column(INT64)
)  # fmt: skip
def _find_state_rows(
    slots: NDArray[np.int64],
    redo: NDArray[np.bool_],
    zero_row: int,
    newest: NDArray[np.int64],
    spare: NDArray[np.int64],
    due: NDArray[np.int64],
    read_rows: NDArray[np.int64],
    write_rows: NDArray[np.int64],
) -> None:
    """Rows of the state before the steps that wait, and rows that the new states go to: int64 [B or more] each."""
    for i in range(len(slots)):
        slot = slots[i]
        if redo[i]:
            read_rows[i] = zero_row if due[slot, 3] == 1 else spare[slot]
            write_rows[i] = newest[slot]
        else:
            read_rows[i], write_rows[i] = newest[slot], spare[slot]


@compiled(
    read(INT64), read(INT64), read(INT32), read(FLOAT32), read(FLOAT32), INT64, FLOAT64,
    column(INT64), column(INT64), column(INT64, 2), column(INT32), column(FLOAT32), column(FLOAT32), column(INT64),
    column(FLOAT64),
)  # fmt: skip
def _commit(
    slots: NDArray[np.int64],
    written: NDArray[np.int64],
    actions: NDArray[np.int32],
    log_probs: NDArray[np.float32],
    values: NDArray[np.float32],
    of_version: int,
    now: float,
    newest: NDArray[np.int64],
    spare: NDArray[np.int64],
    due: NDArray[np.int64],
    action: NDArray[np.int32],
    log_prob: NDArray[np.float32],
    value: NDArray[np.float32],
    version: NDArray[np.int64],
    touched_at: NDArray[np.float64],
) -> None:
    """The replies to the steps that waited, and the rows that their new states went to; [B] each, `written` or more."""
    for i in range(len(slots)):
        slot = slots[i]
        newest[slot], spare[slot] = written[i], written[i] ^ 1
        action[slot], log_prob[slot], value[slot] = actions[i], log_probs[i], values[i]
        version[slot], touched_at[slot] = of_version, now
        due[slot, 4] = 0
