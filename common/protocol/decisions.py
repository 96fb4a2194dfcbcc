"""What passes between a game and a policy: a decision, and the action or failure that answers it."""

from __future__ import annotations

from typing import Any

import msgspec
from numpy.typing import NDArray

from simul.common.protocol.messages import DECISION, GREEDY, RECORD, START
from simul.common.protocol.messages.base import LEARNER_POLICY


class Decision(msgspec.Struct, gc=False):
    """What a seat must answer, or the end of its session (`kind` other than DECISION).

    Attributes:
        env, seat, episode: with the client's token, the session's key.
        step, attempt: step 0, 1, 2, ...; attempt 0, or 1, 2, ... when the game refused the action (REDO).
            An end carries the step after the last decision and attempt 0.
        kind: DECISION, TERMINATED, TRUNCATED or ABORTED of `simul.common.protocol.messages`.
        flags: START | RECORD | GREEDY of `simul.common.protocol.messages`, read with START.
        reward: earned since this session's last decision.
        observation: wire dtype [D]; None for TERMINATED and ABORTED, the final one for TRUNCATED.
        mask: uint8 [A], 1 = legal; None for ends.
        policy: name the session is bound to, read with START.
        temperature: the logits are divided by it before sampling, read with START; 0.001 to 100.
        label: of recorded sessions of a game with `opponent_labels`: what the opponent did when this session's last
            decision was made, as `label` of `simul.common.protocol.messages.Step`; empty: nothing is known.
        outcome: of TERMINATED, where a game has winners: 1 won, 0 tied, -1 lost; not sent.
    """

    env: int
    seat: int
    episode: int
    step: int
    attempt: int = 0
    kind: int = DECISION
    flags: int = 0
    reward: float = 0.0
    observation: NDArray[Any] | None = None
    mask: NDArray[Any] | None = None
    policy: str = LEARNER_POLICY
    temperature: float = 1.0
    label: tuple[int, ...] = ()
    outcome: int | None = None


class Action(msgspec.Struct, gc=False):
    """The answer to a decision. `action` is -1 where an end was acknowledged."""

    env: int
    seat: int
    episode: int
    step: int
    attempt: int
    action: int
    log_prob: float
    value: float
    policy_version: int


class Failure(msgspec.Struct, gc=False):
    """A refused row: the session cannot continue as it is. `code` is one of `simul.common.errors`."""

    env: int
    seat: int
    episode: int
    step: int
    code: str
    message: str
    retry_after_ms: int = 0  # the server's advice, how long to wait before a resend; 0: none


def start_flags(record: bool, greedy: bool) -> int:
    """Flags of a session's first decision."""
    return START | (RECORD if record else 0) | (GREEDY if greedy else 0)
