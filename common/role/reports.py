"""Reports of a role process to the supervisor."""

from __future__ import annotations

import os
import time
from typing import Any

from simul.common.errors import ConfigError
from simul.common.protocol.codec import encode
from simul.common.protocol.messages import Report
from simul.common.role.lifecycle import RoleArguments
from simul.common.role.run_directory import RunDir
from simul.common.transport import PushSocket

REPORT_EVERY_SEC = 0.5


class Reporter:
    """Pushes a role's figures to the supervisor, twice a second. Never blocks; `send` never raises.

    Attributes:
        endpoints: where other machines reach this process, by `address_name`; empty on one machine.
    """

    def __init__(self, arguments: RoleArguments, role: str) -> None:
        run_dir = arguments.run_dir
        self.endpoints: dict[str, str] = {}
        self._socket = PushSocket(run_dir.endpoint("status"), keys=run_dir.keys_to_connect("status"))
        self._arguments = arguments
        self._role = role
        self._token = _token(arguments.run_dir)
        self._next = 0.0
        self._state = "starting"

    @property
    def state(self) -> str:
        """Of the last report."""
        return self._state

    def due(self, now: float) -> bool:
        """True when the next report is due; `now` from time.monotonic()."""
        return now >= self._next

    def send(self, metrics: dict[str, Any], *, state: str | None = None, event: str = "") -> None:
        """Send figures now; `event`: one sentence for the view."""
        self._state = state or self._state
        self._next = time.monotonic() + REPORT_EVERY_SEC
        arguments = self._arguments
        report = Report(
            role=self._role, index=arguments.index, run_id=arguments.run_id, pid=os.getpid(),
            state=self._state, metrics=metrics, event=event, token=self._token,
            time=time.time(), endpoints=self.endpoints,
        )  # fmt: skip
        self._socket.send(encode(report))

    def close(self) -> None:
        """Flush and close."""
        self._socket.close()


def _token(run_dir: RunDir) -> str:
    """The run's token; empty where it cannot be read, which the role itself reports."""
    try:
        return run_dir.token()
    except ConfigError:
        return ""
