"""One session, seen through its slot of the table, and the rules that single rows are judged by. Pure."""

from __future__ import annotations

from collections.abc import Set
from enum import Enum
from typing import TYPE_CHECKING

from simul.common.protocol.errors import ERR_NO_SESSION, ERR_ORDER, ERR_POLICY, ProtocolError
from simul.common.protocol.messages import START

if TYPE_CHECKING:
    from simul.inference_server.sessions.table import SessionTable

Reply = tuple[int, float, float, int]  # action, log_prob, value, policy_version
END_ACKNOWLEDGED: Reply = (-1, 0.0, 0.0, -1)
WAITING = -1  # in the place of the attempt that may come: the server owes the reply of the last one


class Verdict(Enum):
    """What is to be done with a row."""

    ACT = "act"  # a new step: forward it
    REDO = "redo"  # the last step again, from the state before it
    CACHED = "cached"  # answered before: send the same reply
    RETRY = "retry"  # its deadline passed before it was forwarded: queue it again
    PENDING = "pending"  # waits in a batch already: nothing to do


class Session:
    """One seat's run through one episode. A handle: the numbers stand in the table's columns."""

    __slots__ = ("_table", "number", "slot")

    def __init__(self, table: SessionTable, slot: int) -> None:
        self._table = table
        self.slot = slot
        self.number = int(table.number[slot])  # unique for the server's life; a generation counter for its slot

    @property
    def alive(self) -> bool:
        """Nobody has ended it yet."""
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
        """It is learned from."""
        return bool(self._table.group[self.slot] & 1)

    @property
    def policy(self) -> str:
        """Name of the policy it is bound to."""
        return self._table.policy_of(int(self._table.group[self.slot]))

    @property
    def noise_key(self) -> int:
        """Key of its draws."""
        return int(self._table.noise_key[self.slot])

    @property
    def reply(self) -> Reply:
        """The last reply."""
        table, slot = self._table, self.slot
        return int(table.action[slot]), float(table.log_prob[slot]), float(table.value[slot]), int(table.version[slot])


def judge(session: Session | None, key: tuple[int, int, int, int, int], ending: str = "") -> Verdict:
    """What to do with a decision row `key` = (env, seat, episode, step, attempt) of a live session.

    `ending`: why the server ended the session, where it did.

    Raises:
        ProtocolError: ERR_NO_SESSION or ERR_ORDER, saying what was expected and what came.
    """
    env, seat, episode, step, attempt = key
    if session is None or session.episode != episode:
        raise ProtocolError(
            ERR_NO_SESSION,
            f"env {env} seat {seat} has no live session of episode {episode}{ending and ': ' + ending}; "
            "begin one with START",
        )
    last, last_attempt, pending = session.step, session.attempt, session.pending
    if step == last and attempt == last_attempt:
        if session.expired:
            return Verdict.RETRY
        return Verdict.PENDING if pending else Verdict.CACHED
    if pending:
        raise ProtocolError(ERR_ORDER, f"step {last} of this session is not answered yet; got step {step}")
    if step == last + 1 and attempt == 0:
        return Verdict.ACT
    if step == last and attempt == last_attempt + 1:
        return Verdict.REDO
    raise ProtocolError(
        ERR_ORDER,
        f"expected step {last + 1} attempt 0, or step {last} attempt {last_attempt + 1}; "
        f"got step {step} attempt {attempt}",
    )


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
        raise ProtocolError(ERR_POLICY, f"policy {policy[:40]!r} is not served; served are: {', '.join(sorted(known))}")
