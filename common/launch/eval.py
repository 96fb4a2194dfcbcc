"""`simul eval`: exactly N greedy games of a checkpoint, through a server with frozen weights and no learner."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from common.codec import Codec
from common.config import Config
from common.errors import ConfigError
from common.launch.eval_checkpoint import config_of, newest_checkpoint
from common.launch.eval_result import in_words, result_of
from common.launch.fleet import Command, Fleet, RoleDied
from common.launch.game_spec import ask_for_spec
from common.launch.processes import role_command
from common.launch.snapshot import number
from common.launch.state import Metrics, RunState
from common.launch.supervisor import Signals
from common.messages import TO_SUPERVISOR, Report
from common.rundir import RunDir
from common.transport import Poller, PullSocket

SHOW_EVERY_SEC = 5.0
SERVER_LIMIT_SEC = 300.0
STOP_SEC = 15.0


def evaluate(
    checkpoint: Path, *, opponent: str | None, episodes: int, workers: int = 1, overrides: Sequence[str] = (),
    as_json: bool = False, command: Command = role_command,
) -> int:  # fmt: skip
    """Play, print, and return the exit code. Raises ConfigError, RoleDied."""
    folder = newest_checkpoint(checkpoint)
    if episodes < 1 or workers < 1:
        raise ConfigError("--battles and --workers must be at least 1.")
    config = config_of(folder, overrides)
    if config.game == "pokemon" and opponent is None:
        raise ConfigError("Name the opponent: --opponent random, max_base_power or simple_heuristics.")
    if config.game == "gymnasium" and opponent is not None:
        raise ConfigError(f"The game {config.gymnasium.id} has no opponents; leave --opponent out.")
    workers = min(workers, episodes)
    with tempfile.TemporaryDirectory(prefix="simul-eval-") as root:
        match = Match(RunDir(root), config, folder, opponent, _shares(episodes, workers), command, quiet=as_json)
        figures = match.play()
    result = result_of(figures, opponent, episodes, checkpoint=folder, version=match.policy_version)
    sys.stdout.write((msgspec.json.encode(result).decode() if as_json else in_words(result)) + "\n")
    return 0 if result["episodes"] == episodes else 1


class Match:
    """One evaluation: a server, a few workers, until every episode is played."""

    def __init__(
        self, run_dir: RunDir, config: Config, checkpoint: Path, opponent: str | None, shares: list[int],
        command: Command, *, quiet: bool,
    ) -> None:  # fmt: skip
        self._run_dir = run_dir
        self._config = config
        self._checkpoint = checkpoint
        self._opponent = opponent
        self._shares = shares
        self._command = command
        self._quiet = quiet
        self._state = RunState()
        self._fleet = Fleet(run_dir, self._state, command)
        self._codec: Codec[Report] = Codec(TO_SUPERVISOR)
        self._signals = Signals()

    @property
    def policy_version(self) -> float | None:
        """Version of the weights that played."""
        return number(self._state.totals("inference_server"), "policy_version")

    def play(self) -> Metrics:
        """Figures of all workers, after the last episode."""
        self._run_dir.create()
        self._run_dir.write_config(self._config)
        self._run_dir.write_spec(ask_for_spec(self._config, self._command))
        self._signals.install()
        self._socket = PullSocket(self._run_dir.endpoint("status"))
        self._poller = Poller([self._socket])
        with self._socket:
            try:
                self._start_server()
                self._play_out()
                self._fleet.stop("inference_server", STOP_SEC, self._turn)
            finally:
                self._fleet.kill_all()
                self._signals.restore()
        return self._state.totals("env_worker")

    def _start_server(self) -> None:
        extra = ["--checkpoint", str(self._checkpoint)]
        self._fleet.start("inference_server", 1, self._config.server.threads, [extra])
        deadline = time.monotonic() + SERVER_LIMIT_SEC
        while not self._fleet.ready("inference_server"):
            self._fleet.check_alive()
            if time.monotonic() > deadline:
                raise RoleDied(f"The inference server did not become ready within {SERVER_LIMIT_SEC:.0f} s.", 1)
            self._turn()

    def _play_out(self) -> None:
        extra = ["--greedy", *(["--opponent", self._opponent] if self._opponent else [])]
        arguments = [["--episodes", str(share), *extra] for share in self._shares]
        self._fleet.start("env_worker", len(self._shares), 1, arguments)
        shown_at = time.monotonic()
        while (playing := self._playing()) or self._turn():
            self._turn()
            if time.monotonic() - shown_at >= SHOW_EVERY_SEC and not self._quiet:
                shown_at = time.monotonic()
                done = number(self._state.totals("env_worker"), "episodes", "finished") or 0
                sys.stderr.write(f"{done:.0f} of {sum(self._shares)} played, {playing} workers at it\n")

    def _playing(self) -> int:
        """Workers that have not finished. Raises RoleDied where one failed, or the server did."""
        playing = 0
        for (role, _), place in self._fleet.places.items():
            code = place.child.exit_code()
            if role == "env_worker" and code in (None, 0):
                playing += code is None
            elif code is not None:
                self._fleet.check_alive()
        return playing

    def _turn(self) -> bool:
        """Take what was reported; True while there was something. Raises RoleDied on Ctrl-C."""
        if self._signals.stop:
            raise RoleDied("The evaluation was interrupted.", 130)
        taken = False
        while (frames := self._socket.receive()) is not None:
            report, _ = self._codec.decode(frames)
            self._state.receive(report, time.monotonic())
            taken = True
        self._poller.wait(0.1)
        return taken


def _shares(episodes: int, workers: int) -> list[int]:
    return [episodes // workers + (index < episodes % workers) for index in range(workers)]
