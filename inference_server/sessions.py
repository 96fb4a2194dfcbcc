"""The session table: who may step what, and which row of recurrent state it owns. Pure: no sockets, no torch.

Every slot has two rows of state, 2 * slot and 2 * slot + 1. A step reads one and writes the other, so the state
before the last step is still there when the game refuses the action (REDO), and a failed forward changes nothing.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from enum import Enum

from common import rng
from common.errors import ERR_CAPACITY, ERR_DENIED, ERR_NO_SESSION, ERR_ORDER, ERR_POLICY, ProtocolError
from common.messages import GREEDY, RECORD, START
from inference_server.clients import Client

Reply = tuple[int, float, float, int]  # action, log_prob, value, policy_version
END_ACKNOWLEDGED: Reply = (-1, 0.0, 0.0, -1)


class Verdict(Enum):
    """What is to be done with a row."""

    ACT = "act"  # a new step: forward it
    REDO = "redo"  # the last step again, from the state before it
    CACHED = "cached"  # answered before: send the same reply
    PENDING = "pending"  # waits in a batch already: nothing to do


@dataclass(eq=False, slots=True)
class Session:
    """One seat's run through one episode."""

    number: int  # unique for the server's life; a generation counter for its slot
    slot: int
    client: Client
    env: int
    seat: int
    episode: int
    policy: str
    record: bool
    greedy: bool
    noise_key: int
    touched_at: float
    recorder: int = -1  # row of the unroll buffers, -1: not recorded
    step: int = -1
    attempt: int = 0
    parity: int = 0  # the row that holds the newest state is 2 * slot + parity
    pending: bool = False
    redoing: bool = False  # what is pending is a REDO: its step stands in the unroll already
    alive: bool = True
    reply: Reply = END_ACKNOWLEDGED

    def read_row(self, redo: bool, zero_row: int) -> int:
        """Row of the state before the step."""
        if self.step == 0:
            return zero_row
        return 2 * self.slot + (self.parity ^ redo)

    def write_row(self, redo: bool) -> int:
        """Row that the new state goes to."""
        return 2 * self.slot + (self.parity ^ (not redo))


class SessionTable:
    """Sessions by (client, env, seat). The only owner of slots: every slot is freed once, here."""

    def __init__(self, max_sessions: int, seed: int) -> None:
        self.max_sessions = max_sessions
        self.started = 0
        self._seed = seed
        self._free = list(range(max_sessions - 1, -1, -1))
        self._by_key: dict[tuple[str, int, int], Session] = {}
        self._by_number: dict[int, Session] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def find(self, client: Client, env: int, seat: int) -> Session | None:
        """The live session of a seat."""
        return self._by_key.get((client.token, env, seat))

    def sessions_of(self, client: Client) -> list[Session]:
        """Every live session of a client."""
        return [self._by_number[number] for number in client.sessions]

    def pending_recorded(self) -> int:
        """Recorded steps that wait for a batch and are not in the unroll buffers yet."""
        return sum(s.pending and s.record and not s.redoing for s in self._by_key.values())

    def bound_to(self, policy: str) -> int:
        """How many live sessions are bound to a policy."""
        return sum(session.policy == policy for session in self._by_key.values())

    def idle(self, since: float) -> list[Session]:
        """Sessions untouched after `since` to which the server owes nothing."""
        return [s for s in self._by_key.values() if s.touched_at < since and not s.pending]

    def open(self, client: Client, env: int, seat: int, episode: int, flags: int, policy: str, now: float) -> Session:
        """A new session with zero state. The caller ended a live one of the same seat before.

        Raises:
            ProtocolError: ERR_CAPACITY, or ERR_DENIED where RECORD lacks the training token.
        """
        if flags & RECORD and not client.training:
            raise ProtocolError(ERR_DENIED, "RECORD needs the run's training token in HELLO")
        if not self._free:
            raise ProtocolError(ERR_CAPACITY, f"all {self.max_sessions} sessions are in use; end one first")
        self.started += 1
        session = Session(
            number=self.started,
            slot=self._free.pop(),
            client=client,
            env=env,
            seat=seat,
            episode=episode,
            policy=policy,
            record=bool(flags & RECORD),
            greedy=bool(flags & GREEDY),
            noise_key=rng.session_key(self._seed, client.name, env, seat, episode),
            touched_at=now,
        )
        self._by_key[client.token, env, seat] = session
        self._by_number[session.number] = session
        client.sessions.add(session.number)
        return session

    def judge(self, session: Session | None, key: tuple[int, int, int, int, int], now: float) -> Verdict:
        """What to do with a decision row `key` = (env, seat, episode, step, attempt) of a live session.

        Raises:
            ProtocolError: ERR_NO_SESSION or ERR_ORDER, saying what was expected and what came.
        """
        env, seat, episode, step, attempt = key
        if session is None or session.episode != episode:
            raise ProtocolError(
                ERR_NO_SESSION, f"env {env} seat {seat} has no live session of episode {episode}; begin one with START"
            )
        session.touched_at = now
        if step == session.step and attempt == session.attempt:
            return Verdict.PENDING if session.pending else Verdict.CACHED
        if session.pending:
            raise ProtocolError(ERR_ORDER, f"step {session.step} of this session is not answered yet; got step {step}")
        if step == session.step + 1 and attempt == 0:
            return Verdict.ACT
        if step == session.step and attempt == session.attempt + 1:
            return Verdict.REDO
        raise ProtocolError(
            ERR_ORDER,
            f"expected step {session.step + 1} attempt 0, or step {session.step} attempt {session.attempt + 1}; "
            f"got step {step} attempt {attempt}",
        )

    def begin_step(self, session: Session, step: int, attempt: int, redo: bool) -> None:
        """The row is admitted: it waits for its batch."""
        session.step, session.attempt, session.pending, session.redoing = step, attempt, True, redo

    def commit_step(self, session: Session, redo: bool, reply: Reply) -> None:
        """The forward succeeded and wrote the session's new state."""
        if not redo:
            session.parity ^= 1
        session.pending = False
        session.reply = reply

    def end(self, session: Session) -> bool:
        """Free the slot. True the first time only, whoever else races to end it."""
        if not session.alive:
            return False
        session.alive = False
        key = (session.client.token, session.env, session.seat)
        del self._by_key[key]
        del self._by_number[session.number]
        session.client.sessions.discard(session.number)
        self._free.append(session.slot)
        return True

    def check(self) -> None:
        """Assert that every slot is owned exactly once. For tests and debug runs."""
        used = [session.slot for session in self._by_key.values()]
        assert sorted(used + self._free) == list(range(self.max_sessions))
        assert {id(s) for s in self._by_key.values()} == {id(s) for s in self._by_number.values()}


def check_end(session: Session, step: int) -> None:
    """Check the step of an end. Raises ProtocolError ERR_ORDER."""
    if step == session.step + 1 or (session.pending and step == session.step):
        return
    unanswered = f", or step {session.step}, which is unanswered" if session.pending else ""
    raise ProtocolError(ERR_ORDER, f"expected the end at step {session.step + 1}{unanswered}; got step {step}")


def check_start(flags: int, step: int, attempt: int, policy: str, known: Set[str]) -> None:
    """Check a row with START. Raises ProtocolError ERR_ORDER or ERR_POLICY."""
    if not flags & START:
        raise ProtocolError(ERR_NO_SESSION, "expected START on the first decision of an episode")
    if step != 0:
        raise ProtocolError(ERR_ORDER, f"START belongs to step 0; got step {step} attempt {attempt}")
    if policy not in known:
        raise ProtocolError(ERR_POLICY, f"policy {policy!r} is not served; served are: {', '.join(sorted(known))}")
