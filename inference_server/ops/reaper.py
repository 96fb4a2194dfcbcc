"""Once a second: sessions that idle, clients that are gone, policies nobody plays any longer, files that vanished."""

from __future__ import annotations

from simul.common.protocol.messages import ABORTED
from simul.common.transport import EndpointMonitor
from simul.inference_server.frontend.clients import Client, ClientTable
from simul.inference_server.policies.table import PolicyTable
from simul.inference_server.sessions.session_close import Endings
from simul.inference_server.sessions.table import SessionTable
from simul.inference_server.unrolls.recorder import Recorder

EVERY_SEC = 1.0
MOST_IDLE = 128  # sessions ended in one turn, half a millisecond's work; the others in the next ones


class Housekeeping:
    """Ends what its client does not end itself."""

    def __init__(
        self,
        clients: ClientTable,
        sessions: SessionTable,
        endings: Endings,
        recorder: Recorder,
        policies: PolicyTable,
        endpoints: EndpointMonitor,
        *,
        idle_timeout_sec: float,
        client_timeout_sec: float,
    ) -> None:
        self._clients = clients
        self._sessions = sessions
        self._endings = endings
        self._recorder = recorder
        self._policies = policies
        self._endpoints = endpoints
        self._idle_timeout_sec = idle_timeout_sec
        self._client_timeout_sec = client_timeout_sec
        self._next = 0.0

    def turn(self, now: float) -> str:
        """Where it is time. Returns a sentence where people should know of something."""
        if now < self._next:
            return ""
        idle = self._sessions.idle(now - self._idle_timeout_sec)
        self._next = now + EVERY_SEC if len(idle) <= MOST_IDLE else now
        for session in idle[:MOST_IDLE]:
            self._endings.end(session, ABORTED, None, "idle", now)
        for client in self._clients.silent(now - self._client_timeout_sec):
            self._clients.forget(client)
            self.end_sessions(client, "client_lost")
        self._recorder.settle(now)
        self._policies.remove_retired(self._sessions.bound_to, now)
        return " ".join(self._endpoints.restore_missing(now))

    def end_sessions(self, client: Client, cause: str) -> None:
        """Every session of a client that is gone."""
        self._endings.end_all_of(client, cause)

    def end_all(self, cause: str) -> None:
        """Every session there is."""
        for client in self._clients:
            self.end_sessions(client, cause)
