"""The largest rate that keeps a promise, by bisection over trials that cost seconds each. Pure."""

from __future__ import annotations

STEPS_DOWN = 5
TOLERANCE = 0.05  # of the rate found
_STEP_DOWN = 0.95
_UP = 1.5


class MaxRateSearch:
    """Narrows the largest rate that passes.

        while (rate := search.next_rate()) is not None:
            search.record_trial(rate, passed=measure(rate))
        search.result        # None: the lowest rate did not pass, or none passed again

    The lowest rate is tried first. Bounds are widened while the upper one passes. The rate found is tried once more
    at the end, and lowered by 5% (five times at most) where it does not pass again: one lucky trial is no promise.
    """

    def __init__(self, low: float, high: float) -> None:
        self.result: float | None = None
        self._low = low
        self._high = high
        self._lowest = low
        self._low_passed = self._high_failed = self._done = False
        self._to_confirm: float | None = None
        self._steps_down = 0

    def next_rate(self) -> float | None:
        """The rate to try now; None when the search is over."""
        if self._done:
            return None
        if not self._low_passed:
            return self._low
        if not self._high_failed:
            return self._high
        if self._to_confirm is None and self._high - self._low > TOLERANCE * self._high:
            return (self._low + self._high) / 2
        if self._to_confirm is None:
            self._to_confirm = self._low
        return self._to_confirm

    def record_trial(self, rate: float, *, passed: bool) -> None:
        """The outcome of a trial at `rate`, which `next_rate` returned."""
        if self._to_confirm is not None:
            self._confirm(rate, passed)
        elif not self._low_passed:
            self._low_passed = passed
            self._done = not passed
        elif passed:
            self._low = rate
            if rate >= self._high:
                self._high *= _UP
        else:
            self._high, self._high_failed = rate, True

    def _confirm(self, rate: float, passed: bool) -> None:
        if passed:
            self.result, self._done = rate, True
            return
        self._steps_down += 1
        self._to_confirm = max(rate * _STEP_DOWN, self._lowest)
        self._done = self._steps_down > STEPS_DOWN
