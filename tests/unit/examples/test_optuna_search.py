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
    number = 3

    def __init__(self, prunes_at=None):
        self.reports, self._prunes_at = {}, prunes_at

    def suggest_float(self, name, low, high, log=False):
        return low

    suggest_int = suggest_float

    def suggest_categorical(self, name, choices):
        return choices[0]

    def report(self, value, step):
        assert step not in self.reports
        self.reports[step] = value

    def should_prune(self):
        return max(self.reports) == self._prunes_at


class Run:
    """Shows 250 more decisions at each look, to 1000."""

    run_dir = Path("runs/x")

    def __init__(self):
        self.looks = self.ended = 0

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
def example(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", types.SimpleNamespace(TrialPruned=Pruned))
    module = importlib.import_module("examples.optuna_search")
    monkeypatch.setattr(module, "optuna", types.SimpleNamespace(TrialPruned=Pruned))
    monkeypatch.setattr(module.time, "sleep", lambda seconds: None)
    return module


def objective(example, monkeypatch, trial):
    run, asked = Run(), {}
    monkeypatch.setattr(simul, "train", lambda config, **settings: asked.update(settings) or run)
    monkeypatch.setattr(simul, "evaluate", lambda folder, **settings: {"mean_return": 42})
    options = argparse.Namespace(config="cartpole", decisions=1000, reports=2, episodes=5, folder=Path("runs"))
    try:
        return example.objective(trial, options), run, asked
    except Pruned:
        return None, run, asked


def test_it_reports_at_the_same_decisions_in_every_trial(example, monkeypatch):
    trial = Trial()
    value, run, asked = objective(example, monkeypatch, trial)
    assert value == 42.0
    assert trial.reports == {1: 50.0, 2: 100.0}
    assert run.ended == 1
    assert asked["run_dir"] == Path("runs/trial-0003")
    assert asked["learner"] == {
        "learning_rate": 1e-4, "entropy_coefficient": 1e-4, "unroll_length": 16, "epochs": 1,
    }  # fmt: skip


def test_a_pruned_trial_stops_its_run(example, monkeypatch):
    trial = Trial(prunes_at=1)
    value, run, _ = objective(example, monkeypatch, trial)
    assert value is None
    assert (run.looks, run.ended) == (2, 1)
