"""Turns recorded steps into unrolls and hands them to the learner; every step is sent, dropped by cause, or open."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simul.common.protocol.messages import SampleBatch
from simul.inference_server.base.statistics import Statistics
from simul.inference_server.engine.engine import Outputs, PolicyEngine
from simul.inference_server.sessions.table import Session
from simul.inference_server.unrolls.buffer import FinishedUnroll, UnrollBuffer
from simul.inference_server.unrolls.learner_link import NO_TENSORS, LearnerLink


class Recorder:
    """Opens recordings, appends steps, and sends complete unrolls to the learner."""

    def __init__(self, buffer: UnrollBuffer, link: LearnerLink | None, statistics: Statistics) -> None:
        self._buffer = buffer
        self._link = link
        self._statistics = statistics

    def has_room(self, now: float) -> bool:
        """False while a living learner is full: recorded decisions wait."""
        return self._link is None or self._link.has_room(now)

    def open_recording(self) -> int:
        """A recorded session begins: the number of its recording."""
        return self._buffer.open()

    def add_rewards(
        self, recordings: NDArray[np.int64], reward: NDArray[np.float32], label: NDArray[np.int16] | None = None
    ) -> None:
        """Add to the reward of each recording's last step, arrays [B]; -1 stands for no recording.

        `label`: see `UnrollBuffer.add_rewards`.
        """
        self._buffer.add_rewards(recordings, reward, label)

    def append_steps(
        self,
        recordings: NDArray[np.int64],
        redo: NDArray[np.bool_],
        observation: NDArray[Any],
        mask: NDArray[np.uint8],
        read_rows: NDArray[np.int64],
        outputs: Outputs,
        engine: PolicyEngine,
        version: int,
        now: float,
    ) -> None:
        """Record steps, arrays [B, ...]."""
        full = np.flatnonzero(self._buffer.full(recordings) & ~redo)
        if len(full):
            unrolls = self._buffer.close_full(recordings[full], observation[full], mask[full], outputs.value[full])
            for finished in unrolls:
                self._send(finished, now)
        fresh = self._buffer.fresh(recordings)
        if np.count_nonzero(fresh):
            self._buffer.begin(recordings[fresh], engine.states(read_rows[fresh]))
        self._buffer.append(
            recordings, redo, observation, mask, outputs.action, outputs.log_prob, outputs.value, version
        )  # fmt: skip
        self.flush()

    def flush(self) -> None:
        """Send the lent unrolls that wait to go in one message."""
        if self._link is not None:
            self._link.flush()

    def close_recording(
        self,
        recording: int,
        session: Session,
        kind: int,
        final_observation: NDArray[Any] | None,
        cause: str,
        now: float,
    ) -> None:
        """A recorded session is over: its last unroll goes out, or its open steps are dropped under `cause`."""
        if session.pending and not session.redoing:
            self._statistics.steps_dropped["unanswered"] += 1
        finished = self._buffer.end(recording, kind, final_observation, cause)
        if finished is not None:
            self._send(finished, now)

    def drop_recordings(self, recordings: NDArray[np.int64], unanswered: int, cause: str) -> None:
        """Recorded sessions are over, of which so many wait for an answer: their open steps are dropped."""
        if unanswered:
            self._statistics.steps_dropped["unanswered"] += unanswered
        self._buffer.abort(recordings, cause)

    def balance_account(self, pending: int) -> None:
        """Count as dropped the recorded steps that a fault of the server left unaccounted; `pending` as for `steps`."""
        book = self.steps(pending)
        lost = book["seen"] - book["sent"] - sum(book["dropped"].values()) - book["open"]
        self._statistics.steps_dropped["server_fault"] += lost

    def drop_unsendable(self, now: float, cause: str = "learner_down") -> None:
        """Count what waited for a learner that died, samples too. With `now` = inf, what waits for any learner."""
        for message in self._link.drop_backlog(now) if self._link else ():
            if isinstance(message, SampleBatch):
                self._statistics.samples_sent -= message.length
                self._statistics.samples_dropped[cause] += message.length
                continue
            self._statistics.unrolls_sent -= 1
            self._statistics.steps_sent -= message.length
            self._drop(message.length, cause)

    def unrolls(self) -> dict[str, Any]:
        """Counts of complete unrolls by outcome; docs/metrics.md explains each."""
        link = self._link
        waiting = link.backlog()[0] if link is not None else 0
        return {
            "completed": self._statistics.unrolls_completed,
            "sent": self._statistics.unrolls_sent - waiting,
            "waiting": waiting,
            "in_memory": link.in_memory if link is not None else 0,
            "taken_back": link.taken_back if link is not None else 0,
            "dropped": dict(self._statistics.unrolls_dropped),
        }

    def steps(self, pending: int) -> dict[str, Any]:
        """The account: seen = sent + dropped + open. `pending`: recorded rows that wait for a batch."""
        waiting = self._link.backlog()[1] if self._link is not None else 0
        return {
            "seen": self._statistics.steps_seen,
            "sent": self._statistics.steps_sent - waiting,
            "dropped": dict(self._statistics.steps_dropped + self._buffer.dropped),
            "open": self._buffer.steps_open + pending + waiting,
        }

    def _send(self, finished: FinishedUnroll, now: float) -> None:
        self._statistics.unrolls_completed += 1
        try:
            if self._link is not None and self._link.reads_memory(now):
                finished = self._buffer.lend(finished)
            tensors = finished.tensors if finished.message.place < 0 else NO_TENSORS
            taken = self._link is not None and self._link.offer(finished.message, tensors, now)
        except Exception:
            self._drop(finished.steps, "server_fault")
            raise
        if taken:
            self._statistics.unrolls_sent += 1
            self._statistics.steps_sent += finished.steps
        else:
            self._drop(finished.steps)

    def _drop(self, steps: int, cause: str = "learner_down") -> None:
        self._statistics.unrolls_dropped[cause] += 1
        self._statistics.steps_dropped[cause] += steps
