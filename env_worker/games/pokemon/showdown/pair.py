"""Two accounts on one Showdown server that challenge each other. The clients live on poke-env's event loop."""

from __future__ import annotations

import asyncio
import secrets
from typing import NamedTuple

from poke_env import AccountConfiguration, ServerConfiguration
from poke_env.concurrency import POKE_LOOP
from websockets.exceptions import ConnectionClosed

from simul.env_worker.games.pokemon.showdown.address import is_local
from simul.env_worker.games.pokemon.showdown.client import ShowdownClient
from simul.env_worker.games.pokemon.showdown.wakeup_queue import Mailbox

BATTLE, TROUBLE, POPUP = "battle", "trouble", "popup"


class Letter(NamedTuple):
    """What the loop's thread has to say: a room's message, why a connection ended, or a popup."""

    pair: Pair
    account: int
    kind: str
    text: str


class SeatClient(ShowdownClient):
    """Hands the messages of battle rooms on as they are."""

    def __init__(self, pair: Pair, index: int, name: str, server: ServerConfiguration, mail: Mailbox[Letter]) -> None:
        self._pair, self._index, self._mail = pair, index, mail
        super().__init__(
            AccountConfiguration(name, None), server, paced=not is_local(server),
            on_trouble=lambda words: mail.put(Letter(pair, index, TROUBLE, words)),
            on_popup=lambda words: mail.put(Letter(pair, index, POPUP, words)),
            on_challenge_request=self._accept,
        )  # fmt: skip

    async def _handle_message(self, message: str) -> None:
        if message.startswith(">battle-"):
            self._mail.put(Letter(self._pair, self._index, BATTLE, message))
        else:
            await super()._handle_message(message)

    async def _accept(self, challenge: list[str]) -> None:
        challenger = challenge[2].strip()
        if self._index == 1 and challenger == self._pair.names[0] and challenge[4].startswith("/challenge "):
            await self.accept_challenge(challenger, self._pair.second_team)


class Pair:
    """Used by the main thread; `send` and `challenge` are queued until `flush`.

    Attributes:
        since: when the last challenge was made.
        refusal: what the server said to it, empty if nothing.
        live: battles in its rooms.
    """

    def __init__(self, server: ServerConfiguration, mail: Mailbox[Letter]) -> None:
        word = secrets.token_hex(5)  # 2 x 10^12 names: nobody else has taken them
        self.names = (f"simul {word} a", f"simul {word} b")
        self.second_team: str | None = None
        self.url = server.websocket_url
        self.since = 0.0
        self.refusal = ""
        self.live = 0
        self._unsent: list[tuple[int, str, str]] = []
        self._clients = [SeatClient(self, index, name, server, mail) for index, name in enumerate(self.names)]

    @property
    def ready(self) -> bool:
        """True once both accounts are logged in."""
        return all(client.logged_in.is_set() for client in self._clients)

    def challenge(self, battle_format: str, teams: tuple[str | None, str | None], now: float) -> None:
        """Begin a battle between the two; its first message comes from a room of a new name."""
        self.since, self.refusal = now, ""
        self.second_team = teams[1]
        self.send(0, f"/utm {teams[0] or 'null'}")
        self.send(0, f"/challenge {self.names[1]}, {battle_format}")

    def withdraw(self) -> None:
        """Take back the challenge that is under way."""
        self.send(0, f"/cancelchallenge {self.names[1]}")

    def send(self, account: int, message: str, room: str = "") -> None:
        """Queue a message of one account."""
        self._unsent.append((account, message, room))

    def flush(self) -> None:
        """Send what is queued."""
        if self._unsent:
            asyncio.run_coroutine_threadsafe(self._send_all(self._unsent), POKE_LOOP)
            self._unsent = []

    def close(self) -> None:
        """Hang up; the server forfeits what is still running."""
        for client in self._clients:
            asyncio.run_coroutine_threadsafe(client.leave(), POKE_LOOP)

    async def _send_all(self, messages: list[tuple[int, str, str]]) -> None:
        try:
            for account, message, room in messages:
                await self._clients[account].send_message(message, room)
        except ConnectionClosed:
            return  # `listen` tells why
