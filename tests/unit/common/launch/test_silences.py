"""Silence is told once it is long, and not again and again."""

from __future__ import annotations

from common.launch.silences import TOLD_AFTER_SEC, TOLD_EVERY_SEC, Silences


def test_late_reports_of_a_loaded_machine_are_no_events():
    silences = Silences()
    for now in range(100):
        silences.note("simul-learner-0", (now % 7) * 1.0, now)
    assert silences.take() == []


def test_a_long_silence_is_told_once_and_so_is_its_end():
    silences = Silences()
    for silent_sec in (9.0, 10.0, 11.0, 12.0):
        silences.note("simul-learner-0", silent_sec, 100.0 + silent_sec)
    assert silences.take() == ["simul-learner-0 says nothing for 10 s: it hangs, or the machine is overloaded"]
    silences.note("simul-learner-0", 0.0, 114.0)
    assert silences.take() == ["simul-learner-0 speaks again, after 14 s"]
    silences.note("simul-learner-0", 0.0, 115.0)
    assert silences.take() == []


def test_who_died_in_silence_does_not_speak_again():
    silences = Silences()
    silences.note("simul-learner-0", 10.0, 100.0)
    assert len(silences.take()) == 1
    for silent_sec in (None, 0.0):
        silences.note("simul-learner-0", silent_sec, 101.0)
    assert silences.take() == []


def test_one_process_is_told_of_once_a_minute_and_another_at_once():
    silences = Silences()
    told = []
    for now in range(10, 10 + int(TOLD_EVERY_SEC), 2):
        for silent_sec in (TOLD_AFTER_SEC + 1, 0.0):
            silences.note("simul-learner-0", silent_sec, float(now))
        told += silences.take()
    assert len(told) == 2
    silences.note("simul-worker-0", TOLD_AFTER_SEC, 50.0)
    assert len(silences.take()) == 1
    silences.note("simul-learner-0", TOLD_AFTER_SEC, 10.0 + TOLD_EVERY_SEC)
    assert len(silences.take()) == 1
