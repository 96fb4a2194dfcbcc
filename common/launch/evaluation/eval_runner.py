"""One evaluation: a server with frozen weights, a few workers, until every episode is played."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from simul.common.client.control import ControlClient
from simul.common.config.run_directory import RunDir
from simul.common.config.schema import Config
from simul.common.launch.monitoring.figures import number
from simul.common.launch.monitoring.state import Metrics
from simul.common.launch.supervisor.game_spec import ask_for_spec
from simul.common.launch.supervisor.process_group import Command, RoleDied
from simul.common.launch.supervisor.processes import role_command
from simul.common.launch.supervisor.running import RunningRoles
from simul.common.launch.supervisor.signals import Signals

SHOW_EVERY_SEC = 5.0
STOP_SEC = 15.0
TURN_SEC = 0.1


class Match:
    """Plays in `run_dir`, under `signals` that are installed."""

    def __init__(
        self, run_dir: RunDir, config: Config, signals: Signals, command: Command = role_command, *, quiet: bool
    ) -> None:
        self._run_dir = run_dir
        self._config = config
        self._signals = signals
        self._command = command
        self._quiet = quiet
        self._roles = RunningRoles(run_dir, command)
        self.versions: dict[str, float | None] = {}  # of the policies that played, by name

    def play(self, served: Mapping[str, Path], workers: Sequence[Sequence[str]], episodes: int) -> Metrics:
        """Figures of all workers, after the last episode.

        Args:
            served: checkpoints by the policy's name, the first of which is `learner`; none: only bots play.
            workers: arguments of each worker.
            episodes: of all workers together, to show how far they are.

        Raises:
            ConfigError: a checkpoint does not fit. RoleDied: a process failed, or Ctrl-C.
        """
        self._run_dir.create()
        self._run_dir.write_config(self._config)
        self._run_dir.write_spec(ask_for_spec(self._config, self._command))
        with self._roles:
            if served:
                self._start_server(served["learner"])
                self._load({name: folder for name, folder in served.items() if name != "learner"})
            self._play_out(workers, episodes)
            self._roles.fleet.stop("inference_server", STOP_SEC, self._turn)
        return self._roles.state.totals("env_worker")

    def _start_server(self, checkpoint: Path) -> None:
        fleet = self._roles.fleet
        fleet.start("inference_server", 1, self._config.server.threads, [["--checkpoint", str(checkpoint)]])
        fleet.wait_until_ready("inference_server", self._turn)
        self.versions["learner"] = number(self._roles.state.totals("inference_server"), "policy_version")

    def _load(self, others: Mapping[str, Path]) -> None:
        if not others:
            return
        with ControlClient(self._run_dir) as control:
            for name, folder in others.items():
                answer = control.load(name, folder)
                self._turn()
        self.versions |= {policy.name: policy.policy_version for policy in answer.policies}

    def _play_out(self, workers: Sequence[Sequence[str]], episodes: int) -> None:
        self._roles.fleet.start("env_worker", len(workers), 1, workers)
        shown_at = time.monotonic()
        while playing := self._playing():
            self._turn()
            if time.monotonic() - shown_at >= SHOW_EVERY_SEC and not self._quiet:
                shown_at = time.monotonic()
                done = number(self._roles.state.totals("env_worker"), "episodes", "finished") or 0
                sys.stderr.write(
                    f"{done:.0f} of {episodes} played, {playing} {'worker' if playing == 1 else 'workers'} at it\n"
                )
        while self._roles.wait(TURN_SEC):  # their last words
            self._roles.take_reports()

    def _playing(self) -> int:
        """Workers that have not finished. Raises RoleDied where one failed, or the server did."""
        playing = 0
        for (role, _), place in self._roles.fleet.places.items():
            code = place.child.exit_code()
            if role == "env_worker" and code in (None, 0):
                playing += code is None
            elif code is not None:
                self._roles.fleet.check_alive()
        return playing

    def _turn(self) -> bool:
        """Take what was reported; never True, so that nobody is hurried. Raises RoleDied on Ctrl-C."""
        if self._signals.stop:
            raise RoleDied("The evaluation was interrupted.", 130)
        self._roles.take_reports(TURN_SEC)
        return False
