"""Rates of a run that is resumed at ten million decisions: what they count, and over which time."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from simul.common.config.schema import Config
from simul.common.protocol.messages import Report
from simul.common.role.run_directory import RunDir
from simul.launch.monitoring import snapshot as module
from simul.launch.monitoring.curves.figures import CurvePosition, CurveRecorder
from simul.launch.monitoring.snapshot import RunMonitor
from simul.launch.monitoring.summary import summarise
from simul.launch.monitoring.view.figure_texts import format_rate
from simul.launch.processes.process_group import ProcessGroup
from simul.launch.processes.role_reports import OLDEST_SEC, RoleReports

BEFORE = 10_000_000  # decisions of earlier starts
READY_AT = 7.3
PER_SEC = {"decisions": 3000.0, "batches": 30.0, "episodes": 12.0}


class Run:
    """A run that is played here: idle until READY_AT, then steady. Reports come every 0.5 s and arrive late."""

    def __init__(self, tmp_path, monkeypatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(module, "time", SimpleNamespace(
            monotonic=lambda: self.now, time=lambda: self.now, strftime=lambda _: ""
        ))  # fmt: skip
        self.reports = RoleReports()
        group = ProcessGroup(RunDir(tmp_path), self.reports)
        self.monitor = RunMonitor(str(tmp_path), self.reports, group, "gymnasium")
        self.recorder = CurveRecorder(CurvePosition(BEFORE, 100.0))
        self.silent = self.searches = False
        self.found = []  # (snapshot, report of the curves or None)

    def counted(self, name: str, at: float) -> int:
        """What the test itself counts: so many of `name` at a moment of this start."""
        return int(PER_SEC[name] * max(at - READY_AT, 0.0))

    def play(self, until: float, late_sec: float) -> None:
        """Go on in steps of 0.1 s, with a snapshot each 0.9 s."""
        while self.now < until:
            self.now = round(self.now + 0.1, 3)
            step = round(self.now * 10)
            if step == round(READY_AT * 10):
                self.monitor.mark_ready()
            if step % 5 == 2 and not self.silent:
                self._report(late_sec if step % 2 else 0.0)
            if step % 9 == 4:
                phase = "training" if self.now >= READY_AT else "starting"
                snapshot = self.monitor.take_snapshot(phase, self.now)
                self.recorder.advance(snapshot)
                self.found.append((snapshot, self.recorder.record(snapshot)))

    def _report(self, late_sec: float) -> None:
        at = self.now - late_sec
        n = {name: self.counted(name, at) for name in PER_SEC}
        answered = {"decisions": n["decisions"]}
        if self.searches:
            answered = {"decisions": 0, "samples": {"admitted": n["decisions"]}}
        learned = {"decisions_learned": BEFORE + n["decisions"], "decisions_learned_since_start": n["decisions"]}
        for role, metrics in (
            ("inference_server", {**answered, "batches": n["batches"]}),
            ("env_worker", {"episodes": {"finished": n["episodes"], "started": n["episodes"]}}),
            ("learner", {**learned, "updates": 4000, "decisions_per_sec": n["decisions"] / max(at, 1e-9)}),
        ):
            report = Report(role=role, index=0, run_id=1, pid=1, state="ready", metrics=metrics)
            self.reports.add_report(report, self.now, late_sec)


@pytest.fixture
def run(tmp_path, monkeypatch):
    return Run(tmp_path, monkeypatch)


@pytest.mark.parametrize("searches", [False, True])
@pytest.mark.parametrize("late_sec", [0.0, 0.3])
def test_the_first_rates_that_are_shown_after_a_resume_are_the_steady_ones(run, late_sec, searches):
    run.searches = searches
    run.play(READY_AT + 30.0, late_sec)
    shown = [snapshot for snapshot, _ in run.found if snapshot.decisions_per_sec is not None]
    before = [snapshot for snapshot, _ in run.found if snapshot.decisions_per_sec is None]
    assert before, "none is shown before there is a time to divide by"
    first, last = shown[0], shown[-1]
    assert first.rates_over_sec < 2.0
    assert last.rates_over_sec == pytest.approx(10.0, abs=1.0)
    for snapshot in shown:
        end = READY_AT + snapshot.counted_sec["inference_server"]
        begin = end - snapshot.rates_over_sec
        own = (run.counted("decisions", end) - run.counted("decisions", begin)) / snapshot.rates_over_sec
        assert snapshot.decisions_per_sec == pytest.approx(own, rel=0.01)
        assert snapshot.decisions_per_sec == pytest.approx(PER_SEC["decisions"], rel=0.01)
        assert snapshot.batches_per_sec == pytest.approx(PER_SEC["batches"], rel=0.2)
    assert last.battles_per_sec == pytest.approx(PER_SEC["episodes"], rel=0.2)
    reports = [report for _, report in run.found if report is not None]
    rates = [report.figures["run/decisions_per_sec"] for report in reports if "run/decisions_per_sec" in report.figures]
    assert len(rates) > 10
    assert rates == pytest.approx([PER_SEC["decisions"]] * len(rates), rel=0.01)
    assert max(report.figures["learner/decisions_per_sec"] for report in reports) <= PER_SEC["decisions"]
    assert reports[-1].decisions > BEFORE, "the axis goes on"


@pytest.mark.parametrize("searches", [False, True])
def test_the_summary_of_a_resumed_run_counts_this_start(run, searches):
    run.searches = searches
    run.play(READY_AT + 20.0, 0.0)
    run.monitor.mark_stopping()
    last = run.monitor.take_snapshot("stopped", run.now)
    summary = summarise(Config(game="gymnasium"), last)
    own = run.counted("decisions", run.now) / (run.now - READY_AT)
    assert summary["decisions_per_sec"] == pytest.approx(own, rel=0.05)
    assert last.decisions_per_sec == pytest.approx(own, rel=0.05)
    assert summary["lifetime_decisions_learned"] > BEFORE > summary["decisions_learned"]
    assert format_rate(last, last.decisions_per_sec).endswith(" (this start)")


def test_the_rate_of_a_silent_server_falls(run):
    run.play(READY_AT + 20.0, 0.0)
    run.silent = True
    run.play(READY_AT + 25.0 + OLDEST_SEC, 0.0)
    assert run.found[-1][0].decisions_per_sec == pytest.approx(PER_SEC["decisions"] / 2, rel=0.15)
    run.play(READY_AT + 31.0 + OLDEST_SEC, 0.0)
    assert run.found[-1][0].decisions_per_sec == 0.0


def test_a_clock_of_another_machine_that_is_wrong_moves_figures_by_little(run):
    reports = RoleReports()
    for index, age_sec in enumerate((-3600.0, 3600.0)):
        reports.add_report(Report(role="env_worker", index=index, run_id=1, pid=1, state="ready", metrics={"a": 1}),
                           100.0, age_sec)  # fmt: skip
    assert reports.counted_at("env_worker", 100.0) == 100.0 - OLDEST_SEC / 2
    assert reports.counted_at("learner", 100.0) is None
