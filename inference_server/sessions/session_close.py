"""Closes sessions: at an END, by the reaper, for a newer run of the client, after a failed forward."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from simul.inference_server.base.faults import record_fault
from simul.inference_server.base.statistics import Statistics
from simul.inference_server.sessions.clients import Client
from simul.inference_server.sessions.table import Session, SessionTable

_CAUSE_TEXTS = {  # error text for a client that continues a session which the server closed
    "idle": "no step of it came for longer than the server's idle_timeout_sec",
    "forward_failed": "the forward of its last step failed",
    "server_fault": "the server failed on a message with a row of it",
}


class StepRecorder(Protocol):
    """What sessions tell the recorder, `simul.inference_server.unrolls.recorder.Recorder`."""

    def open_recording(self) -> int:
        """The number of a new recorded session's recording."""

    def add_rewards(
        self, recordings: NDArray[np.int64], reward: NDArray[np.float32], label: NDArray[np.int16] | None = None
    ) -> None:
        """Rewards float32 [M] and labels int16 [M, K] of recordings int64 [M]; -1 stands for no recording."""

    def close_recording(
        self,
        recording: int,
        session: Session,
        kind: int,
        final_observation: NDArray[Any] | None,
        cause: str,
        now: float,
    ) -> None:
        """A recorded session is over; `kind`: TERMINATED, TRUNCATED or ABORTED."""

    def drop_recordings(self, recordings: NDArray[np.int64], unanswered: int, cause: str) -> None:
        """Recorded sessions are over, of which so many wait for an answer: their open steps are dropped."""


class SessionCloser:
    """The only place that closes sessions: slot, recorded steps and counters change together."""

    def __init__(self, sessions: SessionTable, recorder: StepRecorder, statistics: Statistics) -> None:
        self._sessions = sessions
        self._recorder = recorder
        self._statistics = statistics

    def close_session(self, session: Session, kind: int, final: NDArray[Any] | None, cause: str, now: float) -> None:
        """Close a session and free its slot; does nothing if it is closed already."""
        if session.alive:
            if cause in _CAUSE_TEXTS:
                key = session.env, session.seat, session.episode
                self._sessions.client_of(session).remember_closed(key, _CAUSE_TEXTS[cause])
            recording = int(self._sessions.recording[session.slot])
            try:
                if recording >= 0:
                    self._recorder.close_recording(recording, session, kind, final, cause, now)
            except Exception as error:  # noqa: BLE001 the slot is freed all the same
                record_fault(error, self._statistics)
            self._sessions.free_slot(session)
            self._statistics.sessions_ended[cause] += 1

    def close_sessions_of(self, client: Client, cause: str) -> None:
        """Close every session of a client that is gone; open steps are dropped."""
        table, slots = self._sessions, np.array(client.seats.slots, np.int64)
        recorded = slots[table.recording[slots] >= 0]
        self._recorder.drop_recordings(table.recording[recorded], table.unanswered(recorded), cause)
        table.free_slots_of(client)
        if len(slots):
            self._statistics.sessions_ended[cause] += len(slots)
