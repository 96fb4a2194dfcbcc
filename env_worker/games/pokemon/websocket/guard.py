"""Work that ends when it is done, or with the first trouble."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from poke_env.concurrency import POKE_LOOP
from poke_env.ps_client import PSClient

from env_worker.games.pokemon.websocket.lobby import PlayEnded

LOGIN_SEC = 30.0


class Guard:
    """One player's. Lives on poke-env's event loop. `on_login` is called once others can see us."""

    def __init__(self, on_login: Callable[[], object]) -> None:
        self._on_login = on_login
        self._trouble: asyncio.Future[str] = POKE_LOOP.create_future()

    @property
    def troubled(self) -> bool:
        """True once nothing more can come of the connection."""
        return self._trouble.done()

    def trouble(self, sentence: str) -> None:
        """End the work. The first sentence counts."""
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
            await asyncio.wait_for(client.logged_in.wait(), LOGIN_SEC)
        except (TimeoutError, asyncio.CancelledError) as error:
            work.close()
            if isinstance(error, asyncio.CancelledError):
                raise
            raise PlayEnded(
                f"The server did not let us in as {client.username!r} within {LOGIN_SEC:.0f} s. "
                "If the name is registered, give its password in SIMUL_SHOWDOWN_PASSWORD."
            ) from None
        self._on_login()
        await work
