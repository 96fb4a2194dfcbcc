"""An inference server with frozen weights and no learner, for as long as something wants to ask it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from common.codec import Codec
from common.config import Config
from common.launch.fleet import Command, Fleet, RoleDied
from common.launch.game_spec import ask_for_spec
from common.launch.processes import role_command
from common.launch.state import RunState
from common.launch.temporary import temporary_folder
from common.messages import TO_SUPERVISOR, Report
from common.rundir import RunDir
from common.transport import Poller, PullSocket

ROLE = "inference_server"
READY_LIMIT_SEC = 300.0
STOP_SEC = 15.0
TURN_SEC = 0.1


class FrozenServer:
    """Serves `checkpoint` in a run directory that holds config.yaml and spec.json: `with FrozenServer(...) as server:`.

    Whoever stays inside for long calls `take_reports`: the server sends two a second.
    """

    def __init__(
        self, run_dir: RunDir, checkpoint: Path, threads: int, command: Command = role_command,
        *, stopped: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        self.state = RunState()
        self.fleet = Fleet(run_dir, self.state, command)
        self._run_dir = run_dir
        self._checkpoint = checkpoint
        self._threads = threads
        self._stopped = stopped
        self._codec: Codec[Report] = Codec(TO_SUPERVISOR)

    def __enter__(self) -> Self:
        """Start it and wait until it is ready. Raises RoleDied: it ended, or `stopped()` became true."""
        with ExitStack() as opened:
            self._socket = opened.enter_context(PullSocket(self._run_dir.endpoint("status")))
            self._poller = Poller([self._socket])
            opened.callback(self.fleet.kill_all)
            self.start()
            self._wait_until_ready()
            self._opened = opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._opened:
            if error is None:
                self.stop(lambda: False)

    def start(self) -> None:
        """Start the process."""
        extra = ["--checkpoint", str(self._checkpoint)]
        self.fleet.start(ROLE, 1, self._threads, [extra])

    def take_reports(self, timeout_sec: float = 0.0) -> list[str]:
        """Take in its reports; where there are none, wait for one. Returns what they have to say to people."""
        sentences: list[str] = []
        self._poller.wait(timeout_sec)
        while (frames := self._socket.receive()) is not None:
            report, _ = self._codec.decode(frames)
            self.received(report)
            sentences += self.state.receive(report, time.monotonic())
        return sentences

    def received(self, report: Report) -> None:
        """Called with each report."""

    def stop(self, hurry: Callable[[], bool]) -> list[str]:
        """Let it answer what waits, and end; at once where `hurry()`. Returns a sentence where it did not end well."""

        def meanwhile() -> bool:
            self.take_reports(TURN_SEC)
            return hurry()

        return self.fleet.stop(ROLE, STOP_SEC, meanwhile)

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_LIMIT_SEC
        while not self.fleet.ready(ROLE):
            self.take_reports(TURN_SEC)
            if self._stopped():
                raise RoleDied("The inference server was stopped before it was ready.", 130)
            if time.monotonic() > deadline:
                raise RoleDied(f"The inference server did not become ready within {READY_LIMIT_SEC:.0f} s.", 1)
            self.fleet.check_alive()


@contextmanager
def frozen_run(checkpoint: Path, config: Config, command: Command = role_command) -> Iterator[RunDir]:
    """A run directory where `checkpoint` is served, for the time of the block. Raises ConfigError, RoleDied."""
    with temporary_folder("simul-frozen-") as folder:
        run_dir = RunDir(folder)
        run_dir.create()
        run_dir.write_config(config)
        run_dir.write_spec(ask_for_spec(config, command, run_dir.root))
        with FrozenServer(run_dir, checkpoint, config.server.threads, command):
            yield run_dir
