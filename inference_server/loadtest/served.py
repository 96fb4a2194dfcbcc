"""The server that the load test starts, and what it says of itself while the load runs."""

from __future__ import annotations

import time
from types import TracebackType

from common.codec import Codec
from common.launch.fleet import Fleet, RoleDied
from common.launch.state import RunState
from common.messages import TO_SUPERVISOR, Report
from common.transport import PullSocket
from inference_server.loadtest.cores import pin
from inference_server.loadtest.heard import Heard
from inference_server.loadtest.subject import Subject

ROLE = "inference_server"
READY_LIMIT_SEC = 300.0
STOP_SEC = 10.0
TURN_SEC = 0.05


class StartedServer:
    """A server process with frozen weights and no learner: `with StartedServer(subject, cores) as server:`."""

    def __init__(self, subject: Subject, cores: tuple[int, ...]) -> None:
        self._subject = subject
        self._cores = cores
        self._state = RunState()
        self._fleet = Fleet(subject.run_dir, self._state)
        self._codec: Codec[Report] = Codec(TO_SUPERVISOR)
        self.heard = Heard()
        self.endpoint = subject.run_dir.endpoint("data")

    def __enter__(self) -> StartedServer:
        """Start it and wait until it is ready. Raises RoleDied."""
        self._socket = PullSocket(self._subject.run_dir.endpoint("status"))
        try:
            threads = self._subject.config.server.threads
            self._fleet.start(ROLE, 1, threads, [["--checkpoint", str(self._subject.checkpoint)]])
            pin(self._fleet.places[ROLE, 0].child.pid, self._cores)
            deadline = time.monotonic() + READY_LIMIT_SEC
            while not self._fleet.ready(ROLE):
                self.listen()
                if time.monotonic() > deadline:
                    raise RoleDied(f"The inference server did not become ready within {READY_LIMIT_SEC:.0f} s.", 1)
                time.sleep(TURN_SEC)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._fleet.stop(ROLE, STOP_SEC, self._wait)
        self._end()

    def listen(self) -> None:
        """Take in its reports. Raises RoleDied where it has ended."""
        while (frames := self._socket.receive()) is not None:
            report, _ = self._codec.decode(frames)
            self._state.receive(report, time.monotonic())
            self.heard.add(time.perf_counter(), report.metrics)
        self._fleet.check_alive()

    def _wait(self) -> bool:
        time.sleep(TURN_SEC)
        return False

    def _end(self) -> None:
        self._fleet.kill_all()
        self._socket.close()
