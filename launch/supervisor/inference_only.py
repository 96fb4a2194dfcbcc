"""An inference server with frozen weights and no learner, for `simul serve`, `play` and the load test."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from simul.common.client.control import ControlClient
from simul.common.config.schema import Config, LearnerConfig
from simul.common.config.trust import NOTHING, Trust, values_to_trust
from simul.common.errors import ConfigError
from simul.common.role.run_directory import RunDir
from simul.common.role.temporary import temporary_folder
from simul.common.transport import check_endpoint, server_keys
from simul.launch.monitoring.snapshot import RunMonitor, Snapshot
from simul.launch.monitoring.view.display import Display
from simul.launch.monitoring.view.serve_panel import ServedCheckpoint, closing_line, startup_lines
from simul.launch.processes.process_group import Command, RoleDied, RunningRoles
from simul.launch.processes.role_process import role_command
from simul.launch.processes.signals import Signals
from simul.launch.supervisor.checkpoint_files import config_of, networks_of, newest_checkpoint, spec_of
from simul.launch.supervisor.game_spec import ask_for_spec
from simul.launch.supervisor.preflight import check_resources

ROLE = "inference_server"
ENDPOINT = "tcp://127.0.0.1:5555"  # of `simul serve`
STOP_SEC = 15.0
POLL_SEC = 0.1
SNAPSHOT_EVERY_SEC = 1.0


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
            self.group.wait_until_ready(ROLE, self._starting)
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
        self.group.start(ROLE, 1, self._threads, [["--checkpoint", str(self._checkpoint)]])

    def stop(self, hurry: Callable[[], bool]) -> list[str]:
        """Let it answer what waits, and end; kill it where `hurry()`. Returns a sentence if it did not exit cleanly."""

        def meanwhile() -> bool:
            self.receive_reports(POLL_SEC)
            return hurry()

        return self.group.stop(ROLE, STOP_SEC, meanwhile)

    def _starting(self) -> bool:
        self.receive_reports(POLL_SEC)
        if self._stopped():
            raise RoleDied("The inference server was stopped before it was ready.", 130)
        return False


@contextmanager
def frozen_run(
    checkpoint: Path,
    config: Config,
    *,
    others: Mapping[str, Path] | None = None,
    trust: Trust = NOTHING,
) -> Iterator[RunDir]:
    """A run directory where `checkpoint` is served, for the time of the block. Raises ConfigError, RoleDied.

    `others`: checkpoints that are served beside it, by policy name. `trust`: in the networks that they name.
    """
    networks = networks_of([checkpoint, *(others or {}).values()], trust.and_also(values_to_trust(config)))
    with temporary_folder("simul-frozen-") as folder:
        run_dir = RunDir(folder)
        run_dir.create()
        run_dir.write_config(config, networks)
        run_dir.write_spec(ask_for_spec(config, role_command))
        with FrozenServer(run_dir, checkpoint, config.server.threads):
            if others:
                with ControlClient(run_dir) as control:
                    for name, folder in others.items():
                        control.load(name, folder)
            yield run_dir


def serve(
    checkpoint: Path, display: Display, *, endpoint: str | None = None, curve_keys: Path | None = None,
    prometheus_port: int | None = None, overrides: Sequence[str] = (), trust: Trust = NOTHING,
    command: Command = role_command,
) -> int:  # fmt: skip
    """`simul serve`: serve until a signal comes; returns the exit code. Raises ConfigError, RoleDied.

    Args:
        checkpoint: a checkpoint, or a run directory for its newest one.
        endpoint: default: `server.endpoint` of the overrides, else ENDPOINT; curve_keys and prometheus_port likewise.
        overrides: settings as `K=V`, above those that the checkpoint was trained with.
        trust: what the command line trusts.
    """
    folder = newest_checkpoint(checkpoint)
    config = _config(folder, endpoint, curve_keys, prometheus_port, overrides, trust)
    networks = networks_of([folder], trust.and_also(values_to_trust(config)))
    spec = spec_of(folder)
    check_resources(
        msgspec.structs.replace(config, learner=LearnerConfig())
    )  # the learner's device may be missing here
    signals = Signals()
    signals.install()
    try:
        with temporary_folder("simul-serve-") as root:
            run_dir = RunDir(root)
            run_dir.create()
            run_dir.write_config(config, networks)
            run_dir.write_spec(spec)
            facts = ServedCheckpoint(folder, spec, config.server, root)
            return _Serving(run_dir, facts, display, signals, command).run()
    finally:
        display.close()
        signals.restore()


def _config(
    folder: Path, endpoint: str | None, curve_keys: Path | None, prometheus_port: int | None, overrides: Sequence[str],
    trust: Trust,
) -> Config:  # fmt: skip
    """The checkpoint's configuration, with the endpoint, keys and Prometheus port of this server.

    The rules of `load_config` also require a client's secret key, for the workers; `serve` has none, so that the keys
    are set afterwards.
    """
    config = config_of(folder, overrides, trust)
    if (count := config.cluster.servers.count) > 1:
        raise ConfigError(
            f"cluster.servers.count is {count}, and `simul serve` starts one inference server. Leave it out, and start "
            "`simul serve` once more at another --endpoint for a second one."
        )
    server = config.server
    keys = Path(server.curve_keys) if curve_keys is None and server.curve_keys else curve_keys
    endpoint = endpoint or server.endpoint or ENDPOINT
    if keys is not None:
        server_keys(keys)
    check_endpoint(endpoint, curve=keys is not None)
    server = msgspec.structs.replace(
        server, endpoint=endpoint, curve_keys="" if keys is None else str(keys.absolute()),
        prometheus_port=server.prometheus_port if prometheus_port is None else prometheus_port,
    )  # fmt: skip
    return msgspec.structs.replace(config, server=server)


class _Serving:
    """The loop of `simul serve`: receive reports, restart a dead server, show figures, until a signal."""

    def __init__(
        self, run_dir: RunDir, facts: ServedCheckpoint, display: Display, signals: Signals, command: Command
    ) -> None:
        self._facts = facts
        self._display = display
        self._signals = signals
        self._server = FrozenServer(
            run_dir, facts.checkpoint, facts.server.threads, command, stopped=lambda: signals.stop
        )
        self._monitor = RunMonitor(facts.name, self._server.reports, self._server.group)

    def run(self) -> int:
        began = time.monotonic()
        with self._server as server:
            self._monitor.mark_ready()
            for line in startup_lines(self._facts, self._take_snapshot("serving"), time.monotonic() - began):
                self._display.say(line)
            next_snapshot = 0.0
            while not self._signals.stop:
                self._say(server.receive_reports(POLL_SEC))
                self._say(server.group.restart_dead(time.monotonic()))
                if time.monotonic() >= next_snapshot:
                    next_snapshot = time.monotonic() + SNAPSHOT_EVERY_SEC
                    self._display.update(self._take_snapshot("serving"))
            self._say(["stopping: answering what waits (Ctrl-C again: now)"])
            self._display.update(self._take_snapshot("stopping"))
            self._monitor.mark_stopping()
            bad = server.stop(lambda: self._signals.now)
            self._say(bad)
        self._display.close()
        self._display.summary(closing_line(self._take_snapshot("stopped")))
        return 1 if bad else 0

    def _take_snapshot(self, phase: str) -> Snapshot:
        self._server.group.measure()
        snapshot = self._monitor.take_snapshot(phase, time.monotonic())
        self._say(self._monitor.take_alerts())
        return snapshot

    def _say(self, sentences: Sequence[str]) -> None:
        for sentence in sentences:
            self._monitor.add_event(sentence)
            self._display.say(sentence)
