"""The session table: who may step what, and which row of recurrent state it owns. Pure: no sockets, no torch.

Every slot has two rows of state, 2 * slot and 2 * slot + 1. A step reads one and writes the other, so the state
before the last step is still there when the game refuses the action (REDO), and a failed forward changes nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simul.common.protocol.errors import (
    ERR_CAPACITY,
    ERR_DENIED,
    ERR_NO_SESSION,
    ERR_NOT_READY,
    ERR_POLICY,
    ProtocolError,
)
from simul.common.protocol.messages import GREEDY, RECORD
from simul.common.runtime import rng
from simul.inference_server.frontend.clients import Client
from simul.inference_server.sessions import columns as columns
from simul.inference_server.sessions.rules import WAITING, Session


class Ordinary(NamedTuple):
    """Of a message's rows: which bool [N]; of the M that it marks their indices and slots, int64 [M] each."""

    which: NDArray[np.bool_]
    rows: NDArray[np.int64]
    slots: NDArray[np.int64]


class SessionTable(columns.SessionColumns):
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
        """Whose it is."""
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

    def pending_recorded(self) -> int:
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

    def open(self, client: Client, env: int, seat: int, episode: int, flags: int, policy: str, now: float) -> Session:
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
        client.seats.put(env, seat, slot)
        return Session(self, slot)

    def _full(self, client: Client) -> str:
        """Why a client gets no further session; empty where it does."""
        if not client.training and len(client.seats) >= self.max_of_client:
            return f"{len(client.seats)} sessions of yours are open, the limit; end one first"
        if not client.training and self._without_token >= self.max_without_token:
            reserved = self.max_sessions - self.max_without_token
            return (
                f"all {self.max_without_token} sessions for clients without the run's token are in use; the other "
                f"{reserved} of {self.max_sessions} are reserved for the run's workers; end one, or try again later"
            )
        return "" if self._free else f"all {self.max_sessions} sessions are in use; end one first"

    def begin_ordinary(self, client: Client, keys: NDArray[np.int64], plain: NDArray[np.bool_]) -> Ordinary:
        """Admit the rows that are simply their session's next step; they wait for their batch.

        Not among them: rows about a session that the message has more rows of.

        Args:
            keys: int64 [N, 5] (env, seat, episode, step, attempt).
            plain: bool [N], rows that may be admitted at all.
        """
        n = len(keys)
        ordinary, rows, slots = np.empty(n, np.bool_), np.empty(n, np.int64), np.empty(n, np.int64)
        m = columns.begin_ordinary(
            keys, plain, client.seats.guess(keys), self.due, self.attempt, self._positions, ordinary, rows, slots
        )
        return Ordinary(ordinary, rows[:m], slots[:m])

    def begin_step(self, session: Session, step: int, attempt: int) -> None:
        """The row is admitted: it waits for its batch."""
        slot = session.slot
        self.due[slot, 3:] = (step + 1, WAITING)
        self.attempt[slot] = attempt

    def expire(self, slots: NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
        """Rows that waited were refused unseen: the same rows, sent again, are queued again. int64 [B] each."""
        self.expired[slots[self.number.take(slots) == numbers]] = True

    def state_rows(
        self,
        slots: NDArray[np.int64],
        redo: NDArray[np.bool_],
        read_rows: NDArray[np.int64],
        write_rows: NDArray[np.int64],
    ) -> None:
        """Write the rows of the state before the steps that wait, and the rows that the new states go to.

        slots int64 [B], redo bool [B]; read_rows, write_rows: int64 [B or more], their first B are written.
        """
        columns.state_rows(slots, redo, self._zero_row, self._newest, self._spare, self.due, read_rows, write_rows)

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
        columns.commit(
            slots, written, action, log_prob, value, version, now,
            self._newest, self._spare, self.due, self.action, self.log_prob, self.value, self.version, self.touched_at,
        )  # fmt: skip

    def touch(self, session: Session, now: float) -> None:
        """A sign of life."""
        self.touched_at[session.slot] = now

    def end(self, session: Session) -> bool:
        """Free the slot. True the first time only, whoever else races to end it."""
        if not session.alive:
            return False
        slot = session.slot
        client = self._clients.pop(slot)
        client.seats.remove(session.env, session.seat)
        self._without_token -= not client.training
        self.number[slot] = 0
        self.due[slot] = WAITING
        self.unroll_row[slot] = -1
        self._free.append(slot)
        return True

    def unanswered(self, slots: NDArray[np.int64]) -> int:
        """How many of these sessions wait for a batch with a row that is no REDO."""
        return int(np.count_nonzero((self.due[slots, 4] == WAITING) & (self.attempt[slots] == 0)))

    def end_all_of(self, client: Client) -> None:
        """Free every slot of a client: thousands of them in less than a millisecond."""
        slots = client.seats.slots
        self.number[slots] = 0
        self.due[slots] = WAITING
        self.unroll_row[slots] = -1
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
