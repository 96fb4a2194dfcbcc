"""An inference server with frozen weights and no learner, for as long as something plays against it."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from types import TracebackType

from common.codec import Codec
from common.config import Config
from common.launch.fleet import Command, Fleet, RoleDied
from common.launch.game_spec import ask_for_spec
from common.launch.processes import role_command
from common.launch.state import RunState
from common.messages import TO_SUPERVISOR, Report
from common.rundir import RunDir
from common.transport import Poller, PullSocket

ROLE = "inference_server"
READY_LIMIT_SEC = 300.0
STOP_SEC = 15.0
TURN_SEC = 0.1


class FrozenServer:
    """Serves a checkpoint in a run directory of its own: `with FrozenServer(folder, config) as run_dir:`."""

    def __init__(self, checkpoint: Path, config: Config, command: Command = role_command) -> None:
        self._checkpoint = checkpoint
        self._config = config
        self._command = command
        self._folder = tempfile.TemporaryDirectory(prefix="simul-frozen-")
        self._run_dir = RunDir(self._folder.name)
        self._state = RunState()
        self._fleet = Fleet(self._run_dir, self._state, command)
        self._codec: Codec[Report] = Codec(TO_SUPERVISOR)

    def __enter__(self) -> RunDir:
        """Start it and wait until it is ready. Raises ConfigError, RoleDied."""
        self._run_dir.create()
        self._run_dir.write_config(self._config)
        self._run_dir.write_spec(ask_for_spec(self._config, self._command))
        self._socket = PullSocket(self._run_dir.endpoint("status"))
        self._poller = Poller([self._socket])
        try:
            extra = ["--checkpoint", str(self._checkpoint)]
            self._fleet.start(ROLE, 1, self._config.server.threads, [extra])
            deadline = time.monotonic() + READY_LIMIT_SEC
            while not self._fleet.ready(ROLE):
                self._turn()
                if time.monotonic() > deadline:
                    raise RoleDied(f"The inference server did not become ready within {READY_LIMIT_SEC:.0f} s.", 1)
                self._fleet.check_alive()
        except BaseException:
            self._end()
            raise
        return self._run_dir

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._fleet.stop(ROLE, STOP_SEC, self._turn)
        self._end()

    def _turn(self) -> bool:
        while (frames := self._socket.receive()) is not None:
            report, _ = self._codec.decode(frames)
            self._state.receive(report, time.monotonic())
        self._poller.wait(TURN_SEC)
        return False

    def _end(self) -> None:
        self._fleet.kill_all()
        self._socket.close()
        self._folder.cleanup()
