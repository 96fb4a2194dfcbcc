"""The proxy in front of the server (`inference_server/proxy/`), as a child process: started, watched, restarted.

The server listens itself, and hands the socket over: a proxy that died is replaced behind the same socket, and
new connections wait meanwhile. The socket pair between the two processes tells each of the other's death.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from typing import Any

from simul.common.runtime.installation import import_path
from simul.common.transport.endpoints import BoundEndpoint, IpcAccess, listen_tcp, listen_unix
from simul.inference_server.proxy.framing import Limits

LOOK_EVERY_SEC = 0.05
FROZEN_SEC = 10.0  # it reports every second
LAST_SEC = 3.0
FIRST_WAIT_SEC, LONGEST_WAIT_SEC = 0.05, 5.0  # before it is started again, doubled each time
STEADY_SEC = 30.0


class ProxyProcess:
    """The proxy for peers without the run's token: from `endpoint` to the server's own ipc endpoint `server`.

    Raises ConfigError: `endpoint` cannot be bound.
    """

    def __init__(
        self, endpoint: str, server: str, limits: Limits, *, curve: bool = False, access: IpcAccess = "owner"
    ) -> None:
        self.new_connections: Counter[str] = Counter()  # connection events by kind; the reader clears them
        self.cut: Counter[str] = Counter()  # connections that the proxies cut, by cause
        self.restarts = 0
        self.connections = 0
        self.unanswered_bytes = 0
        self._server = server.removeprefix("ipc://")
        self._limits = replace(limits, owner_only=access == "owner")
        self._access = access
        self._listener: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.bound = [BoundEndpoint(endpoint, self._listen, curve=curve)]
        self._wait_sec, self._start_at, self._look_at = FIRST_WAIT_SEC, 0.0, 0.0
        self._start_again(time.monotonic())

    @property
    def pid(self) -> int:
        """Process id of the running proxy; 0: none."""
        return self._process.pid if self._process is not None else 0

    def poll(self, now: float) -> str:
        """Read its reports. Returns a sentence if it died and will be restarted."""
        if now < self._look_at:
            return ""
        self._look_at = now + LOOK_EVERY_SEC
        if self._process is None:
            if now >= self._start_at:
                self._start_again(now)
            return ""
        if self._read_reports(now):
            if now - self._started_at > STEADY_SEC:
                self._wait_sec = FIRST_WAIT_SEC
            return ""
        self._remove_dead()
        self.restarts += 1
        self._start_at = now + self._wait_sec
        self._wait_sec = min(2 * self._wait_sec, LONGEST_WAIT_SEC)
        return "the proxy in front of the server died, restarting: clients without the run's token connect again"

    def close(self) -> None:
        """After the server's own socket: its last answers are passed on, for a moment at most."""
        if self._process is not None:
            self._control.close()
            try:
                self._process.wait(LAST_SEC)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._listener is not None:
            self._listener.close()
        for bound in self.bound:
            bound.close()

    def _listen(self, endpoint: str) -> None:
        """Raises OSError."""
        former = self._listener
        ipc = endpoint.startswith("ipc://")
        self._listener = listen_unix(endpoint, self._access) if ipc else listen_tcp(endpoint)
        if former is not None:
            former.close()
        if self._process is not None:
            self._hand_over()

    def _start(self) -> None:
        self._control, theirs = socket.socketpair()
        self._control.setblocking(False)
        environment = {**os.environ, "PYTHONPATH": import_path()}
        line = [sys.executable, "-P", "-m", "simul.inference_server.proxy", str(theirs.fileno()), self._server,
                self._limits.as_text()]  # fmt: skip
        try:
            self._process = subprocess.Popen(
                line, env=environment, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
            )
        except OSError:
            self._control.close()
            raise
        finally:
            theirs.close()
        self._unparsed = b""
        self._last: dict[str, Any] = {"not_accepted": 0, "cut": Counter()}
        self._started_at = self._heard_at = time.monotonic()
        self._hand_over()

    def _start_again(self, now: float) -> None:
        """Start the proxy; try again later if the system has no process or descriptor to give."""
        with contextlib.suppress(OSError):
            self._start()
        self._start_at = now + self._wait_sec

    def _hand_over(self) -> None:
        assert self._listener is not None
        try:
            socket.send_fds(self._control, [b"L"], [self._listener.fileno()])
        except OSError:
            return  # it is dead: the next one gets it

    def _read_reports(self, now: float) -> bool:
        """Read its figures. False when it is dead, or frozen."""
        while True:
            try:
                data = self._control.recv(65536)
            except BlockingIOError:
                return now - self._heard_at < FROZEN_SEC
            except OSError:
                return False
            if not data:
                return False
            self._heard_at = now
            *lines, self._unparsed = (self._unparsed + data).split(b"\n")
            if lines:
                self._add_figures(json.loads(lines[-1]))

    def _add_figures(self, figures: dict[str, Any]) -> None:
        """Figures count from the start of a process; ours from the first of them."""
        cut = Counter(figures["cut"])
        self.cut += cut - self._last["cut"]
        self.new_connections["not_accepted"] += figures["not_accepted"] - self._last["not_accepted"]
        self._last = {"not_accepted": figures["not_accepted"], "cut": cut}
        self.connections, self.unanswered_bytes = figures["connections"], figures["unanswered_bytes"]

    def _remove_dead(self) -> None:
        assert self._process is not None
        self._control.close()
        self._process.kill()
        self._process.wait()
        self._process = None
        self.connections = self.unanswered_bytes = 0
