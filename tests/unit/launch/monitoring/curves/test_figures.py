"""Which figures a report of the curves has, when it is due, and that its x axes never go back."""

from __future__ import annotations

import math

import pytest

from simul.common.runtime.intervals import wilson
from simul.launch.monitoring.curves.figures import (
    CURVES,
    EVALUATION_CURVES,
    LEAGUE_CURVES,
    CurvePosition,
    CurveRecorder,
    curve_figures,
    evaluation_figures,
)
from simul.launch.monitoring.curves.league_curves import league_figures
from simul.launch.monitoring.curves.run_exporter import FigureCollector, gauge_name
from simul.launch.monitoring.snapshot import Snapshot
from simul.launch.ratings.league_file import read_league
from tests.support.league import write_league
from tests.support.recorded_run import server, snapshot

RESULT = {
    "score": 0.75, "best_score": 0.8, "games": 20, "policy_version": 42, "decisions_learned": 4200, "seconds": 12.5,
    "return_mean": 7.5, "return_min": 1.0, "return_max": 9.0, "win_rate": {"random": 0.75},
    "win_rate_low": {"random": 0.5}, "win_rate_high": {"random": 0.9},
    "mean_score": {"random": 0.4},
}  # fmt: skip


SERVERS = {f"simul-inference-{n}": {"policy_version": 12 - n} for n in range(2)}
VERSIONS = {"policy_version": 11, "policy_version_max": 12}


def full(ready_sec: float = 100.0, **changes) -> Snapshot:
    """A snapshot in which every figure is known."""
    both = {"servers": SERVERS, "server": {**server(ready_sec), **VERSIONS}}
    return snapshot(ready_sec, **{**both, **changes})


def by_name(now: Snapshot, before: Snapshot | None = None) -> dict[str, float]:
    return {figure.name: figure.value for figure in curve_figures(now, before)}


def test_every_name_of_the_table_is_written_and_no_other(tmp_path):
    written = {figure.curve for figure in curve_figures(full(110.0), full(100.0))}
    assert written | {*EVALUATION_CURVES, *LEAGUE_CURVES} == set(CURVES)
    write_league(tmp_path)
    assert {figure.curve for figure in league_figures(read_league(tmp_path))} == set(LEAGUE_CURVES)
    evaluated = {figure.curve for figure in evaluation_figures(RESULT)}
    assert evaluated == set(EVALUATION_CURVES)
    assert len(CURVES) == len(set(CURVES))


def test_versions_of_several_servers_are_curves_and_of_one_server_are_not():
    found = by_name(full())
    assert (found["server/policy_version_min"], found["server/policy_version_max"]) == (11, 12)
    assert not any("policy_version_m" in figure.name for figure in curve_figures(full(servers={}), None))


def test_rates_and_means_are_of_the_interval_and_sums_are_over_the_processes():
    before, now = full(100.0), full(110.0)
    now.server["decisions"] += 2_500_000  # twice as many as before
    found = by_name(now, before)
    assert found["run/decisions_per_sec"] == 500_000.0
    assert found["run/episodes_per_sec"] == 2.0
    assert found["server/mean_batch"] == 200.0
    assert found["worker/wait_share"] == pytest.approx(0.5)
    assert sum(found[f"worker/{stage}_share"] for stage in ("wait", "envs", "messages", "other")) == pytest.approx(1)
    assert found["worker/env_step_us"] == pytest.approx(2.5e6 / 4000)
    assert found["process/env_worker/cpu_percent"] == 7 * 99.0
    assert found["process/env_worker/memory_mb"] == 7 * 550.0
    assert (found["episodes/length_max"], found["episodes_against/random/return_min"]) == (80, -1.0)
    assert (found["win_rate_low/random"], found["win_rate_high/random"]) == wilson(150, 200)
    assert found["dropped/unrolls/stale"] == 2
    assert found["learner/policy_lag_max"] == 3


def test_figures_of_a_game_are_curves_by_opponent_and_by_seat():
    found = by_name(full())
    assert (found["game/foul"], found["game_against/random/foul"], found["game_at/2/foul"]) == (0.25, 0.5, 0.125)
    assert found["episodes_at/2/return_mean"] == -1.5
    assert not any("seat_" in name for name in found), "a seat is no opponent"
    assert not any(name.startswith("win_rate/2") for name in found)


def test_what_is_not_known_is_left_out():
    empty = full(server={}, learner={"kl": math.nan, "largest_reward": math.inf}, workers={}, processes=[])
    assert curve_figures(empty, full(90.0)) == []
    assert curve_figures(empty, None) == []


def test_reports_are_due_each_second_at_first_and_each_ten_seconds_later():
    recorder = CurveRecorder(CurvePosition())
    due = []
    for quarters in range(12_000):
        snapshot = full(quarters / 4)
        recorder.advance(snapshot)
        if recorder.record(snapshot) is not None:
            due.append(quarters / 4)
    assert due[:4] == pytest.approx([0.0, 1.0, 2.0, 3.0])
    assert due[-1] - due[-2] == pytest.approx(10.0)
    assert len(due) < 600


def test_a_run_that_does_not_train_is_not_reported_but_its_last_state_always_is():
    recorder = CurveRecorder(CurvePosition())
    assert recorder.record(full(0.0, phase="starting")) is None
    recorder.advance(full(5.0))
    assert recorder.record(full(5.0)) is not None
    assert recorder.record(full(5.5, phase="stopping")) is None
    stopped = full(5.6, phase="stopped")
    recorder.advance(stopped)
    last = recorder.record(stopped, last=True)
    assert last.decisions == 1_400_030
    assert "run/decisions_per_sec" not in last.figures, "it did not train meanwhile"
    assert last.figures["learner/policy_version"] == 123457


def test_a_resumed_run_goes_on_where_the_last_start_ended():
    first = CurveRecorder(CurvePosition())
    first.advance(full(10.0))
    second = CurveRecorder(first.position)
    assert second.advance(full(0.0, server={})) == CurvePosition(2_500_030.0, 10.0)
    second.advance(full(2.0))
    report = second.record(full(2.0))
    assert (report.decisions, report.training_sec) == (3_000_060, 12.0)


def test_an_evaluation_is_reported_at_once_and_once():
    recorder = CurveRecorder(CurvePosition())
    for seconds, evaluation in ((0.0, []), (0.1, evaluation_figures(RESULT))):
        recorder.advance(full(seconds))
        assert recorder.record(full(seconds), evaluation) is not None
    assert recorder.last.figures["evaluation/score"] == 0.75
    assert recorder.last.figures["evaluation/win_rate/random"] == 0.75
    recorder.advance(full(9.0))
    assert "evaluation/score" not in recorder.record(full(9.0)).figures


def test_a_cause_with_a_slash_stays_one_part_of_its_name():
    odd = full(learner={"unrolls": {"dropped": {"a/b": 1}}}, workers={}, processes=[], server={})
    assert [figure.name for figure in curve_figures(odd, None)] == ["dropped/unrolls/a_b"]


def test_prometheus_gets_every_curve_as_a_gauge_of_its_own(tmp_path):
    collector = FigureCollector()
    write_league(tmp_path)
    played = [*evaluation_figures(RESULT), *league_figures(read_league(tmp_path))]
    collector.figures = [*curve_figures(full(110.0), full(100.0)), *played]
    families = {family.name: family for family in collector.collect()}
    assert set(families) == {gauge_name(curve) for curve in CURVES}
    assert len(families) == len(CURVES), "no two curves share a name"
    assert families["simul_run_decisions_per_sec"].samples[0].labels == {}
    rates = {rate.labels["opponent"]: rate.value for rate in families["simul_run_win_rate"].samples}
    assert rates == {"max_base_power": 1.0, "random": 0.75, "simple_heuristics": 1.0}
    foul = families["simul_run_game_against"].samples[1]
    assert (foul.labels, foul.value) == ({"opponent": "random", "figure": "foul"}, 0.5)
    assert families["simul_run_worker_wait_share"].samples[0].value == pytest.approx(0.5)
    assert "since the last report" in families["simul_run_decisions_per_sec"].documentation
    assert "since the learner's process started" in families["simul_run_learner_decisions_per_sec"].documentation
