"""Ends sessions, whoever asks for it: the client, the reaper, a newer life, a forward that failed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simul.inference_server.frontend.clients import Client
from simul.inference_server.frontend.faults import contain
from simul.inference_server.ops.statistics import Statistics
from simul.inference_server.sessions.table import Session, SessionTable
from simul.inference_server.unrolls.recorder import Recorder

_TOLD = {  # what a client is told that goes on with a session which it did not end
    "idle": "no step of it came for longer than the server's idle_timeout_sec",
    "forward_failed": "the forward of its last step failed",
    "server_fault": "the server failed on a message with a row of it",
}


class Endings:
    """The only place that ends sessions: the slot, what is recorded, and the books go together."""

    def __init__(self, sessions: SessionTable, recorder: Recorder, statistics: Statistics) -> None:
        self._sessions = sessions
        self._recorder = recorder
        self._statistics = statistics

    def end(self, session: Session, kind: int, final: NDArray[Any] | None, cause: str, now: float) -> None:
        """End a session, whoever asks for it; the slot is freed once."""
        if session.alive:
            if cause in _TOLD:
                key = session.env, session.seat, session.episode
                self._sessions.client_of(session).remember(key, _TOLD[cause])
            row = int(self._sessions.unroll_row[session.slot])
            try:
                if row >= 0:
                    self._recorder.end(row, session, kind, final, cause, now)
            except Exception as error:  # noqa: BLE001 the slot is freed all the same
                contain(error, self._statistics)
            self._sessions.end(session)
            self._statistics.sessions_ended[cause] += 1

    def end_all_of(self, client: Client, cause: str) -> None:
        """End every session of a client that is gone: nothing is learned from what is open."""
        table, slots = self._sessions, np.array(client.seats.slots, np.int64)
        recorded = slots[table.unroll_row[slots] >= 0]
        self._recorder.abort(table.unroll_row[recorded], table.unanswered(recorded), cause)
        table.end_all_of(client)
        if len(slots):
            self._statistics.sessions_ended[cause] += len(slots)
