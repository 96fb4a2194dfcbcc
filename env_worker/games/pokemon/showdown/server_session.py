"""One Showdown server and our pairs of accounts on it: connected, watched, and connected again."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from poke_env import AccountConfiguration, ServerConfiguration
from poke_env.concurrency import POKE_LOOP
from websockets.exceptions import ConnectionClosed

from simul.common.errors import EnvError
from simul.common.role.run_directory import RunDir
from simul.common.role.temporary import make_folder
from simul.env_worker.games.pokemon.showdown.address import is_local
from simul.env_worker.games.pokemon.showdown.client import ShowdownClient
from simul.env_worker.games.pokemon.showdown.local_server import FOLDER_PREFIX, LocalServer, copy_package
from simul.env_worker.games.pokemon.showdown.wakeup_queue import WakeupQueue

BATTLE, TROUBLE, POPUP = "battle", "trouble", "popup"


class ServerMessage(NamedTuple):
    """A message from the loop's thread: of a battle room, of a failed connection, or a popup."""

    pair: AccountPair
    account: int
    kind: str
    text: str


class AccountClient(ShowdownClient):
    """One account's client; passes the messages of battle rooms on unread."""

    def __init__(
        self, pair: AccountPair, index: int, name: str, server: ServerConfiguration, mail: WakeupQueue[ServerMessage]
    ) -> None:
        self._pair, self._index, self._mail = pair, index, mail
        super().__init__(
            AccountConfiguration(name, None), server, paced=not is_local(server),
            on_trouble=lambda words: mail.put(ServerMessage(pair, index, TROUBLE, words)),
            on_popup=lambda words: mail.put(ServerMessage(pair, index, POPUP, words)),
            on_challenge_request=self._accept,
        )  # fmt: skip

    async def _handle_message(self, message: str) -> None:
        if message.startswith(">battle-"):
            self._mail.put(ServerMessage(self._pair, self._index, BATTLE, message))
        else:
            await super()._handle_message(message)

    async def _accept(self, challenge: list[str]) -> None:
        challenger = challenge[2].strip()
        if self._index == 1 and challenger == self._pair.names[0] and challenge[4].startswith("/challenge "):
            await self.accept_challenge(challenger, self._pair.second_team)


class AccountPair:
    """Two accounts that challenge each other. Used by the main thread; `send` and `challenge` are queued until `flush`.

    Attributes:
        since: when the last challenge was made.
        refusal: the server's answer to it, empty for none.
        live: number of its battles.
    """

    def __init__(self, server: ServerConfiguration, mail: WakeupQueue[ServerMessage]) -> None:
        word = secrets.token_hex(5)  # one of 2^40 names, so a collision is unlikely
        self.names = (f"simul {word} a", f"simul {word} b")
        self.second_team: str | None = None
        self.url = server.websocket_url
        self.since = 0.0
        self.refusal = ""
        self.live = 0
        self._unsent: list[tuple[int, str, str]] = []
        self._clients = [AccountClient(self, index, name, server, mail) for index, name in enumerate(self.names)]

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
        """Disconnect; the server forfeits running battles."""
        for client in self._clients:
            asyncio.run_coroutine_threadsafe(client.leave(), POKE_LOOP)

    async def _send_all(self, messages: list[tuple[int, str, str]]) -> None:
        try:
            for account, message, room in messages:
                await self._clients[account].send_message(message, room)
        except ConnectionClosed:
            return  # `listen` reports why


LOGIN_SEC = 60.0
START_SEC = 90.0
AGAIN_SEC = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)  # delay of the next try, by number of failures
MAX_FAILURES = 5  # of a local server: within FAILURES_WINDOW_SEC, or in a row without being ready
FAILURES_WINDOW_SEC = 60.0
DOWN, STARTING, LOGGING_IN, READY = "down", "starting", "logging in", "ready"


class ServerSession:
    """A server that others run; this process only connects to it.

    Attributes:
        pairs: those that may play, once `state` is READY.
        failures: since the start.
    """

    ours = False

    def __init__(self, name: str, server: ServerConfiguration, mail: WakeupQueue[ServerMessage], pairs: int) -> None:
        self.name = name
        self.pairs: list[AccountPair] = []
        self.state = DOWN
        self.failures = 0
        self._server = server
        self._mail = mail
        self._wanted = pairs
        self._deadline = self._again_at = 0.0
        self._in_a_row = 0

    @property
    def pids(self) -> list[int]:
        """Processes of a local server."""
        return []

    def step(self, now: float) -> str:
        """Advance the connection by one step. Returns the failure, empty for none. Raises EnvError."""
        if self.state == DOWN and now >= self._again_at:
            self._launch()
            self.state, self._deadline = STARTING, now + START_SEC
        if self.state == STARTING and self._launched():
            self.pairs = [AccountPair(self._server, self._mail) for _ in range(self._wanted)]
            self.state, self._deadline = LOGGING_IN, now + LOGIN_SEC
        if self.state == LOGGING_IN and all(pair.ready for pair in self.pairs):
            self.state, self._in_a_row = READY, 0
        if self.state in (STARTING, LOGGING_IN) and now > self._deadline:
            return f"{self.name} was not {self.state} in time"
        return self._dead()

    def fail(self, now: float) -> list[AccountPair]:
        """Disconnect after a failure and schedule the next try. Returns the lost pairs."""
        lost, self.pairs = self.pairs, []
        for pair in lost:
            pair.close()
        self.state = DOWN
        self._again_at = now + AGAIN_SEC[min(self._in_a_row, len(AGAIN_SEC) - 1)]
        self._in_a_row += 1
        self.failures += 1
        return lost

    def close(self) -> None:
        """Disconnect for good."""
        for pair in self.pairs:
            pair.close()
        self.pairs = []

    def _launch(self) -> None:
        """Nothing to start for a server that others run."""

    def _launched(self) -> bool:
        return True

    def _dead(self) -> str:
        return ""


class LocalServerSession(ServerSession):
    """A local server that this process starts."""

    ours = True

    def __init__(self, name: str, node: Path, mail: WakeupQueue[ServerMessage], say: Callable[[str], None]) -> None:
        super().__init__(name, ServerConfiguration("", ""), mail, 1)
        self._node = node
        self._say = say
        self._folder = make_folder(FOLDER_PREFIX)
        self._package = copy_package(self._folder)
        self._process: LocalServer | None = None
        self._failed_at: deque[float] = deque(maxlen=MAX_FAILURES)

    @property
    def pids(self) -> list[int]:
        return [self._process.pid] if self._process is not None else []

    def fail(self, now: float) -> list[AccountPair]:
        """As in ServerSession. Raises EnvError after too many failures."""
        lost = super().fail(now)
        words = self._process.log_tail() if self._process is not None else ""
        self._end()
        self._failed_at.append(now)
        often = len(self._failed_at) == MAX_FAILURES and now - self._failed_at[0] < FAILURES_WINDOW_SEC
        if often or self._in_a_row >= MAX_FAILURES:
            how = f"within {FAILURES_WINDOW_SEC:.0f} s" if often else "without being ready between"
            raise EnvError(
                f"{self.name} failed {MAX_FAILURES} times {how}; run `simul doctor`. End of its log:\n{words}"
            )
        return lost

    def close(self) -> None:
        super().close()
        self._end()
        RunDir(self._folder).remove()

    def _launch(self) -> None:
        self._process = LocalServer(self._node, self._package, self._folder / "log")
        self._server = ServerConfiguration(self._process.url, "")

    def _launched(self) -> bool:
        return self._process is not None and self._process.takes_connections()

    def _dead(self) -> str:
        if self._process is not None and not self._process.alive():
            return f"{self.name} (process {self._process.pid}) died"
        return ""

    def _end(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None
