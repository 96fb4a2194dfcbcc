"""Alerts come once a silence is long, and not again and again."""

from __future__ import annotations

from simul.launch.monitoring.alerts import (
    ALERT_AFTER_SEC,
    ALERT_EVERY_SEC,
    HeartbeatAlerts,
    LearningAlerts,
    OutageAlerts,
    StrengthAlerts,
)


def test_a_long_silence_is_told_once_and_so_is_its_end():
    heartbeats = HeartbeatAlerts()
    for silent_sec in (9.0, 0.0, 9.0, 10.0, 11.0, 12.0):  # first a late report of a loaded machine
        heartbeats.update("simul-learner-0", silent_sec, 100.0 + silent_sec)
    assert heartbeats.take_alerts() == [
        "simul-learner-0 has sent no report for 10 s: it hangs, or the machine is overloaded"
    ]
    heartbeats.update("simul-learner-0", 0.0, 114.0)
    assert heartbeats.take_alerts() == ["simul-learner-0 reports again, after 14 s"]
    heartbeats.update("simul-learner-0", 0.0, 115.0)
    assert heartbeats.take_alerts() == []


def test_a_process_that_died_silent_does_not_report_again():
    heartbeats = HeartbeatAlerts()
    heartbeats.update("simul-learner-0", 10.0, 100.0)
    assert len(heartbeats.take_alerts()) == 1
    for silent_sec in (None, 0.0):
        heartbeats.update("simul-learner-0", silent_sec, 101.0)
    assert heartbeats.take_alerts() == []


def test_one_process_is_told_of_once_a_minute_and_another_at_once():
    heartbeats = HeartbeatAlerts()
    told = []
    for now in range(10, 10 + int(ALERT_EVERY_SEC), 2):
        for silent_sec in (ALERT_AFTER_SEC + 1, 0.0):
            heartbeats.update("simul-learner-0", silent_sec, float(now))
        told += heartbeats.take_alerts()
    assert len(told) == 2
    heartbeats.update("simul-worker-0", ALERT_AFTER_SEC, 50.0)
    assert len(heartbeats.take_alerts()) == 1
    heartbeats.update("simul-learner-0", ALERT_AFTER_SEC, 10.0 + ALERT_EVERY_SEC)
    assert len(heartbeats.take_alerts()) == 1


def test_a_process_that_cannot_work_is_told_after_a_minute_then_seldom_and_so_is_its_return():
    outages = OutageAlerts()
    told = [
        (now, said) for now in range(0, 250, 10) if (said := outages.update("learner", False, "OSError: full", now))
    ]
    assert [now for now, _ in told] == [60, 120, 240]
    assert told[0][1] == "learner has not worked for 60 s; it died with: OSError: full"
    assert outages.update("learner", True, "", 251.0) == "learner works again, after 251 s"
    assert outages.update("learner", True, "", 252.0) == ""
    assert outages.update("learner", False, "", 300.0) == ""
    assert outages.update("learner", True, "", 301.0) == "", "a short outage is no event"


def test_a_run_that_learns_nothing_says_so_with_what_became_of_its_rows():
    watch = LearningAlerts(0.0)
    old = {"rows refused with ERR_ORDER": 3.0, "rows refused with ERR_DENIED": 0.0}
    assert watch.update(100.0, 0.0, old, 10.0) == ""
    new = {"rows refused with ERR_ORDER": 3.0, "rows refused with ERR_DENIED": 1234.0, "steps dropped as closed": 5.0}
    assert watch.update(100.0, 0.0, new, 69.0) == ""
    assert watch.update(100.0, 7.0, new, 70.0) == (
        "nothing was learned for 60 s (7 steps wait for an update): rows refused with ERR_DENIED 1,234, "
        "steps dropped as closed 5"
    )
    assert watch.update(100.0, 7.0, new, 71.0) == ""
    assert watch.update(101.0, 7.0, new, 80.0) == "the run learns again, after 70 s"
    assert watch.update(101.0, 0.0, new, 140.0).endswith("no row was refused and no step dropped")


def test_the_time_in_which_the_supervisor_stood_still_itself_is_in_no_sentence():
    heartbeats, outages, watch = HeartbeatAlerts(), OutageAlerts(), LearningAlerts(0.0)
    heartbeats.update("simul-learner-0", 10.0, 10.0)
    heartbeats.take_alerts()
    outages.update("learner", False, "", 0.0)
    for sleeper in (heartbeats, outages, watch):
        sleeper.exclude_pause(1000.0)
    assert watch.update(0.0, 0.0, {}, 1010.0) == ""
    assert watch.update(0.0, 0.0, {}, 1069.0) == ""
    assert watch.update(0.0, 0.0, {}, 1070.0).startswith("nothing was learned for 60 s")
    assert outages.update("learner", True, "", 1059.0) == ""
    heartbeats.update("simul-learner-0", 0.0, 1012.0)
    assert heartbeats.take_alerts() == ["simul-learner-0 reports again, after 12 s"]


def test_a_fall_is_told_when_it_is_long_and_more_than_chance():
    alerts = StrengthAlerts()
    within = [alerts.update(score, 0.2) for score in (0.8, 0.79, 0.78, 0.77, 0.76)]
    assert within == [""] * 5
    assert alerts.update(0.5, 0.2) == "strength has fallen in 5 evaluations in a row: 0.8, 0.79, 0.78, 0.77, 0.76, 0.5"
    assert [alerts.update(score, 0.0) for score in (0.6, 0.5, 0.4, 0.4)] == [""] * 4
