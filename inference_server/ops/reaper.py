"""Once a second: idle sessions, lost clients, retired policies without sessions, socket files that vanished."""

from __future__ import annotations

import math

from simul.common.protocol.messages import ABORTED
from simul.common.transport import EndpointMonitor
from simul.inference_server.policies.table import PolicyTable
from simul.inference_server.sessions.clients import ClientTable
from simul.inference_server.sessions.session_close import SessionCloser
from simul.inference_server.sessions.table import SessionTable
from simul.inference_server.unrolls.recorder import Recorder

EVERY_SEC = 1.0
STALL_SEC = 2.0  # from one run to the next: the loop stood still
MOST_IDLE = 128  # sessions ended in one turn, half a millisecond's work; the others in the next ones


class Reaper:
    """Closes what its client does not close itself."""

    def __init__(
        self,
        clients: ClientTable,
        sessions: SessionTable,
        session_closer: SessionCloser,
        recorder: Recorder,
        policies: PolicyTable,
        endpoints: EndpointMonitor,
        *,
        idle_timeout_sec: float,
        client_timeout_sec: float,
    ) -> None:
        self._clients = clients
        self._sessions = sessions
        self._session_closer = session_closer
        self._recorder = recorder
        self._policies = policies
        self._endpoints = endpoints
        self._idle_timeout_sec = idle_timeout_sec
        self._client_timeout_sec = client_timeout_sec
        self._next = 0.0
        self._looked_at = math.inf  # when it ran last; inf: never, or it has just waited after a stall

    def reap(self, now: float) -> str:
        """Run if due. Returns a sentence for the report, empty if there is none."""
        if now < self._next:
            return ""
        if now - self._looked_at > STALL_SEC:  # what clients sent meanwhile is read before they are judged by it
            self._looked_at, self._next = math.inf, now + EVERY_SEC
            return ""
        self._looked_at = now
        idle = self._sessions.idle(now - self._idle_timeout_sec)
        self._next = now + EVERY_SEC if len(idle) <= MOST_IDLE else now
        for session in idle[:MOST_IDLE]:
            self._session_closer.close_session(session, ABORTED, None, "idle", now)
        for client in self._clients.silent(now - self._client_timeout_sec):
            self._clients.forget(client)
            self._session_closer.close_sessions_of(client, "client_lost")
        self._recorder.drop_unsendable(now)
        self._policies.remove_retired(self._sessions.bound_to, now)
        return " ".join(self._endpoints.restore_missing(now))

    def close_all_sessions(self, cause: str) -> None:
        """Close every session of the server."""
        for client in self._clients:
            self._session_closer.close_sessions_of(client, cause)
