"""An inference server with frozen weights and no learner, for as long as something plays against it."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

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
    """Serves a checkpoint in a run directory of its own: `with FrozenServer(folder, config) as run_dir:`."""

    def __init__(self, checkpoint: Path, config: Config, command: Command = role_command) -> None:
        self._checkpoint = checkpoint
        self._config = config
        self._command = command
        self._state = RunState()
        self._codec: Codec[Report] = Codec(TO_SUPERVISOR)

    def __enter__(self) -> RunDir:
        """Start it and wait until it is ready. Raises ConfigError, RoleDied."""
        with ExitStack() as opened:
            run_dir = RunDir(opened.enter_context(temporary_folder("simul-frozen-")))
            run_dir.create()
            run_dir.write_config(self._config)
            run_dir.write_spec(ask_for_spec(self._config, self._command, run_dir.root))
            self._socket = opened.enter_context(PullSocket(run_dir.endpoint("status")))
            self._poller = Poller([self._socket])
            self._fleet = Fleet(run_dir, self._state, self._command)
            opened.callback(self._fleet.kill_all)
            self._start()
            self._opened = opened.pop_all()
        return run_dir

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._opened:
            self._fleet.stop(ROLE, STOP_SEC, self._turn)

    def _start(self) -> None:
        extra = ["--checkpoint", str(self._checkpoint)]
        self._fleet.start(ROLE, 1, self._config.server.threads, [extra])
        deadline = time.monotonic() + READY_LIMIT_SEC
        while not self._fleet.ready(ROLE):
            self._turn()
            if time.monotonic() > deadline:
                raise RoleDied(f"The inference server did not become ready within {READY_LIMIT_SEC:.0f} s.", 1)
            self._fleet.check_alive()

    def _turn(self) -> bool:
        while (frames := self._socket.receive()) is not None:
            report, _ = self._codec.decode(frames)
            self._state.receive(report, time.monotonic())
        self._poller.wait(TURN_SEC)
        return False
