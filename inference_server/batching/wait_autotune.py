"""Which of two ways of making batches answers more rows a second: found out by trying. Pure: time is an argument.

Whether a wait pays depends on what a batch costs, on what its rows cost, and on how long clients take; the sum of it
all is the rate. So the other way gets a trial now and then, ever more rarely while it loses.
"""

from __future__ import annotations

SETTLE_BATCHES = 8  # the way before leaves its traces
TRIAL_BATCHES = 48
TRIAL_SEC = 0.1
PAUSE_SEC = 0.5  # nothing was answered for so long: that says nothing about the way
BETTER = 1.03
HOPELESS = 0.9
HOPELESS_BATCHES = 16
MOST_TRIALS_BETWEEN = 32


class Trials:
    """`waits`: the way to take now."""

    def __init__(self) -> None:
        self.waits = True
        self._rate = {True: 0.0, False: 0.0}  # rows a second, 0: not known
        self._best = True
        self._between = self._left = 1  # trials of the better way until the other one is tried
        self._rows = self._batches = 0
        self._began = self._last = 0.0

    def answered(self, rows: int, now: float) -> None:
        """A batch was answered."""
        if now - self._last > PAUSE_SEC:
            self._began += now - self._last
        self._last = now
        self._batches += 1
        if self._batches <= SETTLE_BATCHES:
            self._began = now
            return
        self._rows += rows
        played, seconds = self._batches - SETTLE_BATCHES, now - self._began
        hopeless = self.waits != self._best and self._rows < HOPELESS * self._rate[self._best] * seconds
        if (hopeless and played >= HOPELESS_BATCHES) or (played >= TRIAL_BATCHES and seconds >= TRIAL_SEC):
            self._judge(self._rows / seconds)
            self._rows = self._batches = 0

    def _judge(self, rate: float) -> None:
        known = self._rate[self.waits]
        self._rate[self.waits] = (known + rate) / 2 if known else rate
        if self.waits == self._best:
            self._left -= 1
            if self._left <= 0:
                self.waits = not self._best
            return
        if self._rate[self.waits] > BETTER * self._rate[self._best]:
            self._best, self._between = self.waits, 1
        else:
            self._between = min(4 * self._between, MOST_TRIALS_BETWEEN)
        self.waits, self._left = self._best, self._between
