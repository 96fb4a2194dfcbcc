"""Runs work until it is done or the connection fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from poke_env.concurrency import POKE_LOOP
from poke_env.ps_client import PSClient

from simul.env_worker.games.pokemon.play.challenges import PlayEnded

LOGIN_SEC = 30.0  # a server that has just started on a busy machine is slow
OWN_LOGIN_SEC = 120.0  # our own server shares the machine with a run
REGISTERED = (
    "If the name is registered, give its password in SIMUL_SHOWDOWN_PASSWORD; for a slow server raise --patience."
)
OVERLOADED = "The local server asks for no password, so the machine is overloaded: raise --patience."


@dataclass(frozen=True)
class Login:
    """Time limit of the login, hint where it fails, and what to call when it begins and after it."""

    limit_sec: float = LOGIN_SEC
    advice: str = REGISTERED
    done: Callable[[], object] = lambda: None
    begun: Callable[[], object] = lambda: None

    @property
    def open_sec(self) -> float:
        """Time limit of the server's first answer: no answer and a refused login are different errors."""
        return self.limit_sec / 2


USUAL = Login()


def login(
    patience_sec: float, *, own: bool, done: Callable[[], object], begun: Callable[[], object] = lambda: None
) -> Login:
    """The login at a server that we started ourselves (`own`), or at another."""
    return Login(max(patience_sec, OWN_LOGIN_SEC if own else LOGIN_SEC), OVERLOADED if own else REGISTERED, done, begun)


class Guard:
    """One player's. Lives on poke-env's event loop."""

    def __init__(self, login: Login) -> None:
        self._login = login
        self._trouble: asyncio.Future[str] = POKE_LOOP.create_future()

    @property
    def troubled(self) -> bool:
        """True once the connection has failed for good."""
        return self._trouble.done()

    def trouble(self, sentence: str) -> None:
        """End the work with a sentence; only the first call counts."""
        if not self._trouble.done():
            self._trouble.set_result(sentence)

    async def run(self, client: PSClient, work: Coroutine[Any, Any, None]) -> None:
        """Do `work` once `client` is logged in. Raises PlayEnded."""
        task = POKE_LOOP.create_task(self._logged_in(client, work))
        try:
            await asyncio.wait({task, self._trouble}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise PlayEnded(self._trouble.result())
            task.result()
        finally:
            task.cancel()

    async def _logged_in(self, client: PSClient, work: Coroutine[Any, Any, None]) -> None:
        try:
            await asyncio.wait_for(client.logged_in.wait(), self._login.limit_sec)
        except (TimeoutError, asyncio.CancelledError) as error:
            work.close()
            if isinstance(error, asyncio.CancelledError):
                raise
            raise PlayEnded(
                f"The server did not accept the login as {client.username!r} within {self._login.limit_sec:.0f} s. "
                f"{self._login.advice}"
            ) from None
        self._login.done()
        await work
