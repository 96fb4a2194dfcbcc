"""`python -m simul.common.client.load`: one client process that loads a server."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from simul.common.client.columns import ColumnClient
from simul.common.client.load.orders import SetUp, carry_out
from simul.common.protocol.specs import GameSpec
from simul.common.transport import client_keys


class LoadClient(ColumnClient):
    """A column client that waits on its socket."""

    def wait(self, timeout_sec: float) -> None:
        """Wait for a message, at most `timeout_sec`; 0: only yield the core to other processes."""
        if timeout_sec > 0:
            self.poller.wait(timeout_sec)
        elif hasattr(os, "sched_yield"):  # among others to the thread that reads the socket
            os.sched_yield()

    def forward_per_sec(self, batch: int, seconds: float) -> float:
        """The network is in another process."""
        raise NotImplementedError


def set_up(setup: SetUp, spec: GameSpec) -> Callable[[], LoadClient]:
    """What connects a new client. Raises InferenceError there, ConfigError here."""
    keys = client_keys(Path(setup.keys)) if setup.keys else None

    def connect() -> LoadClient:
        policy = LoadClient(setup.endpoint, name=f"loadtest-{setup.index}", spec=spec, keys=keys)
        policy.connect(setup.connect_sec)
        return policy

    return connect


if __name__ == "__main__":
    sys.exit(carry_out(set_up))
