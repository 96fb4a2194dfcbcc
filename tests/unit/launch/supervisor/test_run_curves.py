"""The curves of one run: what a `metrics_callback` returns is part of them."""

from __future__ import annotations

import csv

from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from simul.common.config.schema import Config
from simul.common.role.run_directory import RunDir
from simul.launch.supervisor import run_curves
from simul.launch.supervisor.run_curves import RunCurves
from tests.support.league import write_league
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
    values = tensorboard_values(tmp_path, "mine/x")
    assert values == [(750_030, 250_030.0), (750_030, 750_030.0)]


def tensorboard_values(root, tag: str) -> list[tuple[int, float]]:
    (events,) = (root / "tensorboard").iterdir()
    return [(e.step, v.tensor.float_val[0]) for e in EventFileLoader(str(events)).Load() for v in e.summary.value
            if v.tag == tag]  # fmt: skip


def test_a_league_that_was_played_reaches_curves_tensorboard_and_the_view_and_a_damaged_one_is_said_once(tmp_path):
    run_dir = RunDir(tmp_path)
    run_dir.create()
    curves = RunCurves(run_dir, Config(metrics=("csv", "tensorboard")))
    write_league(tmp_path)
    reports = []

    def rated(figure: str = "league/elo/learner") -> bool:
        shown, report = curves.record(snapshot(1.0))
        assert curves.write(report) == []
        reports.append(report)
        return figure in shown.figures

    wait_for(rated)
    assert reports[-1] is not None, "due at once"
    later, report = curves.record(snapshot(3.0))
    assert report is not None
    assert "league/elo/learner" not in report.figures
    assert later.figures["league/policy_version"] == 300, "the view goes on to show it"
    assert curves.write(report) == []
    (tmp_path / "league.json").write_text("[]")
    curves._league_file._look_at = 0.0
    said: list[str] = []
    wait_for(lambda: said.extend(curves.write(curves.record(snapshot(3.1))[1])) or said)
    assert len(said) == 1
    assert said[0].endswith("The curves go on without it.")
    assert curves.write(curves.record(snapshot(3.2))[1]) == []
    assert curves.close(lambda: False) == []
    with (tmp_path / "curves.csv").open() as file:
        rows = list(csv.DictReader(file))
    (rated_row,) = [row for row in rows if row["league/rank"]]
    assert (rated_row["league/policy_version"], rated_row["league/rank"]) == ("300", "3")
    assert (rated_row["league/win_rate/learner/past_200"], rated_row["league/win_rate_low/learner/past_200"][:5]) == (
        "0.75", "0.656",
    )  # fmt: skip
    assert [value for _, value in tensorboard_values(tmp_path, "league/win_rate/learner/past_200")] == [0.75]
