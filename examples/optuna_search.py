"""A search over settings of the learner with Optuna: each trial is a run, and unpromising ones are ended early.

    pip install optuna
    python examples/optuna_search.py --trials 20

The study is kept in FOLDER/study.db, the runs beside it; the same command again goes on where it ended.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import optuna

import simul


def suggested(trial: optuna.Trial) -> dict[str, Any]:
    """Settings above those of the configuration, one value for each from the trial."""
    return {
        "learning_rate": trial.suggest_float("learning_rate", 1e-4, 1e-2, log=True),
        "entropy_coefficient": trial.suggest_float("entropy_coefficient", 1e-4, 3e-2, log=True),
        "unroll_length": trial.suggest_categorical("unroll_length", [16, 32, 64]),
        "epochs": trial.suggest_int("epochs", 1, 8),
    }


def objective(trial: optuna.Trial, options: argparse.Namespace) -> float:
    """Train, report the recent mean return while it goes on, and return that of greedy episodes."""
    with simul.train(
        options.config, run_dir=options.folder / f"trial-{trial.number:04d}", progress=False,
        stop_after_decisions=options.decisions, learner=suggested(trial),
    ) as run:  # fmt: skip
        reports = 0
        while run.running:
            time.sleep(0.2)
            figures = run.status()
            decisions = figures.get("server", {}).get("decisions", 0)
            returns = figures.get("workers", {}).get("returns", {})
            if returns.get("count") and decisions * options.reports >= (reports + 1) * options.decisions:
                reports = decisions * options.reports // options.decisions  # the same numbers in every trial
                trial.report(returns["recent_mean"], step=reports)
                if trial.should_prune():
                    raise optuna.TrialPruned  # the block's end stops the run
    return float(simul.evaluate(run.run_dir, episodes=options.episodes, progress=False)["mean_return"])


def main() -> None:
    """Search, then print the best settings."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--config", default="cartpole", help="a YAML file or the name of a shipped one")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--decisions", type=int, default=60_000, help="of each trial (default: %(default)s)")
    parser.add_argument("--reports", type=int, default=10, help="to the pruner, of each trial (default: %(default)s)")
    parser.add_argument("--episodes", type=int, default=50, help="greedy, of each trial that was not pruned")
    parser.add_argument("--folder", type=Path, default=Path("runs/optuna"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    study = optuna.create_study(
        study_name="simul", direction="maximize", storage=f"sqlite:///{options.folder.absolute() / 'study.db'}",
        load_if_exists=True, pruner=optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=2),
    )  # fmt: skip
    study.optimize(lambda trial: objective(trial, options), n_trials=options.trials)
    print(f"best mean return {study.best_value:.2f} with {study.best_params}")


if __name__ == "__main__":
    main()
