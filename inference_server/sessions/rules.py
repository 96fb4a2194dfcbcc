"""The rules that single rows are judged by. Pure."""

from __future__ import annotations

from collections.abc import Set
from enum import Enum

from simul.common.errors import ERR_NO_SESSION, ERR_ORDER, ERR_POLICY, ProtocolError
from simul.common.protocol.messages import START
from simul.inference_server.sessions.table import Session


class Verdict(Enum):
    """What the server does with a row."""

    ACT = "act"  # a new step: forward it
    REDO = "redo"  # the last step again, from the state before it
    CACHED = "cached"  # answered before: send the same reply
    RETRY = "retry"  # its deadline passed before it was forwarded: queue it again
    PENDING = "pending"  # waits in a batch already: nothing to do


def classify_row(session: Session | None, key: tuple[int, int, int, int, int], ending: str = "") -> Verdict:
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
    if last < 0 and (step, attempt) != (0, 0):  # nothing was answered that could be sent again
        raise ProtocolError(ERR_ORDER, f"expected step 0 attempt 0; got step {step} attempt {attempt}")
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
    if step != 0 or attempt != 0:
        raise ProtocolError(ERR_ORDER, f"START belongs to step 0 attempt 0; got step {step} attempt {attempt}")
    if policy not in known:
        raise ProtocolError(ERR_POLICY, f"policy {policy[:40]!r} is not served; served are: {', '.join(sorted(known))}")
