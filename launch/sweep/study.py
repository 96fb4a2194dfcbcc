"""The study of a sweep: which settings are tried, what came of them, and which are pruned. Only here is optuna.

It lies in study.db of the sweep's folder, so that a sweep that was killed goes on.
"""

from __future__ import annotations

import importlib.util
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from simul.common.errors import ConfigError
from simul.common.runtime.extras import install_extra
from simul.launch.sweep.space import Dimension

if TYPE_CHECKING:
    from optuna import Trial
    from optuna.trial import FrozenTrial

DATABASE = "study.db"
STARTUP_TRIALS = 4  # that must have finished: the median of fewer says little
WARMUP_STEPS = 2  # step of a trial's evaluations from which on it may be pruned; the first is 1
ENOUGH = 5  # finished trials, of which the importance of keys is asked
MOST_SEED = 2**32 - 1
State = Literal["running", "finished", "pruned", "failed"]


@dataclass(frozen=True)
class Tried:
    """A trial as it is kept. `values`: by key, as written; `score`: None before it finished; `steps`: (step, score)."""

    number: int
    state: State
    values: dict[str, Any]
    score: float | None
    steps: tuple[tuple[int, float], ...] = ()
    why: str = ""
    settings: tuple[str, ...] = field(default=())


def check_installed() -> None:
    """Raises ConfigError."""
    if importlib.util.find_spec("optuna") is None:
        raise ConfigError(
            f"`simul sweep` needs the package optuna, which is not installed. Run: {install_extra('sweep')}"
        )


class SweepStudy:
    """Made where there is none. Not for several threads."""

    def __init__(self, folder: Path, space: Sequence[Dimension], seed: int, pruner: str) -> None:
        import optuna
        from sqlalchemy.exc import SQLAlchemyError

        file = folder.absolute() / DATABASE
        if unfit := next((sign for sign in "?%" if sign in str(file)), ""):
            raise ConfigError(
                f"The path {file} has a {unfit}, which the address of a database cannot hold. Choose another --study."
            )
        self._optuna = optuna
        self._space = space
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        pruners = {
            "median": lambda: optuna.pruners.MedianPruner(STARTUP_TRIALS, WARMUP_STEPS),
            "halving": lambda: optuna.pruners.SuccessiveHalvingPruner(),
            "none": lambda: optuna.pruners.NopPruner(),
        }
        try:
            self._study = optuna.create_study(
                study_name="sweep", storage=f"sqlite:///{file}", load_if_exists=True, direction="maximize",
                pruner=pruners[pruner](),
            )  # fmt: skip
            begun = self._study.get_trials(deepcopy=False)
        except (SQLAlchemyError, RuntimeError) as error:
            cause = getattr(error, "orig", None) or error
            raise ConfigError(
                f"{file} cannot be used: {cause}. Choose another --study, or remove the folder."
            ) from None
        self.begun = len(begun)  # trials so far
        self._check_values(begun, file)
        # A sweep that goes on must not draw the same again.
        self._study.sampler = optuna.samplers.TPESampler(seed=(seed + self.begun) % MOST_SEED)
        self._open: dict[int, Trial] = {}
        self._halving = pruner == "halving"
        self._newest: dict[int, tuple[int, float]] = {}  # (step, score) of open trials

    def _check_values(self, trials: Sequence[FrozenTrial], file: Path) -> None:
        """Raises ConfigError for values that the space does not have: the file is data, which may name no code."""
        for dimension in self._space:
            for value in (trial.params[dimension.key] for trial in trials if dimension.key in trial.params):
                if value not in dimension.choices if dimension.choices else isinstance(value, str):
                    raise ConfigError(
                        f"{file} holds {dimension.key}={value}, which the space does not have. Choose another --study, "
                        "or remove the folder."
                    )

    def trials(self) -> list[Tried]:
        """All, in the order in which they began."""
        return [self._tried(frozen) for frozen in self._study.get_trials(deepcopy=False)]

    def resume(self) -> list[tuple[int, list[str]]]:
        """(number, settings) of those that were running when the last sweep here ended: they are open again."""
        running = self._optuna.trial.TrialState.RUNNING
        left = [frozen for frozen in self._study.get_trials(deepcopy=False) if frozen.state == running]
        for frozen in left:
            if frozen.intermediate_values:
                self._newest[frozen.number] = max(frozen.intermediate_values.items())
        return [self._begin(self._optuna.Trial(self._study, frozen._trial_id)) for frozen in left]

    def ask(self) -> tuple[int, list[str]]:
        """(number, settings) of a new one, which is open."""
        self.begun += 1
        return self._begin(self._study.ask())

    def report(self, number: int, step: int, score: float) -> bool:
        """An evaluation of an open trial, new or not; true where it falls behind the others and is to be stopped.

        A step that was skipped, because the evaluation before it took longer, has the score of the step before. The
        median judges a trial at its own evaluations alone. A rung of halving, which would take the later score of a
        trial that skipped it, judges by the score before.
        """
        if not self.is_new(number, step):
            return False
        trial = self._open[number]
        last, before = self._newest.get(number, (step - 1, score))
        self._newest[number] = step, score
        for missing in range(last + 1, step):
            trial.report(before, missing)
            if self._halving and trial.should_prune():
                return True
        trial.report(score, step)
        return trial.should_prune()

    def is_new(self, number: int, step: int) -> bool:
        """Whether the open trial has reported no evaluation of this step or a later one."""
        return number not in self._newest or step > self._newest[number][0]

    def finish(self, number: int, score: float) -> None:
        """Close a trial with its objective."""
        self._study.tell(self._open.pop(number), score)

    def prune(self, number: int) -> None:
        """Close a trial that fell behind."""
        self._study.tell(self._open.pop(number), state=self._optuna.trial.TrialState.PRUNED)

    def fail(self, number: int, why: str) -> None:
        """Close a trial without an objective."""
        trial = self._open.pop(number)
        trial.set_user_attr("why", why)
        self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)

    def best(self) -> Tried | None:
        """The finished one of the highest score; None where none is finished."""
        finished = [(tried.score, tried) for tried in self.trials() if tried.score is not None]
        return max(finished, key=lambda each: each[0], default=(0.0, None))[1]

    def importances(self) -> dict[str, float]:
        """Share of each key in how scores differ (PED-ANOVA), the greatest first; {} where too few trials say it."""
        if sum(tried.score is not None for tried in self.trials()) < ENOUGH:
            return {}
        evaluator = self._optuna.importance.PedAnovaImportanceEvaluator
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # experimental
                found = self._optuna.importance.get_param_importances(self._study, evaluator=evaluator())
        except (ValueError, RuntimeError):
            return {}
        return {name: float(share) for name, share in found.items() if math.isfinite(share)}

    def _begin(self, trial: Trial) -> tuple[int, list[str]]:
        """Open it, with one value of each dimension; those that it has already stay."""
        self._open[trial.number] = trial
        return trial.number, [each.setting(_suggested(trial, each)) for each in self._space]

    def _tried(self, frozen: FrozenTrial) -> Tried:
        states = self._optuna.trial.TrialState
        names: dict[Any, State] = {states.COMPLETE: "finished", states.PRUNED: "pruned", states.FAIL: "failed"}
        state = names.get(frozen.state, "running")
        values = dict(frozen.params)
        return Tried(
            frozen.number, state, values, frozen.value if state == "finished" else None,
            tuple(sorted(frozen.intermediate_values.items())), str(frozen.user_attrs.get("why", "")),
            tuple(each.setting(values[each.key]) for each in self._space if each.key in values),
        )  # fmt: skip


def _suggested(trial: Trial, dimension: Dimension) -> object:
    key, low, step = dimension.key, dimension.low, dimension.step
    high = dimension.high if step is None else _last_step(low, dimension.high, step)
    if dimension.choices:
        return trial.suggest_categorical(key, dimension.choices)
    if dimension.whole:
        return trial.suggest_int(key, int(low), int(high), log=dimension.log, step=int(step or 1))
    return trial.suggest_float(key, low, high, log=dimension.log, step=step)


def _last_step(low: float, high: float, step: float) -> float:
    """The greatest value of a range; optuna counts like this, and warns where `high` is another one."""
    first, last, each = (Decimal(str(value)) for value in (low, high, step))
    return type(high)(first + (last - first) // each * each)
