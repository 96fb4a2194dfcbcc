"""Totals over the lives of restarted roles."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simul.common.protocol.messages import Report
from simul.launch.processes.role_reports import RoleReports, add_metrics, merge_lives


def report(role="inference_server", index=0, run_id=1, event="", **metrics) -> Report:
    return Report(role=role, index=index, run_id=run_id, pid=1, state="ready", metrics=metrics, event=event)


def test_counters_add_up_and_gauges_are_the_living_ones():
    state = RoleReports()
    state.add_report(report(decisions=10, batch_histogram={"8": 2}, latency_us={"p50": 5.0}), 0.0)
    state.add_report(report(decisions=12, batch_histogram={"8": 3}, latency_us={"p50": 6.0}), 1.0)
    state.add_report(report(run_id=2, decisions=1, batch_histogram={"4": 1}, latency_us={"p50": 9.0}), 2.0)
    totals = state.totals("inference_server")
    assert totals == {"decisions": 13, "batch_histogram": {"8": 3, "4": 1}, "latency_us": {"p50": 9.0}}


def test_a_late_report_of_a_dead_life_still_counts():
    state = RoleReports()
    state.add_report(report(decisions=10), 0.0)
    state.add_report(report(run_id=2, decisions=1), 1.0)
    state.add_report(report(run_id=1, decisions=11), 2.0)
    assert state.totals("inference_server")["decisions"] == 12


def test_totals_do_not_go_back_while_a_new_life_has_said_nothing_yet():
    state = RoleReports()
    state.add_report(report(decisions=10, steps={"seen": 5, "sent": 5, "open": 0, "dropped": {}}), 0.0)
    state.add_report(report(run_id=2), 1.0)
    assert state.totals("inference_server")["decisions"] == 10


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=4
    )
)  # fmt: skip
def test_the_accounts_balance_over_any_number_of_deaths(lives):
    steps = [
        {"steps": {"seen": s + d + o, "sent": s, "open": o, "dropped": {"old": d} if d else {}}} for s, d, o in lives
    ]
    account = merge_lives("inference_server", steps)["steps"]
    assert account["seen"] == account["sent"] + account["open"] + sum(account["dropped"].values())
    assert account["open"] == lives[-1][2]
    died = sum(o for _, _, o in lives[:-1])
    assert account["dropped"].get("server_died", 0) == died


def test_workers_are_summed_and_means_weighted():
    state = RoleReports()
    for index, (games, rate) in enumerate([(10, 0.5), (30, 0.9)]):
        recent = {"random": {"games": games, "win_rate": rate}}
        state.add_report(report("env_worker", index, decisions=games, recent=recent), 0.0)
    totals = state.totals("env_worker")
    assert totals["decisions"] == 40
    assert totals["recent"]["random"] == {"games": 40, "win_rate": pytest.approx(0.8)}


def test_no_report_means_no_figures():
    assert RoleReports().totals("learner") == {}


@pytest.mark.parametrize(
    ("before", "after", "new"),
    [
        ([], ["a"], ["a"]),
        (["a"], ["a"], []),
        (["a"], ["a", "b"], ["b"]),
        (["a", "b"], ["b", "c"], ["c"]),
        (["a"], ["c"], ["c"]),
        (["a"], [], []),
    ],
)
def test_events_that_are_reported_again_are_said_once(before, after, new):
    state = RoleReports()
    assert state.add_report(report(event="x", events=before), 0.0) == ["x", *before]
    assert state.add_report(report(events=after), 0.0) == new


def test_numbers_are_not_added_to_text_or_flags():
    assert add_metrics({"device": "cpu", "ready": True, "n": 1}, {"device": "cuda", "ready": True, "n": 2}) == {
        "device": "cuda", "ready": True, "n": 3,
    }  # fmt: skip


def test_what_the_last_life_left_open_is_closed_once_all_have_ended():
    state = RoleReports()
    alive = {"started": 9, "finished": 4, "alive": 5, "aborted": {}}
    state.add_report(report("env_worker", episodes=alive), 0.0)
    assert state.totals("env_worker")["episodes"]["alive"] == 5
    state.mark_all_ended()
    closed = {"started": 9, "finished": 4, "alive": 0, "aborted": {"worker_died": 5}}
    assert state.totals("env_worker")["episodes"] == closed


def test_what_a_learner_that_stopped_well_had_not_learned_yet_still_waits():
    state = RoleReports()
    last = report("learner", unrolls={"received": 3, "learned": 2, "waiting": 1, "dropped": {}})
    state.add_report(msgspec.structs.replace(last, state="stopped"), 0.0)
    state.mark_all_ended()
    assert state.totals("learner")["unrolls"]["waiting"] == 1


def test_lives_that_ended_without_a_last_report_are_told_with_the_time_that_no_figure_covers():
    state = RoleReports()
    for run_id in (1, 2, 3):
        state.add_report(report(run_id=run_id), float(run_id))
        state.mark_ended(("inference_server", 0), run_id, run_id + 0.4)
        state.mark_ended(("inference_server", 0), run_id, 40.0)  # looked at again, late
    state.add_report(msgspec.structs.replace(report(run_id=2), state="stopped"), 2.5)  # it was on its way
    state.exclude_pause(10.0)
    assert state.unreported() == {"inference_server": {"lives": 2, "seconds": 0.8}}


def test_a_pause_of_the_supervisor_does_not_count_as_silence():
    state = RoleReports()
    state.add_report(report(), 10.0)
    state.exclude_pause(30.0)
    assert state.silent_sec(("inference_server", 0), 1, 41.0) == 1.0


def test_a_sentence_of_a_thread_beside_the_loop_does_not_end_its_silence():
    state = RoleReports()
    state.add_report(report(role="env_worker", decisions=5), 10.0)
    assert state.add_report(report(role="env_worker", event="the game has not returned"), 25.0) == [
        "the game has not returned"
    ]
    assert state.silent_sec(("env_worker", 0), 1, 26.0) == 16.0
    assert state.totals("env_worker")["decisions"] == 5
    state.add_report(msgspec.structs.replace(report(role="env_worker", decisions=6), state="stopped"), 27.0)
    state.add_report(report(role="env_worker", event="it was on its way"), 28.0)
    assert state.last_report(("env_worker", 0), 1).state == "stopped"


def test_gauges_of_several_servers_are_not_summed():
    state = RoleReports()
    first = {"decisions": 30, "sessions": 4, "policy_version": 7, "offered_version": 9, "learner_alive": True,
             "policies": {"learner": 7, "past/1": 1}, "latency_us": {"p50": 5.0, "p99": 80.0}, "health": "ok",
             "stage_us": {"forward": 2.0}}  # fmt: skip
    second = {"decisions": 10, "sessions": 5, "policy_version": 9, "offered_version": 9, "learner_alive": False,
              "policies": {"learner": 9}, "latency_us": {"p50": 6.0, "p99": 20.0}, "health": "stuck for 1.0 s",
              "stage_us": {"forward": 6.0}}  # fmt: skip
    state.add_report(report(**first), 1.0)
    assert state.totals("inference_server") == first, "of one server they are its own"
    state.add_report(report(index=1, **second), 1.0)
    state.add_report(report(index=2), 1.0)  # it starts
    assert state.totals("inference_server") == {
        "decisions": 40, "sessions": 9, "policy_version": 7, "policy_version_max": 9, "offered_version": 9,
        "offered_version_max": 9, "learner_alive": False, "policies": {"learner": 7, "past/1": 1},
        "latency_us": {"p50": 6.0, "p99": 80.0}, "health": "stuck for 1.0 s", "stage_us": {"forward": 3.0},
    }  # fmt: skip
    assert state.of_processes("inference_server") == {0: first, 1: second, 2: {}}


def test_figures_of_several_ranks_add_up_and_those_of_rank_0_alone_stay():
    state = RoleReports()
    first = {
        "updates": 3, "policy_version": 4, "decisions_learned_since_start": 100, "signalled": True,
        "unrolls": {"received": 12, "learned": 10, "waiting": 2, "dropped": {}},
        "policy_lag": {"mean": 1.0, "max": 3, "recent_mean": 2.0, "recent_max": 2, "histogram": {"0": 75}},
    }  # fmt: skip
    second = {
        "decisions_learned_since_start": 300, "signalled": False,
        "unrolls": {"received": 31, "learned": 30, "waiting": 0, "dropped": {"stale": 1}},
        "policy_lag": {"mean": 5.0, "max": 9, "recent_mean": 6.0, "recent_max": 7, "histogram": {"0": 5, "9": 20}},
    }  # fmt: skip
    state.add_report(report("learner", **first), 1.0)
    assert state.totals("learner") == first
    state.add_report(report("learner", index=1, **second), 1.0)
    assert state.totals("learner") == {
        "updates": 3, "policy_version": 4, "decisions_learned_since_start": 400, "signalled": True,
        "unrolls": {"received": 43, "learned": 40, "waiting": 2, "dropped": {"stale": 1}},
        "policy_lag": {"mean": 2.0, "max": 9, "recent_mean": 3.0, "recent_max": 7, "histogram": {"0": 80, "9": 20}},
    }  # fmt: skip
