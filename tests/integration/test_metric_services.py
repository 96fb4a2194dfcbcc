"""Curves in Weights & Biases and MLflow, by their own packages without a network; where these are installed."""

from __future__ import annotations

import time

import pytest

from simul.launch.monitoring.curves.figures import CurveReport
from simul.launch.monitoring.curves.metric_services import mlflow_writer, run_id, wandb_writer

NEVER = lambda: False  # noqa: E731 - nothing is in a hurry
CONFIG = {"seed": 1, "learner": {"clip": 0.2}}


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    monkeypatch.setattr("simul.launch.monitoring.curves.background_writer.FINISH_SEC", 200.0)


def write(writer, *steps):
    """Hand over a report for each step, finish; what the writer has to say."""
    figures = {"episodes/return_mean": 2.5, "dropped/steps/closed": 1.0, "win_rate/random": 0.75}
    said = []
    for step in steps:
        said += writer.write(CurveReport(step, step / 10, time.time(), figures), 0.0)
    return said + writer.close(NEVER)


@pytest.mark.filterwarnings("default")
def test_mlflow_has_one_run_over_two_starts(tmp_path, monkeypatch):
    pytest.importorskip("mlflow")
    from mlflow.tracking import MlflowClient

    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.chdir(tmp_path)
    for steps in ((10, 20), (30,)):
        assert write(mlflow_writer(tmp_path, "key", CONFIG), *steps) == []
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'mlflow.db'}")
    (run,) = client.search_runs([client.get_experiment_by_name("simul").experiment_id])
    assert (run.info.status, run.info.run_name) == ("FINISHED", tmp_path.name)
    assert run.data.params["learner.clip"] == "0.2"
    history = client.get_metric_history(run.info.run_id, "episodes/return_mean")
    assert sorted((row.step, row.value) for row in history) == [(10, 2.5), (20, 2.5), (30, 2.5)]


@pytest.mark.filterwarnings("default")
def test_wandb_writes_offline_and_resumes_under_the_same_id(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    for steps in ((10, 20), (30,)):
        assert write(wandb_writer(tmp_path, "key", CONFIG), *steps) == []
    folders = sorted((tmp_path / "wandb").glob("offline-run-*"))
    assert len(folders) == 2
    for folder in folders:
        (data,) = folder.glob("run-*.wandb")
        assert data.name == f"run-{run_id('key')}.wandb"
        assert b"episodes/return_mean" in data.read_bytes()


def test_a_service_that_does_not_answer_is_dropped_with_a_sentence(tmp_path, monkeypatch):
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:////proc/none/mlflow.db")
    said = write(mlflow_writer(tmp_path, "key", CONFIG), 10)
    assert len(said) == 1
    assert said[0].startswith("mlflow failed and gets no more reports, training goes on: ")
