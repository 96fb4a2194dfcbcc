"""Turns recorded steps into unrolls and hands them to the learner; every step is sent, dropped by cause, or open."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference_server.engine.engine import Outputs, PolicyEngine
from inference_server.learner_link import LearnerLink
from inference_server.sessions import Session
from inference_server.statistics import Statistics
from inference_server.unrolls import Finished, UnrollBuilder


class Recorder:
    """Owns the unroll buffers' life: open, append, close, send."""

    def __init__(self, builder: UnrollBuilder, link: LearnerLink | None, statistics: Statistics) -> None:
        self._builder = builder
        self._link = link
        self._statistics = statistics

    def has_room(self, now: float) -> bool:
        """False while a living learner is full: recorded decisions wait."""
        return self._link is None or self._link.has_room(now)

    def open(self, session: Session) -> None:
        """A recorded session begins."""
        session.recorder = self._builder.open()

    def reward(self, session: Session, reward: float) -> None:
        """What the session's last step earned."""
        if session.recorder >= 0:
            self._builder.reward(session.recorder, reward)

    def append(
        self,
        sessions: list[Session],
        redo: NDArray[np.bool_],
        observation: NDArray[Any],
        mask: NDArray[np.uint8],
        read_rows: NDArray[np.int64],
        outputs: Outputs,
        engine: PolicyEngine,
        version: int,
        now: float,
    ) -> None:
        """Record one batch, arrays [B, ...]; rows of sessions that are not recorded are skipped."""
        kept = np.array([i for i, session in enumerate(sessions) if session.recorder >= 0], np.int64)
        if not len(kept):
            return
        rows = np.array([sessions[i].recorder for i in kept], np.int64)
        redo = redo[kept]
        for i in np.flatnonzero(self._builder.full(rows) & ~redo):
            at = kept[i]
            self._send(self._builder.close_full(int(rows[i]), observation[at], mask[at], outputs.value[at]), now)
        fresh = self._builder.fresh(rows)
        if fresh.any():
            self._builder.begin(rows[fresh], engine.states(read_rows[kept[fresh]]))
        self._builder.append(
            rows, redo, observation[kept], mask[kept],
            outputs.action[kept], outputs.log_prob[kept], outputs.value[kept], version,
        )  # fmt: skip

    def end(self, session: Session, kind: int, final_observation: NDArray[Any] | None, cause: str, now: float) -> None:
        """A session is over: its last unroll goes out, or its open steps are dropped under `cause`."""
        if session.recorder < 0:
            return
        if session.pending and not session.redoing:
            self._statistics.steps_dropped["unanswered"] += 1
        finished = self._builder.end(session.recorder, kind, final_observation, cause)
        session.recorder = -1
        if finished is not None:
            self._send(finished, now)

    def settle(self, now: float) -> None:
        """Count what waited for a learner that died."""
        for message in self._link.drop_backlog(now) if self._link else ():
            self._statistics.unrolls_sent -= 1
            self._statistics.steps_sent -= message.length
            self._drop(message.length)

    def steps(self, pending: int) -> dict[str, Any]:
        """The account: seen = sent + dropped + open. `pending`: recorded rows that wait for a batch."""
        return {
            "seen": self._statistics.steps_seen,
            "sent": self._statistics.steps_sent,
            "dropped": dict(self._statistics.steps_dropped + self._builder.dropped),
            "open": self._builder.steps_open + pending,
        }

    def _send(self, finished: Finished, now: float) -> None:
        if self._link is not None and self._link.offer(finished.message, finished.tensors, now):
            self._statistics.unrolls_sent += 1
            self._statistics.steps_sent += finished.steps
        else:
            self._drop(finished.steps)

    def _drop(self, steps: int) -> None:
        self._statistics.unrolls_dropped["learner_down"] += 1
        self._statistics.steps_dropped["learner_down"] += steps
