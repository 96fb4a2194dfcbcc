"""`simul sweep`: trials of settings, each a run of its own, several at a time; the bad ones end early."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from simul.common.config.loader import load_config
from simul.common.config.schema import Config
from simul.common.config.setting_lines import setting_lines
from simul.common.errors import ConfigError, SimulError
from simul.common.runtime.file_lock import hold_lock
from simul.common.runtime.machine_limits import usable_cores
from simul.common.runtime.private_files import read_regular, replace_file
from simul.launch.processes.signals import Signals
from simul.launch.sweep.network_check import check_networks
from simul.launch.sweep.report import SweepView, write_best
from simul.launch.sweep.space import Dimension, check_space, read_space
from simul.launch.sweep.study import DATABASE, ENOUGH, WARMUP_STEPS, SweepStudy, check_installed
from simul.launch.sweep.trial import Plan, TrialRun

EVALUATIONS = 10  # of a trial, where the configuration does not say how often
TOGETHER = "sweep.json"  # what all trials have in common
LOCK = "sweep.lock"
CHECKPOINT_EVERY_SEC = 10.0  # at most: an evaluation is of a checkpoint
POLL_SEC = 0.2
MOST_FAILED = 3  # trials in a row
INTERRUPTED = 130
STOPPING = "stopping: the trials that run save, to be resumed (Ctrl-C again: now)"
OWN_PLACE = ("store=''", "server.endpoint=''", "server.prometheus_port=0", "prometheus_port=0")  # of each trial


class SweepOptions(NamedTuple):
    """Of the command line. `decisions`: of each trial; None: the configuration says it."""

    config: str
    space: Path
    trials: int
    folder: Path
    mode: str = "default"
    overrides: tuple[str, ...] = ()
    decisions: int | None = None
    parallel: int = 1
    pruner: str = "median"


def sweep(options: SweepOptions) -> int:
    """Search until so many trials have ended; returns the exit code.

    A sweep in the same folder that was stopped or killed goes on.

    Raises:
        ConfigError: a sentence says what to change; nothing was started.
        SimulError: no trial finished, several in a row failed, or the best could not be written.
    """
    check_installed()
    if options.parallel > (cores := max(int(usable_cores()), 1)):
        raise ConfigError(
            f"--parallel {options.parallel}: a trial needs a core at least, and {cores} can be used here."
        )
    space = read_space(options.space)
    plan, config = _plan(options)
    check_space(space, lambda setting: plan.load([setting], "the space"), str(options.space))
    check_networks(plan, config, space, str(options.space))
    refusal = f"A sweep goes on in {options.folder}. Wait for it, stop it, or choose another --study."
    with ExitStack() as until_done:
        try:
            options.folder.mkdir(parents=True, exist_ok=True)
            until_done.enter_context(hold_lock(options.folder / LOCK, refusal))
            _check_same(options.folder, config, space, options.pruner)
        except OSError as error:
            raise ConfigError(
                f"{options.folder} cannot be written: {error.strerror}. Choose another --study."
            ) from None
        study = SweepStudy(options.folder, space, config.seed, options.pruner)
        if not study.begun and next(options.folder.glob("trial-[0-9]*"), None):
            raise ConfigError(
                f"{options.folder} holds runs of a study whose {DATABASE} is gone: they would be taken for trials "
                "of the new one. Choose another --study, or remove the folder."
            )
        return _Sweep(options, plan, study, config.evaluation.every_decisions).run()


def _plan(options: SweepOptions) -> tuple[Plan, Config]:
    """What all trials have in common, and their configuration. Raises ConfigError."""
    given = load_config(options.config, options.overrides, options.mode)
    decisions = given.stop_after_decisions if options.decisions is None else options.decisions
    if not decisions:
        raise ConfigError(
            "Every trial must end, and the configuration trains until Ctrl-C: say --stop-after-decisions 60000, or as "
            "many as a trial needs."
        )
    every = given.evaluation.every_decisions or max(decisions // EVALUATIONS, 1)
    metrics = list(dict.fromkeys([*given.metrics, "csv"]))  # the evaluations are read from curves.csv
    every_sec = min(given.learner.checkpoint_every_sec, CHECKPOINT_EVERY_SEC)
    own = setting_lines(
        {"evaluation.every_decisions": every, "metrics": metrics, "learner.checkpoint_every_sec": every_sec}
    )
    folder = options.folder.absolute()
    plan = Plan(options.config, options.mode, options.overrides, (*own, *OWN_PLACE), decisions, folder)
    config = plan.load([f"stop_after_decisions={decisions}"])
    return plan, config


def _check_same(folder: Path, config: Config, space: Sequence[Dimension], pruner: str) -> None:
    """Raises ConfigError where the sweep in the folder began with other settings; a new one's are kept."""
    settings = msgspec.to_builtins(msgspec.structs.replace(config, run_dir=""))
    now = json.loads(json.dumps({"pruner": pruner, "space": [msgspec.to_builtins(each) for each in space], **settings}))
    file = folder / TOGETHER
    try:
        before = json.loads(read_regular(file))
    except FileNotFoundError:
        replace_file(file, json.dumps(now, indent=2).encode())
        return
    except (ValueError, RecursionError):
        before = None
    if not isinstance(before, dict):
        raise ConfigError(f"{file} is damaged. Choose another --study, or remove {folder}.")
    if changed := _first_difference(before, now):
        raise ConfigError(
            f"The sweep in {folder} began with {changed}: trials of both do not compare. Use the former settings, or "
            "choose another --study."
        )


def _first_difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    """`learner.clip=0.2, and it is 0.1 now`; "" where there is none."""
    if before.get("space") != now["space"]:
        return "another space"
    old, new = ({line.partition("=")[0]: line for line in setting_lines(tree)} for tree in (before, now))
    for key in [*new, *old]:
        if old.get(key) != new.get(key):
            value = new[key].partition("=")[2] if key in new else "not set"
            return f"{old.get(key, f'no {key}')}, and it is {value} now"
    return ""


class _Sweep:
    """The loop: starts trials, hears of their evaluations, prunes, and shows how far they are."""

    def __init__(self, options: SweepOptions, plan: Plan, study: SweepStudy, every: int) -> None:
        """`every`: decisions from one evaluation of a trial to the next."""
        self._options = options
        self._plan = plan
        self._study = study
        self._every = every
        self._view = SweepView(options.trials, plan.decisions)
        self._running: list[TrialRun] = []
        self._failed_in_a_row = 0
        self._gave_up = ""  # why the sweep ends before its trials have ended

    def run(self) -> int:
        """The exit code. Raises SimulError."""
        signals = Signals()
        signals.install()
        waiting = list(self._study.resume())
        if self._options.pruner == "median" and WARMUP_STEPS * self._every > self._plan.decisions:
            self._view.say(
                f"no trial will be pruned: evaluation.every_decisions {self._every} is above half of a trial's "
                f"{self._plan.decisions} decisions, and the median judges from evaluation {WARMUP_STEPS} on"
            )
        try:
            while not signals.stop and self._fill(waiting, lambda: signals.stop):
                for trial in list(self._running):
                    self._step(trial)
                learning = [each for each in self._running if not each.stopping]
                self._view.update(self._study.trials, {each.number: each.decisions for each in learning})
                time.sleep(POLL_SEC)
        finally:
            self._stop_trials(signals)
            self._view.close(self._study.trials())
            signals.restore()
        return self._end(stopped=signals.stop)

    def _stop_trials(self, signals: Signals) -> None:
        """Ask all that run to save and end, then wait for them; from a second signal on they end at once."""
        if self._running:
            self._view.say(STOPPING)
        for trial in self._running:
            if not trial.stopping:
                trial.stop()
        while not all(trial.over for trial in self._running):
            for trial in self._running:
                if signals.now:
                    trial.stop()
                trial.poll()
            time.sleep(POLL_SEC)

    def _fill(self, waiting: list[tuple[int, list[str]]], stopped: Callable[[], bool]) -> bool:
        """Start what there is room for; false where nothing is left to do, or too many failed.

        `waiting`: (number, settings) of trials to resume; those that are started are removed.
        """
        while len(self._running) < self._options.parallel and not stopped():
            if not waiting and self._study.begun >= self._options.trials:
                break
            if self._failed_in_a_row >= MOST_FAILED:
                self._gave_up = f"{MOST_FAILED} trials in a row failed, and the sweep ends.{self._last_fault()}"
                return False
            if not waiting:
                waiting.append(self._study.ask())
            number, settings = waiting[0]
            trial = TrialRun(self._plan, number, settings)
            if not trial.free:  # its former processes still save
                return True
            waiting.pop(0)
            self._view.say(f"trial {number} {trial.start()}: {', '.join(settings)}")
            self._running.append(trial)
        return bool(self._running)

    def _step(self, trial: TrialRun) -> None:
        trial.poll()
        if trial.stopping:  # pruned
            if trial.over:
                self._running.remove(trial)
            return
        for each in trial.evaluations():
            if self._study.is_new(trial.number, each.step):
                self._view.say(f"trial {trial.number}: evaluation {each.step}, score {each.score:.4g}")
            if self._study.report(trial.number, each.step, each.score) and not trial.over:
                trial.stop()
                self._study.prune(trial.number)
                self._view.say(f"trial {trial.number} is pruned: it falls behind")
                self._failed_in_a_row = 0
                return
        if trial.over:
            self._close(trial)

    def _close(self, trial: TrialRun) -> None:
        self._running.remove(trial)
        for sentence in trial.said:
            self._view.say(f"trial {trial.number}: {sentence}")
        score = trial.score
        if trial.fault or score is None:
            self._study.fail(trial.number, trial.fault)
            self._view.say(f"trial {trial.number} failed: {trial.fault}")
            self._failed_in_a_row += 1
        else:
            self._study.finish(trial.number, score)
            self._view.say(f"trial {trial.number} finished: score {score:.4g}")
            self._failed_in_a_row = 0

    def _end(self, *, stopped: bool) -> int:
        best, folder = self._study.best(), self._options.folder
        if stopped:
            self._view.say("stopped: the same command goes on with it")
        if best is None:
            if stopped:
                return INTERRUPTED
            pruned = sum(each.state == "pruned" for each in self._study.trials())
            raise SimulError(self._gave_up or f"No trial finished; {pruned} were pruned.{self._last_fault()}")
        from simul.launch.sweep.picture import draw_picture  # only here: it imports matplotlib

        shares = self._study.importances()
        try:
            file = write_best(folder, self._plan, best, self._study.begun)
            picture = draw_picture(folder, self._study.trials(), shares)
        except OSError as error:
            why = f"{folder} cannot be written: {error.strerror}"
            raise SimulError(f"{why}. Make room: the same command writes the best trial then.") from None
        mattered = ", ".join(f"{key} {share:.0%}" for key, share in shares.items())
        self._view.say(f"what mattered: {mattered or f'too few trials finished to say, {ENOUGH} are needed'}")
        self._view.say(f"best: trial {best.number}, score {best.score:.4g}: {', '.join(best.settings)}")
        self._view.say(f"written: {file} (simul up {file}), {picture}")
        if self._gave_up:
            raise SimulError(self._gave_up)
        return INTERRUPTED if stopped else 0

    def _last_fault(self) -> str:
        failed = [each for each in self._study.trials() if each.state == "failed"]
        return f" Trial {failed[-1].number}: {failed[-1].why}" if failed else ""
