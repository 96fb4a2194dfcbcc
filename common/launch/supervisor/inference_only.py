"""An inference server with frozen weights and no learner, for as long as something wants to ask it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from simul.common.config.run_directory import RunDir
from simul.common.config.schema import Config
from simul.common.launch.supervisor.game_spec import ask_for_spec
from simul.common.launch.supervisor.process_group import Command, RoleDied
from simul.common.launch.supervisor.processes import role_command
from simul.common.launch.supervisor.running import RunningRoles
from simul.common.launch.supervisor.temporary import temporary_folder

ROLE = "inference_server"
STOP_SEC = 15.0
TURN_SEC = 0.1


class FrozenServer(RunningRoles):
    """Serves `checkpoint` in a run directory with config.yaml and spec.json: `with FrozenServer(...) as server:`."""

    def __init__(
        self, run_dir: RunDir, checkpoint: Path, threads: int, command: Command = role_command,
        *, stopped: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        super().__init__(run_dir, command)
        self._checkpoint = checkpoint
        self._threads = threads
        self._stopped = stopped

    def __enter__(self) -> Self:
        """Start it and wait until it is ready. Raises RoleDied: it ended, or `stopped()` became true."""
        super().__enter__()
        try:
            self.start()
            self.fleet.wait_until_ready(ROLE, self._starting)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.stop(lambda: False)
        finally:
            self.close()

    def start(self) -> None:
        """Start the process."""
        self.fleet.start(ROLE, 1, self._threads, [["--checkpoint", str(self._checkpoint)]])

    def stop(self, hurry: Callable[[], bool]) -> list[str]:
        """Let it answer what waits, and end; at once where `hurry()`. Returns a sentence where it did not end well."""

        def meanwhile() -> bool:
            self.take_reports(TURN_SEC)
            return hurry()

        return self.fleet.stop(ROLE, STOP_SEC, meanwhile)

    def _starting(self) -> bool:
        self.take_reports(TURN_SEC)
        if self._stopped():
            raise RoleDied("The inference server was stopped before it was ready.", 130)
        return False


@contextmanager
def frozen_run(checkpoint: Path, config: Config, command: Command = role_command) -> Iterator[RunDir]:
    """A run directory where `checkpoint` is served, for the time of the block. Raises ConfigError, RoleDied."""
    with temporary_folder("simul-frozen-") as folder:
        run_dir = RunDir(folder)
        run_dir.create()
        run_dir.write_config(config)
        run_dir.write_spec(ask_for_spec(config, command))
        with FrozenServer(run_dir, checkpoint, config.server.threads, command):
            yield run_dir
