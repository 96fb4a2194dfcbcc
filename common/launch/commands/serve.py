"""`simul serve`: a checkpoint on its own, for whoever connects, in the foreground. No learner, no env workers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from simul.common.config.run_directory import RunDir
from simul.common.config.schema import Config, LearnerConfig
from simul.common.launch.evaluation.checkpoint import config_of, newest_checkpoint
from simul.common.launch.monitoring.serve_view import Facts, farewell, welcome
from simul.common.launch.monitoring.snapshot import Snapshot, Watch
from simul.common.launch.monitoring.view import Display
from simul.common.launch.supervisor.inference_only import TURN_SEC, FrozenServer
from simul.common.launch.supervisor.preflight import check_start
from simul.common.launch.supervisor.process_group import Command
from simul.common.launch.supervisor.processes import role_command
from simul.common.launch.supervisor.signals import Signals
from simul.common.launch.supervisor.temporary import temporary_folder
from simul.common.protocol.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.common.transport import check_endpoint, server_keys

ENDPOINT = "tcp://127.0.0.1:5555"
LOOK_EVERY_SEC = 1.0


def serve(
    checkpoint: Path, display: Display, *, endpoint: str | None = None, curve_keys: Path | None = None,
    prometheus_port: int | None = None, overrides: Sequence[str] = (), command: Command = role_command,
) -> int:  # fmt: skip
    """Serve until a signal comes; returns the exit code. Raises ConfigError, RoleDied.

    Args:
        checkpoint: a checkpoint, or a run directory: its newest.
        endpoint: default: `server.endpoint` among the overrides, else ENDPOINT; the other two likewise.
        overrides: settings as `K=V`, above those that the checkpoint was trained with.
    """
    folder = newest_checkpoint(checkpoint)
    config = _config(folder, endpoint, curve_keys, prometheus_port, overrides)
    spec = spec_of(folder)
    check_start(msgspec.structs.replace(config, learner=LearnerConfig()))  # whose device need not be here
    signals = Signals()
    signals.install()
    try:
        with temporary_folder("simul-serve-") as root:
            run_dir = RunDir(root)
            run_dir.create()
            run_dir.write_config(config)
            run_dir.write_spec(spec)
            facts = Facts(folder, spec, config.server, root)
            return _Serving(run_dir, facts, display, signals, command).run()
    finally:
        display.close()
        signals.restore()


def _config(
    folder: Path, endpoint: str | None, curve_keys: Path | None, prometheus_port: int | None, overrides: Sequence[str]
) -> Config:
    """What the checkpoint was trained with, but where and to whom it is served: that was another server's.

    A configuration's own rule wants keys of a client, too, for the workers. Here are none, and the folder on a server
    need not hold any client's secret.
    """
    config = config_of(folder, ["server.endpoint=''", "server.curve_keys=''", "server.prometheus_port=0", *overrides])
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


def spec_of(folder: Path) -> GameSpec:
    """The game of a checkpoint, in its own words: no env worker is asked. Raises ConfigError."""
    try:
        meta = msgspec.json.decode((folder / "meta.json").read_bytes())
        return msgspec.convert(meta["spec"], GameSpec)
    except (OSError, msgspec.MsgspecError, KeyError, TypeError):
        raise ConfigError(f"{folder}/meta.json does not say which game it is for. Name another checkpoint.") from None


class _Serving:
    def __init__(self, run_dir: RunDir, facts: Facts, display: Display, signals: Signals, command: Command) -> None:
        self._facts = facts
        self._display = display
        self._signals = signals
        self._server = FrozenServer(
            run_dir, facts.checkpoint, facts.server.threads, command, stopped=lambda: signals.stop
        )
        self._watch = Watch(facts.name, self._server.state, self._server.fleet)

    def run(self) -> int:
        began = time.monotonic()
        with self._server as server:
            self._watch.mark_ready()
            for line in welcome(self._facts, self._look("serving"), time.monotonic() - began):
                self._display.say(line)
            next_look = 0.0
            while not self._signals.stop:
                self._say(server.take_reports(TURN_SEC))
                self._say(server.fleet.restart_dead(time.monotonic()))
                if time.monotonic() >= next_look:
                    next_look = time.monotonic() + LOOK_EVERY_SEC
                    self._display.update(self._look("serving"))
            self._say(["stopping: what waits is answered (Ctrl-C again: now)"])
            self._display.update(self._look("stopping"))
            self._watch.mark_stopping()
            bad = server.stop(lambda: self._signals.now)
            self._say(bad)
        self._display.close()
        self._display.summary(farewell(self._look("stopped")))
        return 1 if bad else 0

    def _look(self, phase: str) -> Snapshot:
        self._server.fleet.measure()
        snapshot = self._watch.take(phase, time.monotonic())
        self._say(self._watch.alerts())
        return snapshot

    def _say(self, sentences: Sequence[str]) -> None:
        for sentence in sentences:
            self._watch.say(sentence)
            self._display.say(sentence)
