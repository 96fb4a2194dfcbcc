"""One client process: `python -m simul.inference_server.loadtest.client`. Only the local baseline imports torch."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from simul.common.client.columns import ColumnClient
from simul.common.config.run_directory import RunDir
from simul.common.protocol.errors import SimulError
from simul.common.protocol.specs import GameSpec
from simul.common.transport import client_keys
from simul.inference_server.loadtest.driver import Driver, Policy
from simul.inference_server.loadtest.orders import Done, Failed, Forward, Forwarded, Go, Inbox, Prepare, SetUp, say
from simul.inference_server.loadtest.schedule import PoissonSchedule
from simul.inference_server.loadtest.traffic import Seats
from simul.inference_server.loadtest.windows import Window, WindowClock

if TYPE_CHECKING:
    from simul.inference_server.loadtest.local import LocalPolicy


class Remote(ColumnClient):
    """A column client that waits on its socket."""

    def wait(self, timeout_sec: float) -> None:
        """Until something arrives, or `timeout_sec` has passed; 0: only let others on this core have a turn."""
        if timeout_sec > 0:
            self.poller.wait(timeout_sec)
        elif hasattr(os, "sched_yield"):  # among them the thread that reads our socket
            os.sched_yield()


def main() -> int:
    """Carry out orders until stdin is closed. Exit code 1 after saying what failed."""
    inbox = Inbox()
    try:
        setup = inbox.wait()
        if isinstance(setup, SetUp):
            _serve(setup, inbox)
    except SimulError as error:
        say(Failed(str(error)))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _serve(setup: SetUp, inbox: Inbox) -> None:
    if setup.cores:
        with contextlib.suppress(AttributeError, OSError):  # not every system can
            psutil.Process().cpu_affinity(list(setup.cores))
    spec = RunDir(setup.run_dir).read_spec()
    local = None if setup.endpoint else _local(setup, spec)
    keys = client_keys(Path(setup.keys)) if setup.keys else None
    gc.freeze()
    say(Done())
    while (order := inbox.wait()) is not None:
        if isinstance(order, Prepare):
            policy = local or Remote(setup.endpoint, name=f"loadtest-{setup.index}", spec=spec, keys=keys)
            if isinstance(policy, Remote):
                policy.connect(setup.connect_sec)
            seats = Seats(spec, order.envs, order.seed + setup.index)
            say(Done())
            go = inbox.wait()
            if isinstance(go, Go):
                _run(policy, seats, order, go, setup.index, inbox)
            policy.close()
            say(Done())
        elif isinstance(order, Forward) and local is not None:
            say(Forwarded(local.forward_per_sec(order.batch, order.seconds)))


def _local(setup: SetUp, spec: GameSpec) -> LocalPolicy:
    from simul.inference_server.loadtest.local import LocalPolicy

    return LocalPolicy(RunDir(setup.run_dir).read_config(), spec, Path(setup.checkpoint))


def _run(policy: Policy, seats: Seats, cell: Prepare, go: Go, index: int, inbox: Inbox) -> None:
    def tick(window: Window) -> bool:
        say(window)
        return inbox.arrived()

    driver = Driver(policy, seats, WindowClock(go.start, go.warm_up_sec, go.window_sec))
    if cell.mode == "closed":
        driver.closed_loop(cell.envs, tick)
    else:
        schedule = PoissonSchedule(cell.rate_per_sec, go.start, cell.seed + index)
        driver.open_loop(cell.envs, schedule, tick)


if __name__ == "__main__":
    sys.exit(main())
