"""What can be known to fail is refused before any role starts: a taken endpoint or port, a device that is not there."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Collection
from contextlib import ExitStack

from simul.common.config.schema import Config
from simul.common.launch.supervisor.processes import role_environment
from simul.common.protocol.errors import ConfigError
from simul.common.transport import probe_bind

LOOPBACK = "127.0.0.1"
DEVICE_LIMIT_SEC = 60.0
REFUSED = 2
ASK_FOR_DEVICES = f"""
import sys
from simul.common.protocol.errors import ConfigError
from simul.common.nets.devices import choose_device
try:
    for name in sys.argv[1:]:
        choose_device(name)
except ConfigError as error:
    sys.stderr.write(str(error))
    sys.exit({REFUSED})
"""


def check_start(config: Config) -> None:
    """Raise ConfigError where the roles would."""
    with ExitStack() as until_checked:  # all at once, because none may be wanted twice
        if config.server.endpoint:
            until_checked.enter_context(probe_bind(config.server.endpoint, curve=bool(config.server.curve_keys)))
        if config.server.prometheus_port:
            until_checked.enter_context(_port(config.server.prometheus_port))
    _check_devices({config.server.device, config.learner.device} - {"auto", "cpu"})


def _port(port: int) -> socket.socket:
    try:
        return socket.create_server((LOOPBACK, port))
    except OSError as error:
        raise ConfigError(
            f"Figures for Prometheus cannot be served at {LOOPBACK}:{port}: {error.strerror}. "
            "Choose another server.prometheus_port, or 0."
        ) from None


def _check_devices(names: Collection[str]) -> None:
    """In a process of its own: torch stays out of this one. Whatever else is wrong there, the roles will say."""
    if not names:
        return
    line = [sys.executable, "-P", "-c", ASK_FOR_DEVICES, *sorted(names)]
    try:
        done = subprocess.run(
            line, capture_output=True, text=True, env=role_environment(1), timeout=DEVICE_LIMIT_SEC, check=False,
            stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return
    if done.returncode == REFUSED:
        raise ConfigError(done.stderr)
