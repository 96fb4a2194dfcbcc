"""The Optuna example without Optuna: what it reports of a run, and that a pruned run is stopped."""

from __future__ import annotations

import argparse
import importlib
import sys
import types
from pathlib import Path

import pytest

import simul


class Pruned(Exception):
    pass


class Trial:
    """Takes the lowest of every setting; told to end at the report `prunes_at`."""

    number = 3

    def __init__(self, prunes_at=None):
        self.reports, self._prunes_at = {}, prunes_at
        self.suggest_int = self.suggest_float = lambda name, low, high, log=False: low
        self.suggest_categorical = lambda name, choices: choices[0]

    def report(self, value, step):
        assert step not in self.reports
        self.reports[step] = value

    def should_prune(self):
        return max(self.reports) == self._prunes_at


class Run:
    """Shows 250 more decisions at each look, to 1000."""

    run_dir = Path("runs/x")
    looks = ended = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ended += 1

    @property
    def running(self):
        return self.looks < 4

    def status(self):
        self.looks += 1
        if self.looks == 1:
            return {}
        done = 250 * self.looks
        return {"server": {"decisions": done}, "workers": {"returns": {"count": 5, "recent_mean": done / 10}}}


@pytest.fixture
def run(monkeypatch):
    """The run that the example starts; `asked`: with which settings."""
    made = Run()
    monkeypatch.setattr(simul, "train", lambda config, **settings: setattr(made, "asked", settings) or made)
    monkeypatch.setattr(simul, "evaluate", lambda folder, **settings: {"mean_return": 42})
    return made


@pytest.fixture
def objective(monkeypatch):
    """The example's, for a trial."""
    monkeypatch.setitem(sys.modules, "optuna", types.SimpleNamespace(TrialPruned=Pruned))
    example = importlib.import_module("examples.optuna_search")
    monkeypatch.setattr(example.time, "sleep", lambda seconds: None)
    options = argparse.Namespace(config="cartpole", decisions=1000, reports=2, episodes=5, folder=Path("runs"))
    return lambda trial: example.objective(trial, options)


def test_it_reports_at_the_same_decisions_in_every_trial(objective, run):
    trial = Trial()
    assert objective(trial) == 42.0
    assert trial.reports == {1: 50.0, 2: 100.0}
    assert run.ended == 1
    assert run.asked["run_dir"] == Path("runs/trial-0003")
    assert run.asked["learner"] == {
        "learning_rate": 1e-4, "entropy_coefficient": 1e-4, "unroll_length": 16, "epochs": 1,
    }  # fmt: skip


def test_a_pruned_trial_stops_its_run(objective, run):
    with pytest.raises(Pruned):
        objective(Trial(prunes_at=1))
    assert (run.looks, run.ended) == (2, 1)
