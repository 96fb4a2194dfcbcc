"""Bridge between two threads: battles ask on poke-env's event loop, the main thread answers.

action = await bridge.ask(decision)        # on the loop
client.submit(bridge.take_decisions())     # on the main thread
bridge.resolve_actions(client.poll().actions)
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from simul.common.errors import SimulError
from simul.common.protocol.decisions import Action, Decision
from simul.env_worker.games.pokemon.showdown.wakeup_queue import WakeupQueue

Key = tuple[int, int, int, int]  # env, seat, episode, step


class SessionLost(SimulError):
    """The inference server has dropped the session. Caught by the asking battle, which starts a new one."""


class AsyncBridge:
    """Passes decisions and ends to the main thread, and actions back."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._inbox: WakeupQueue[Decision] = WakeupQueue()
        self._open: dict[Key, asyncio.Future[int]] = {}  # used on the loop's thread only

    def fileno(self) -> int:
        """Readable when decisions wait."""
        return self._inbox.fileno()

    async def ask(self, decision: Decision) -> int:
        """On the loop: the action that answers `decision`. Raises SessionLost."""
        key = (decision.env, decision.seat, decision.episode, decision.step)
        self._open[key] = self._loop.create_future()
        self.tell(decision)
        try:
            return await self._open[key]
        finally:
            del self._open[key]

    def tell(self, end: Decision) -> None:
        """On the loop: pass on what needs no answer, such as the end of a session."""
        self._inbox.put(end)

    def take_decisions(self) -> list[Decision]:
        """On the main thread: everything since the last call."""
        return self._inbox.drain()

    def resolve_actions(self, actions: Sequence[Action]) -> None:
        """On the main thread: pass actions on; actions without a waiting battle are dropped."""
        if actions:
            self._loop.call_soon_threadsafe(self._resolve, list(actions))

    def fail_sessions(self, sessions: Iterable[tuple[int, int, int]] | None = None) -> None:
        """On the main thread: the server dropped these sessions (env, seat, episode), or all of them."""
        lost = None if sessions is None else set(sessions)
        self._loop.call_soon_threadsafe(self._fail, lost)

    def _resolve(self, actions: Sequence[Action]) -> None:
        for action in actions:
            future = self._open.get((action.env, action.seat, action.episode, action.step))
            if future is not None and not future.done() and action.action >= 0:  # negative: acknowledges an end
                future.set_result(action.action)

    def _fail(self, sessions: set[tuple[int, int, int]] | None) -> None:
        for key, future in self._open.items():
            if (sessions is None or key[:3] in sessions) and not future.done():
                future.set_exception(SessionLost("the inference server forgot the session"))
