"""Starts the client processes of the load test, sends them orders and collects their reports."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from queue import Empty, Queue
from types import TracebackType

import msgspec

from simul.common.client.load.orders import Failed, Order, Report, SetUp, read_report
from simul.common.client.load.windows import Window
from simul.common.errors import InferenceError
from simul.launch.processes.role_process import role_environment

LOADS_SERVER = "simul.common.client.load"
RUNS_POLICY = "simul.inference_server.loadtest.local"
ANSWER_SEC = 120.0
LEAVE_SEC = 5.0


class ClientPool:
    """Client processes that carry out orders in parallel: `with ClientPool([SetUp(...), ...]) as pool:`."""

    def __init__(self, setups: Sequence[SetUp]) -> None:
        self._setups = setups
        self._processes: list[subprocess.Popen[bytes]] = []
        self._reports: Queue[tuple[int, Report | None]] = Queue()

    def __enter__(self) -> ClientPool:
        """Start them all and wait until each is ready. Raises InferenceError."""
        try:
            for index, setup in enumerate(self._setups):
                self._start(index)
                self._send(index, setup)
            self.gather(len(self._setups))
        except BaseException:
            self._end(0.0)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(LEAVE_SEC if error is None else 0.0)

    def send_order(self, order: Order, count: int) -> None:
        """Send an order to the first `count` processes."""
        for index in range(count):
            self._send(index, order)

    def receive_report(self, timeout_sec: float) -> tuple[int, Report] | None:
        """(Index of a process, its report); None after `timeout_sec`. Raises InferenceError where one failed."""
        try:
            index, report = self._reports.get(timeout=timeout_sec)
        except Empty:
            return None
        if isinstance(report, Failed):
            raise InferenceError("ERR_LOADTEST", f"a client cannot go on: {report.sentence}")
        if report is None:
            raise InferenceError("ERR_LOADTEST", f"client {index} ended with {self._processes[index].wait()}")
        return index, report

    def gather(self, count: int) -> list[Report]:
        """One report other than a window from each of `count` processes. Raises InferenceError."""
        answers: list[Report] = []
        deadline = time.monotonic() + ANSWER_SEC
        while len(answers) < count:
            received = self.receive_report(max(0.0, deadline - time.monotonic()))
            if received is None:
                raise InferenceError("ERR_TIMEOUT", f"a client process has sent nothing for {ANSWER_SEC:.0f} s")
            if not isinstance(received[1], Window):
                answers.append(received[1])
        return answers

    def _start(self, index: int) -> None:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", LOADS_SERVER if self._setups[index].endpoint else RUNS_POLICY],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=role_environment(1),
            start_new_session=sys.platform != "win32",
        )  # fmt: skip
        self._processes.append(process)
        threading.Thread(target=self._read, args=(index, process), daemon=True).start()

    def _read(self, index: int, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._reports.put((index, read_report(line)))
        self._reports.put((index, None))

    def _send(self, index: int, order: Order) -> None:
        stdin = self._processes[index].stdin
        assert stdin is not None
        try:
            stdin.write(msgspec.json.encode(order) + b"\n")
            stdin.flush()
        except BrokenPipeError:
            return  # its last report says why; `receive_report` raises

    def _end(self, patience_sec: float) -> None:
        for process in self._processes:
            assert process.stdin is not None
            try:
                process.stdin.close()
            except BrokenPipeError:
                continue
        deadline = time.monotonic() + patience_sec
        for process in self._processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.stdout is not None
            process.stdout.close()
