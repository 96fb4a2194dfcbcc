"""When a loop that does not turn is reported, and when an event says so."""

from __future__ import annotations

import pytest

from simul.inference_server.ops import watchdog as module
from simul.inference_server.ops.watchdog import EVENT_AFTER_SEC, LOOK_EVERY_SEC, STUCK_AFTER_SEC, Watchdog


class Clock:
    """The thread's time: `stalls` are (begin, seconds) in which the loop does not turn. Ends at `until`."""

    def __init__(self, stalls, until):
        self.now, self.stalls, self.until = 0.0, stalls, until
        self.reports, self.recoveries = [], []

    def wait(self, seconds):
        self.now += seconds
        if not any(begin <= self.now < begin + lasts for begin, lasts in self.stalls):
            self.watchdog.beat()
            self.recoveries += filter(None, [self.watchdog.take_recovery()])
        return self.now > self.until


@pytest.fixture
def watch(monkeypatch):
    def run(*stalls, until=20.0):
        clock = Clock(stalls, until)

        class Reporter:
            def __init__(self, arguments, role):
                self.next = 0.0

            def due(self, now):
                return now >= self.next

            def send(self, metrics, *, state, event):
                self.next = clock.now + 0.5
                clock.reports.append((clock.now, state, metrics["health"], event))

            def close(self):
                pass

        with monkeypatch.context() as patched:
            patched.setattr(module, "Reporter", Reporter)
            patched.setattr(module.time, "monotonic", lambda: clock.now)
            clock.watchdog = Watchdog(None)
            clock.watchdog._stop = clock
            clock.watchdog._watch()
        return clock

    return run


def test_long_forwards_are_reported_as_the_state_and_are_no_events(watch):
    found = watch((1.0, 1.7), (3.0, 1.7))
    assert [at for at, *_ in found.reports] == pytest.approx([1.75, 2.25, 3.75, 4.25], abs=2 * LOOK_EVERY_SEC)
    assert {(state, health[:10]) for _, state, health, _ in found.reports} == {("stuck", "stuck for ")}
    assert not [event for *_, event in found.reports if event]
    assert not found.recoveries


def test_a_hang_is_reported_within_a_second_and_one_event_says_so_and_one_that_it_is_over(watch):
    found = watch((1.0, 9.0))
    assert found.reports[0][0] <= 1.0 + STUCK_AFTER_SEC + 2 * LOOK_EVERY_SEC
    ((at, event),) = [(at, event) for at, *_, event in found.reports if event]
    assert at == pytest.approx(1.0 + EVENT_AFTER_SEC, abs=0.7), "with the next report"
    assert event.startswith("the inference server is stuck: its loop has not turned for 5.")
    (recovery,) = found.recoveries
    assert recovery.startswith("the inference server goes on: its loop did not turn for 9.")
