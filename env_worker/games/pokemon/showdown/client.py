"""poke-env's PSClient with errors as sentences, the servers' rate limits, and reconnecting."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any

from poke_env import AccountConfiguration, ServerConfiguration
from poke_env.ps_client import PSClient
from websockets.exceptions import ConnectionClosed

SILENT = logging.CRITICAL + 10  # our messages replace poke-env's
OPEN_SEC = 30.0  # a server that has just started on a busy machine is slow
SILENCE_SEC = 60.0  # time limit of a ping
PACE_SEC = 0.6  # between messages: servers delay faster ones, and drop the seventh
BURST = 4  # messages that may go at once after a pause
FIRST_PAUSE_SEC, LONGEST_PAUSE_SEC = 0.5, 8.0  # before a reconnect; doubled each time
ROOMS_SEC = 2.0  # servers list our battles right after the login


class ShowdownClient(PSClient):
    """One account's connection. Lives on poke-env's event loop.

    Args:
        on_trouble: called with one sentence when the connection has failed for good.
        on_popup: called with the text of a server popup.
        on_answer: called once, when the server has answered and the login begins.
        paced: True = keep to PACE_SEC; for public servers.
        open_sec: time limit of the first answer.
        patience_sec: how long a connection lost after the login is retried; 0: it fails at once.
        on_return: awaited after a reconnect with the rooms of our battles, to join them again: their messages during
            the loss are missing.
    """

    def __init__(
        self,
        account: AccountConfiguration,
        server: ServerConfiguration,
        *,
        on_trouble: Callable[[str], None],
        on_popup: Callable[[str], None],
        on_answer: Callable[[], object] = lambda: None,
        paced: bool,
        open_sec: float = OPEN_SEC,
        patience_sec: float = 0.0,
        on_return: Callable[[list[str]], Awaitable[None]] | None = None,
        **more: Any,
    ) -> None:
        self._patience_sec = patience_sec
        self._on_return = on_return
        self._lost_at: float | None = None  # end of the last login, None before the first
        self._away = False  # True from there until the next login
        self._rooms: asyncio.Future[list[str]] | None = (
            None  # pending from a login after a loss until the server lists them
        )
        self._settled = asyncio.Event()  # cleared from a loss until our rooms are joined again
        self._settled.set()
        self._pause_sec = FIRST_PAUSE_SEC
        self._on_trouble = on_trouble
        self._on_popup = on_popup
        self._on_answer: Callable[[], object] | None = on_answer
        self._paced = paced
        self._allowance = float(BURST)
        self._sent_at = 0.0
        self._leaving = False
        super().__init__(
            account, server_configuration=server, log_level=SILENT, open_timeout=open_sec,
            ping_timeout=SILENCE_SEC, **more,
        )  # fmt: skip

    async def listen(self) -> None:
        """Run until the connection ends for good."""
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
            tried = f" For {self._patience_sec:.0f} s it accepted no new login." if self._away else ""
            self._on_trouble(f"The Showdown server at {self.websocket_url} closed the connection.{tried}")

    async def leave(self) -> None:
        """Close the connection without reporting an error."""
        self._leaving = True
        if hasattr(self, "websocket"):
            await self.websocket.close()

    async def send_message(self, message: str, room: str = "", message_2: str | None = None) -> None:
        """As PSClient's, within the rate limit. Messages to rooms are dropped while the connection is lost."""
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
        """Wait for the login, and after a loss until our rooms are joined again."""
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
        """Note that the connection is lost."""
        if self._patience_sec and self.logged_in.is_set():
            self.logged_in.clear()
            self._settled.clear()
            self._away, self._lost_at, self._pause_sec = True, self.loop.time(), FIRST_PAUSE_SEC

    def _patient(self) -> bool:
        """Whether to reconnect."""
        return self._lost_at is not None and self.loop.time() + self._pause_sec - self._lost_at < self._patience_sec

    async def _return(self) -> None:
        """Rejoin rooms after a reconnect."""
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
        if message.startswith("|challstr|") and self._on_answer is not None:
            self._on_answer()
            self._on_answer = None
        if message.startswith("|updateuser|"):
            name, _, more = rest.partition("|")
            if more.startswith("1|") and user_id(name) == user_id(self.username):  # PSClient knows no name with a rank
                self.logged_in.set()
        if message.startswith("|popup|"):
            self._on_popup(rest.replace("||", " ").strip())
        elif message.startswith("|nametaken|") and self._away:
            await self.websocket.close()  # the server still counts our lost connection: try later
        elif message.startswith("|nametaken|"):
            name, _, why = rest.partition("|")
            self._on_trouble(f"The server refuses the login as {name!r}: {why} Try another --username.")
        else:
            try:
                if message.startswith((">battle", ">game")):
                    await self._handle_room(message)
                else:
                    for part in _parts(message):
                        await super()._handle_message(part)
                if self._away and self.logged_in.is_set():
                    await self._return()
            except ConnectionClosed:
                return  # the connection is gone; `listen` reports why
            except Exception as error:
                if not self._leaving:
                    self._on_trouble(f"A message of the server could not be handled ({kind}): {error!r}")
                raise

    async def _handle_room(self, message: str) -> None:
        """Handle a room's messages one at a time; PSClient forgets a room whose chat says |deinit."""
        lines = [line.split("|") for line in message.split("\n")]
        tag = lines[0][0][1:]
        async with self._battle_locks.setdefault(tag, asyncio.Lock()):
            await self._handle_battle_message(lines)
        if ["", "deinit"] in (line[:2] for line in lines):
            self._battle_locks.pop(tag, None)


def user_id(name: str) -> str:
    """Showdown's id of a user; `name` may begin with the symbol of a rank."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _parts(message: str) -> list[str]:
    """Split a message with several challenges, which the server sends together."""
    return [line for line in message.splitlines() if line.startswith("|pm|")] or [message]
