"""Keeps a source's Showdown servers: starts local ones, connects to others, restores those that fail."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from simul.common.config.games.pokemon import ShowdownAddress
from simul.common.errors import ConfigError
from simul.env_worker.games.pokemon.host.host_messages import HostTick
from simul.env_worker.games.pokemon.showdown.address import server_at
from simul.env_worker.games.pokemon.showdown.server_session import (
    READY,
    TROUBLE,
    LocalServerSession,
    ServerMessage,
    ServerSession,
)
from simul.env_worker.games.pokemon.showdown.showdown_backend import ShowdownBackend
from simul.env_worker.games.pokemon.showdown.wakeup_queue import WakeupQueue

LOOK_SEC = 0.05


class ShowdownKeeper:
    """A BackendKeeper. A server that fails costs its own battles only.

    Args:
        servers: those to use; none: `local_servers` local ones are started.
        say: called with sentences for the view.
    """

    def __init__(
        self,
        node: Path,
        servers: Sequence[ShowdownAddress],
        local_servers: int,
        *,
        stall_sec: float,
        say: Callable[[str], None],
    ) -> None:
        self._mail: WakeupQueue[ServerMessage] = WakeupQueue()
        self._say = say
        self.backend = ShowdownBackend(node, self._mail, say, stall_sec=stall_sec)
        others = [(one, f"{one.host}:{one.port}") for one in servers]
        self._sessions: list[ServerSession] = [
            ServerSession(f"the Showdown server at {where}", server_at(where), self._mail, one.max_connections // 2)
            for one, where in others
        ] or [LocalServerSession(f"Showdown server {index}", node, self._mail, say) for index in range(local_servers)]

    @property
    def restarts(self) -> int:
        """Number of server failures; each is followed by a restart or reconnect."""
        return sum(session.failures for session in self._sessions)

    @property
    def pids(self) -> list[int]:
        """Processes of local servers."""
        return [pid for session in self._sessions for pid in session.pids]

    def files(self) -> list[int]:
        """What is readable when a server has said something."""
        return [self._mail.fileno()]

    def start(self) -> ShowdownBackend:
        """Connect to all. Raises ConfigError where one does not answer, EnvError where a local one keeps failing."""
        while not all(session.state == READY for session in self._sessions):
            now = time.monotonic()
            words = {message.pair: message.text for message in self._mail.drain() if message.kind == TROUBLE}
            for session in self._sessions:
                failure = session.step(now) or next((words[pair] for pair in session.pairs if pair in words), "")
                if failure and not session.ours:
                    self.close()
                    raise ConfigError(f"{failure} Check pokemon.servers, or leave it empty to start local servers.")
                if failure:
                    self._say(failure)
                    session.fail(now)
            time.sleep(LOOK_SEC)
        self._count_pairs()
        return self.backend

    def poll(self) -> HostTick:
        """What the servers have said. Raises EnvError where a local server keeps failing."""
        tick = self.backend.take_tick()
        troubles: dict[object, str] = {}
        for message in self._mail.drain():
            if message.kind == TROUBLE:
                troubles.setdefault(message.pair, message.text)
            else:
                self.backend.handle_message(message, tick)
        for session in self._sessions:
            self._look_after(session, troubles, tick)
        self._count_pairs()
        self.backend.give_up_stalled(tick)
        self.backend.flush()
        return tick

    def revive(self) -> ShowdownBackend:
        """Servers come back one by one in `poll`."""
        return self.backend

    def close(self) -> None:
        """Disconnect, and stop local servers."""
        for session in self._sessions:
            session.close()

    def _look_after(self, session: ServerSession, troubles: dict[object, str], tick: HostTick) -> None:
        now, before = time.monotonic(), session.state
        failure = session.step(now) or next((troubles[pair] for pair in session.pairs if pair in troubles), "")
        if failure:
            battles = self.backend.lose(session.pairs, tick)
            self._say(f"{failure.rstrip('. ')}; its {battles} battles are aborted, and it is tried again")
            session.fail(now)
        elif session.state == READY != before:
            self._say(f"{session.name} is back")

    def _count_pairs(self) -> None:
        self.backend.pairs = [pair for session in self._sessions if session.state == READY for pair in session.pairs]
