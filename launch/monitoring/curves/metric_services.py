"""Curves of a run in services: Weights & Biases, MLflow."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from simul.common.runtime.private_files import open_to_append
from simul.launch.monitoring.curves.background_writer import BackgroundWriter, Write
from simul.launch.monitoring.curves.figures import CurveReport

ATTEMPTS = 3  # to hand a report to a service, 1 s and 2 s apart; then the service is dropped


def wandb_writer(root: Path, run_key: str, config: Mapping[str, Any]) -> BackgroundWriter:
    """Weights & Biases (extra `[wandb]`): a run named after the run directory, resumed with it.

    Its own variables apply: WANDB_MODE=offline, WANDB_PROJECT (default: simul), WANDB_ENTITY.

    Args:
        run_key: identifies the run directory for as long as it exists.
        config: settings of the run, shown beside its curves.
    """

    def start() -> tuple[Write, Callable[[], None]]:
        import wandb

        run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "simul"), name=root.name, id=run_id(run_key), resume="allow",
            dir=str(root), config=dict(config), settings=wandb.Settings(console="off", silent=True),
        )  # fmt: skip

        def write(report: CurveReport) -> None:
            run.log({**report.figures, "training_sec": report.training_sec}, step=report.decisions)

        return write, run.finish

    return BackgroundWriter("wandb", start, ATTEMPTS)


def mlflow_writer(root: Path, run_key: str, config: Mapping[str, Any]) -> BackgroundWriter:
    """MLflow (extra `[mlflow]`): a run named after the run directory, in the experiment `simul`, resumed with it.

    MLFLOW_TRACKING_URI applies; without it the run is in `mlflow.db` of the run directory. MLFLOW_EXPERIMENT_NAME names
    another experiment. Arguments as for `wandb_writer`.
    """

    def start() -> tuple[Write, Callable[[], None]]:
        from mlflow.entities import Metric, Param
        from mlflow.tracking import MlflowClient

        uri = os.environ.get("MLFLOW_TRACKING_URI", "")
        if not uri:
            os.close(open_to_append(root / "mlflow.db"))  # raises for a link, which SQLite follows
            uri = f"sqlite:///{root / 'mlflow.db'}"
        client = MlflowClient(tracking_uri=uri)
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "simul")
        found = client.get_experiment_by_name(name)
        experiment = found.experiment_id if found is not None else client.create_experiment(name)
        key = run_id(run_key)
        earlier = client.search_runs([experiment], f"tags.`simul.run` = '{key}'", max_results=1)
        if earlier:
            mlflow_run = earlier[0].info.run_id
            client.update_run(mlflow_run, status="RUNNING")
        else:
            mlflow_run = client.create_run(experiment, tags={"simul.run": key}, run_name=root.name).info.run_id
            params = [Param(name, str(value)[:500]) for name, value in _flat(config)]
            client.log_batch(mlflow_run, params=params[:100])  # MLflow's limit of one request

        def write(report: CurveReport) -> None:
            at_ms = round(report.time * 1000)
            figures = {**report.figures, "training_sec": report.training_sec}
            rows = [Metric(name, value, at_ms, report.decisions) for name, value in figures.items()]
            client.log_batch(mlflow_run, metrics=rows)

        return write, lambda: client.set_terminated(mlflow_run)

    return BackgroundWriter("mlflow", start, ATTEMPTS)


def run_id(run_key: str) -> str:
    """Identifies a run directory in services: 16 hex digits that tell nothing about its key."""
    return hashlib.sha256(f"curves/{run_key}".encode()).hexdigest()[:16]


def _flat(tree: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value
