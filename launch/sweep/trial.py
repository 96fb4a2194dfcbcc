"""One trial of a sweep: a run of its own, `simul up` as a child process, and the evaluations that it makes."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

from simul.common.checkpoints.folders import BEST, RESULT_FILE
from simul.common.checkpoints.meta import checkpoint_folders
from simul.common.config.loader import load_config
from simul.common.config.schema import Config
from simul.common.config.setting_lines import setting_lines
from simul.common.errors import ConfigError, SimulError
from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import living_owner, read_json
from simul.common.runtime.private_files import read_regular
from simul.launch.monitoring.curves.curves_csv import CSV_NAME, past_evaluations
from simul.launch.processes.child_command import ChildCommand
from simul.launch.supervisor.evaluations import BestResult, Evaluations
from simul.launch.supervisor.run_curves import read_position

GOES_ON = " Training goes on."  # of a run; a trial has ended by then
ENOUGH = 0.99  # of a trial's decisions: a run stops a few short of them, or after them


class Plan(NamedTuple):
    """What all trials have in common.

    Attributes:
        overrides: `KEY=VALUE`, below those of a trial.
        own: likewise, above `overrides`: what makes a run a trial. The best configuration is without them.
        decisions: of each trial.
    """

    config: str
    mode: str
    overrides: tuple[str, ...]
    own: tuple[str, ...]
    decisions: int
    folder: Path

    def load(self, settings: Sequence[str] = (), given_in: str = "--set") -> Config:
        """The configuration of a trial. Raises ConfigError."""
        return load_config(self.config, [*self.overrides, *self.own, *settings], self.mode, given_in=given_in)

    def load_best(self, number: int, settings: Sequence[str], run_dir: str) -> Config:
        """The configuration of a run in `run_dir` that is no trial, with the settings of one. Raises ConfigError."""
        above = [*settings, f"stop_after_decisions={self.decisions}", *setting_lines({"run_dir": run_dir})]
        return self.settled(load_config(self.config, [*self.overrides, *above], self.mode), number)

    def settled(self, config: Config, number: int) -> Config:
        """`config` with the opponents of a trial's run, which drops defaults that the game cannot have."""
        try:
            run = self.run_dir(number).read_config()
        except ConfigError:  # its run directory was removed
            return config
        evaluation = msgspec.structs.replace(config.evaluation, opponents=run.evaluation.opponents)
        return msgspec.structs.replace(config, opponents=run.opponents, evaluation=evaluation)

    def run_dir(self, number: int) -> RunDir:
        """Of a trial."""
        return RunDir(self.folder / f"trial-{number:04d}")


@dataclass(frozen=True)
class Evaluation:
    """One evaluation while a trial trained. `step`: counts `evaluation.every_decisions`, so that trials compare."""

    step: int
    score: float
    policy_version: int


class TrialRun:
    """`start` once, then `poll` until `over`; then `score`, or `fault` where there is none and it was not stopped."""

    def __init__(self, plan: Plan, number: int, settings: Sequence[str]) -> None:
        self.number = number
        self.fault = ""
        self.said: list[str] = []  # by its last evaluation
        self.over = False
        self.stopping = False  # asked to end early
        self._plan = plan
        self._settings = tuple(settings)
        self._run_dir = plan.run_dir(number)
        self._config = Config()
        self._child: ChildCommand | None = None
        self._last: Evaluations | None = None  # of the newest checkpoint, once the run has ended
        self._found: list[Evaluation] = []
        self._read_at = (0, 0)  # size and time of the curves that they were found in

    @property
    def free(self) -> bool:
        """Whether no process of an earlier sweep is still stopping in its run directory."""
        return living_owner(self._run_dir) is None

    @property
    def decisions(self) -> int:
        """Answered so far."""
        return int(read_json(self._run_dir, "status.json").get("run_decisions") or 0)

    def start(self) -> str:
        """Begin or resume the run; returns which, as the rest of a sentence."""
        try:
            self._config = self._plan.load(self._settings)
        except ConfigError as error:
            self._fail(" ".join(str(error).split()))
            return "has settings that do not fit together"
        before, words = 0, "begins"
        if self._run_dir.exists():
            if checkpoint_folders(self._run_dir.checkpoints):
                before = int(read_position(self._run_dir).decisions)
                words = f"is resumed at {before:,} decisions"
            else:
                shutil.rmtree(self._run_dir.root, ignore_errors=True)
                words = "begins again: it had no checkpoint yet"
        if before < ENOUGH * self._plan.decisions:
            plan = self._plan
            settings = [*plan.overrides, *plan.own, *self._settings, f"stop_after_decisions={plan.decisions - before}"]
            line = ["up", self._plan.config, "--mode", self._plan.mode, "--plain", "--run-dir", str(self._run_dir.root)]
            line += [word for each in settings for word in ("--set", each)]
            self._child = ChildCommand(line, False, environment={"SIMUL_NOTIFY": ""})
        return words

    def evaluations(self) -> list[Evaluation]:
        """Those in the run's curves so far, which are read where they have changed."""
        every = self._config.evaluation.every_decisions
        if not every:  # its settings do not fit together
            return []
        try:
            file = (self._run_dir.root / CSV_NAME).stat()
        except OSError:
            return []
        if (file.st_size, file.st_mtime_ns) == self._read_at:
            return self._found
        self._read_at, self._found = (file.st_size, file.st_mtime_ns), []
        for each in past_evaluations(self._run_dir.root):
            with contextlib.suppress(KeyError, ValueError):  # a row that is not whole
                step = max(round(each["decisions_learned"] / every), 1)
                self._found.append(Evaluation(step, each["score"], int(each["policy_version"])))
        return self._found

    def poll(self) -> None:
        """Called often: notices the run's end, and evaluates its newest checkpoint then."""
        if self.over:
            return
        if self._child is not None:
            if self._child.running:
                return
            child, self._child = self._child, None
            child.wait()
            if self.stopping:
                self.over = True
                return
            try:
                child.check()
            except SimulError as error:
                self._fail(str(error).rpartition("simul: ")[2])  # after the lines of the run
                return
            answered, wanted = read_position(self._run_dir).decisions, self._plan.decisions
            if answered < ENOUGH * wanted:
                self._fail(f"it was stopped at {answered:,.0f} of {wanted:,} decisions")
                return
        if self._last is None:
            self._begin_last_evaluation()
        elif not self._last.running or self._last.poll(0.0):
            self.over = True
        if self.over and self.score is None:
            self.fault = self.said.pop() if self.said else "it was never evaluated"

    def _begin_last_evaluation(self) -> None:
        newest = next(iter(checkpoint_folders(self._run_dir.checkpoints)), None)
        versions = [each.policy_version for each in self.evaluations()]
        if newest is None or int(newest.name) in versions:
            self.over = True
            return
        config = self._plan.settled(self._config, self.number)
        self._last = Evaluations(config, self._run_dir, 0.0, lambda said: self.said.append(said.removesuffix(GOES_ON)))
        self._last.poll(float(config.evaluation.every_decisions))

    @property
    def score(self) -> float | None:
        """Of the best evaluated checkpoint; None where none was evaluated."""
        try:
            data = read_regular(self._run_dir.checkpoints / BEST / RESULT_FILE)
            return msgspec.json.decode(data, type=BestResult).score
        except (OSError, msgspec.MsgspecError):
            return None

    def stop(self) -> None:
        """Ask the run to end, with a checkpoint, so that it can be resumed; the second time: at once.

        It has ended once `poll` has set `over`.
        """
        self.stopping = True
        if self._child is not None:
            self._child.ask_to_stop()
            return
        self.over = True
        if self._last is not None:
            self._last.close()
            self._last = None

    def _fail(self, why: str) -> None:
        self.over, self.fault = True, why
