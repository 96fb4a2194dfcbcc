"""One Showdown server and our accounts on it: brought up, watched, and brought up again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path

from poke_env import ServerConfiguration

from simul.common.config.run_directory import RunDir
from simul.common.launch.processes.temporary import make_folder
from simul.common.protocol.errors import EnvError
from simul.env_worker.games.pokemon.showdown.local_server import FOLDER_PREFIX, LocalServer, copy_package
from simul.env_worker.games.pokemon.showdown.pair import Letter, Pair
from simul.env_worker.games.pokemon.showdown.wakeup_queue import Mailbox

LOGIN_SEC = 60.0
START_SEC = 90.0
AGAIN_SEC = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)  # before the next try, after so many failures
MAX_FAILURES = 5  # of a server of our own
FAILURES_WINDOW_SEC = 60.0
DOWN, STARTING, LOGGING_IN, READY = "down", "starting", "logging in", "ready"


class Site:
    """Someone else's server, which is only connected to.

    Attributes:
        pairs: those that may play, once `state` is READY.
        failures: since the start.
    """

    ours = False

    def __init__(self, name: str, server: ServerConfiguration, mail: Mailbox[Letter], pairs: int) -> None:
        self.name = name
        self.pairs: list[Pair] = []
        self.state = DOWN
        self.failures = 0
        self._server = server
        self._mail = mail
        self._wanted = pairs
        self._deadline = self._again_at = 0.0
        self._in_a_row = 0

    @property
    def pids(self) -> list[int]:
        """Processes that are ours."""
        return []

    def step(self, now: float) -> str:
        """Go on with whatever is under way. Returns what failed, empty where nothing did. Raises EnvError."""
        if self.state == DOWN and now >= self._again_at:
            self._launch()
            self.state, self._deadline = STARTING, now + START_SEC
        if self.state == STARTING and self._launched():
            self.pairs = [Pair(self._server, self._mail) for _ in range(self._wanted)]
            self.state, self._deadline = LOGGING_IN, now + LOGIN_SEC
        if self.state == LOGGING_IN and all(pair.ready for pair in self.pairs):
            self.state, self._in_a_row = READY, 0
        if self.state in (STARTING, LOGGING_IN) and now > self._deadline:
            return f"{self.name} was not {self.state} in time"
        return self._dead()

    def fail(self, now: float) -> list[Pair]:
        """It does not serve us any more: let go of it; the next try comes later. Returns the pairs that are lost."""
        lost, self.pairs = self.pairs, []
        for pair in lost:
            pair.close()
        self.state = DOWN
        self._again_at = now + AGAIN_SEC[min(self._in_a_row, len(AGAIN_SEC) - 1)]
        self._in_a_row += 1
        self.failures += 1
        return lost

    def close(self) -> None:
        """Hang up for good."""
        for pair in self.pairs:
            pair.close()
        self.pairs = []

    def _launch(self) -> None:
        """Nothing to do for a server that is not ours."""

    def _launched(self) -> bool:
        return True

    def _dead(self) -> str:
        return ""


class OwnSite(Site):
    """A local server of our own, on this machine only."""

    ours = True

    def __init__(self, name: str, node: Path, mail: Mailbox[Letter], say: Callable[[str], None]) -> None:
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

    def fail(self, now: float) -> list[Pair]:
        """As a Site's. Raises EnvError after too many failures."""
        lost = super().fail(now)
        words = self._process.last_words() if self._process is not None else ""
        self._end()
        self._failed_at.append(now)
        if len(self._failed_at) == MAX_FAILURES and now - self._failed_at[0] < FAILURES_WINDOW_SEC:
            raise EnvError(
                f"{self.name} failed {MAX_FAILURES} times within {FAILURES_WINDOW_SEC:.0f} s; run `simul doctor`. "
                f"Its last words:\n{words}"
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
