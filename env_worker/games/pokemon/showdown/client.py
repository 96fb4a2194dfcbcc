"""poke-env's PSClient, with what it leaves out: what went wrong in a sentence, and the pace that servers ask for."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from poke_env import AccountConfiguration, ServerConfiguration
from poke_env.ps_client import PSClient
from websockets.exceptions import ConnectionClosed

SILENT = logging.CRITICAL + 10  # what poke-env has to say, we say ourselves
OPEN_SEC = 30.0  # a server that has just started on a busy machine takes its time
SILENCE_SEC = 60.0  # an unanswered ping after so long: the server hangs
PACE_SEC = 0.6  # a message of ours in so long: a server holds back faster ones, and drops the seventh
BURST = 4  # so many may go at once after a pause
FIRST_PAUSE_SEC, LONGEST_PAUSE_SEC = 0.5, 8.0  # before a lost connection is made anew; doubled each time
ROOMS_SEC = 2.0  # a server that knows us says right after the login which battles are ours


class ShowdownClient(PSClient):
    """One account's connection. Lives on poke-env's event loop.

    Args:
        on_trouble: is called with one sentence when nothing more can come of this connection.
        on_popup: is called with what the server says in a popup.
        paced: keep to PACE_SEC; for servers that are not our own.
        open_sec: how long the server may take to answer at first.
        patience_sec: a connection that is lost after the login is made anew for so long; 0: it is trouble at once.
        on_return: is awaited when we are logged in again, with the rooms of the battles that the server says are ours,
            to join them: what was said there meanwhile is lost.
    """

    def __init__(
        self,
        account: AccountConfiguration,
        server: ServerConfiguration,
        *,
        on_trouble: Callable[[str], None],
        on_popup: Callable[[str], None],
        paced: bool,
        open_sec: float = OPEN_SEC,
        patience_sec: float = 0.0,
        on_return: Callable[[list[str]], Awaitable[None]] | None = None,
        **more: Any,
    ) -> None:
        self._patience_sec = patience_sec
        self._on_return = on_return
        self._lost_at: float | None = None  # when the last login ended, None before
        self._away = False  # True from then until the next one
        self._rooms: asyncio.Future[list[str]] | None = None  # open from a login after a loss until they are told
        self._settled = asyncio.Event()  # not set from a loss until we are in our rooms again
        self._settled.set()
        self._pause_sec = FIRST_PAUSE_SEC
        self._on_trouble = on_trouble
        self._on_popup = on_popup
        self._paced = paced
        self._allowance = float(BURST)
        self._sent_at = 0.0
        self._leaving = False
        super().__init__(
            account, server_configuration=server, log_level=SILENT, open_timeout=open_sec,
            ping_timeout=SILENCE_SEC, **more,
        )  # fmt: skip

    async def listen(self) -> None:
        """Until the connection ends for good, for whatever reason."""
        await super().listen()
        self._lose()
        while not self._leaving and self._patient():
            await asyncio.sleep(self._pause_sec)
            self._pause_sec = min(2 * self._pause_sec, LONGEST_PAUSE_SEC)
            if not self._leaving:
                await super().listen()
                self._lose()
        if self._leaving:
            return
        if not hasattr(self, "websocket"):
            self._on_trouble(
                f"No Showdown server answers at {self.websocket_url}. Is it running, and is --server its address?"
            )
        else:
            tried = f" For {self._patience_sec:.0f} s it did not let us in again." if self._away else ""
            self._on_trouble(f"The Showdown server at {self.websocket_url} closed the connection.{tried}")

    async def leave(self) -> None:
        """Close the connection; that is no trouble."""
        self._leaving = True
        if hasattr(self, "websocket"):
            await self.websocket.close()

    async def send_message(self, message: str, room: str = "", message_2: str | None = None) -> None:
        """As PSClient's, not faster than the server allows. While the connection is lost, rooms hear nothing."""
        of_room = room or message.startswith("/leave ")
        while True:
            if self._away and not message.startswith("/trn "):
                if of_room:
                    break
                await self.logged_in.wait()
            if self._paced:
                async with self._sending_lock:
                    await self._wait_for_turn()
            try:
                await super().send_message(message, room, message_2)
                break
            except ConnectionClosed:
                if not self._patience_sec or self._leaving or message.startswith("/trn "):
                    raise
                self._lose()
                if not self._away:
                    raise

    async def ready(self) -> None:
        """Until we are logged in, and after a loss have joined our rooms again."""
        await self.logged_in.wait()
        await self._settled.wait()

    async def accept_challenge(self, username: str, packed_team: str | None) -> None:
        """As PSClient's, once we are logged in (again)."""
        await self.logged_in.wait()
        await super().accept_challenge(username, packed_team)

    async def challenge(self, username: str, format_: str, packed_team: str | None) -> None:
        """As PSClient's, once we are logged in (again)."""
        await self.logged_in.wait()
        await super().challenge(username, format_, packed_team)

    async def change_avatar(self, avatar_name: str | None) -> None:
        """As PSClient's; without an avatar it need not wait for the login."""
        if avatar_name is not None:
            await super().change_avatar(avatar_name)

    def _lose(self) -> None:
        """The connection is gone."""
        if self._patience_sec and self.logged_in.is_set():
            self.logged_in.clear()
            self._settled.clear()
            self._away, self._lost_at, self._pause_sec = True, self.loop.time(), FIRST_PAUSE_SEC

    def _patient(self) -> bool:
        """Whether it is to be made anew."""
        return self._lost_at is not None and self.loop.time() + self._pause_sec - self._lost_at < self._patience_sec

    async def _return(self) -> None:
        """We are logged in again."""
        self._away = False
        self._rooms = self.loop.create_future()
        await asyncio.wait((self._rooms,), timeout=ROOMS_SEC)
        if self._on_return is not None:
            await self._on_return(self._rooms.result() if self._rooms.done() else [])
        if not self._away:
            self._settled.set()

    async def _wait_for_turn(self) -> None:
        now = self.loop.time()
        self._allowance = min(BURST, self._allowance + (now - self._sent_at) / PACE_SEC)
        if self._allowance < 1:
            await asyncio.sleep((1 - self._allowance) * PACE_SEC)
            self._allowance = 1
        self._allowance -= 1
        self._sent_at = self.loop.time()

    async def _handle_message(self, message: str) -> None:
        kind, _, rest = message.removeprefix("|").partition("|")
        if self._rooms is not None and not self._rooms.done() and message.startswith("|updatesearch|"):
            self._rooms.set_result(list(json.loads(rest).get("games") or ()))
        if message.startswith("|popup|"):
            self._on_popup(rest.replace("||", " ").strip())
        elif message.startswith("|nametaken|") and self._away:
            await self.websocket.close()  # the server takes our lost connection for alive: later
        elif message.startswith("|nametaken|"):
            name, _, why = rest.partition("|")
            self._on_trouble(f"The server does not let us in as {name!r}: {why} Try another --username.")
        else:
            try:
                for part in _parts(message):
                    await super()._handle_message(part)
                if self._away and self.logged_in.is_set():
                    await self._return()
            except ConnectionClosed:
                return  # there is nobody to answer any more; `listen` tells why
            except Exception as error:
                if not self._leaving:
                    self._on_trouble(f"A message of the server could not be handled ({kind}): {error!r}")
                raise


def _parts(message: str) -> list[str]:
    """One for each challenge that waits: the server tells them together."""
    return [line for line in message.splitlines() if line.startswith("|pm|")] or [message]
