"""The curves of one run: what a `metrics_callback` returns is part of them."""

from __future__ import annotations

import csv

from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from simul.common.config.schema import Config
from simul.common.role.run_directory import RunDir
from simul.launch.supervisor import run_curves
from simul.launch.supervisor.run_curves import RunCurves
from tests.support.recorded_run import snapshot
from tests.support.waiting import wait_for


def test_what_the_callback_returns_reaches_curves_tensorboard_and_the_view(tmp_path, monkeypatch):
    """A return is in the next report; that of the last report is a row of its own."""
    monkeypatch.setattr(run_curves, "load_callback", lambda *given, **named: lambda each: {"mine/x": each["decisions"]})
    run_dir = RunDir(tmp_path)
    run_dir.create()
    curves = RunCurves(run_dir, Config(metrics=("csv", "tensorboard"), metrics_callback="mine:callback"))
    _, first = curves.record(snapshot(1.0))
    assert curves.write(first) == []
    wait_for(lambda: curves.record(snapshot(1.0))[0].callback_figures)  # no report is due
    _, second = curves.record(snapshot(3.0))
    assert second is not None
    assert curves.write(second) == []
    assert curves.close(lambda: False) == []
    with (tmp_path / "curves.csv").open() as file:
        rows = [(row["decisions"], row["mine/x"]) for row in csv.DictReader(file)]
    assert rows == [("250030", None), ("750030", "250030"), ("750030", "750030")]
    (events,) = (tmp_path / "tensorboard").iterdir()
    values = [(e.step, v.tensor.float_val[0]) for e in EventFileLoader(str(events)).Load() for v in e.summary.value
              if v.tag == "mine/x"]  # fmt: skip
    assert values == [(750_030, 250_030.0), (750_030, 750_030.0)]
