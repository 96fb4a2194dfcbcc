"""Takes weights in from the learner: the first ones before anything is served, then newer ones between two batches."""

from __future__ import annotations

import time
from logging import Logger
from pathlib import Path

from common.errors import WeightsError
from common.lifecycle import StopFlag
from common.transport import DealerSocket, Poller
from inference_server.learner_link import LearnerLink
from inference_server.policies import LEARNER, PolicyTable
from inference_server.statistics import Statistics

LEARNER_PATIENCE_SEC = 5.0


class Swaps:
    """`link` None: weights come from a checkpoint and never change."""

    def __init__(self, link: LearnerLink | None, policies: PolicyTable, statistics: Statistics, log: Logger) -> None:
        self._link = link
        self._policies = policies
        self._statistics = statistics
        self._log = log

    def sockets(self) -> tuple[DealerSocket, ...]:
        """What becomes readable when weights arrive."""
        return tuple(self._link.sockets()) if self._link is not None else ()

    def learner_alive(self, now: float) -> bool:
        """Whether the learner was heard of lately."""
        return self._link is not None and self._link.alive(now)

    def poll(self, now: float) -> str:
        """Install what has arrived; a sentence where something was refused (the old weights stay)."""
        event = ""
        if self._link is None:
            return event
        for weights, data in self._link.poll(now, self._policies.learner_version):
            if weights.policy == LEARNER:
                self._statistics.offered_version = weights.policy_version
            try:
                self._policies.install(weights, data)
            except WeightsError as error:
                self._statistics.weights_refused += 1
                event = f"weights {weights.policy} version {weights.policy_version} refused: {error}"
                self._log.warning(event)
                self._link.acknowledge(weights, str(error))
            else:
                self._statistics.swaps += 1
                self._link.acknowledge(weights)
        return event

    def find_first(self, checkpoints: Path, stop: StopFlag) -> None:
        """Take the living learner's weights; else, after a while, the newest checkpoint's. Waits for either."""
        patience = time.monotonic() + LEARNER_PATIENCE_SEC
        while not self._policies.ready and not stop:
            self.poll(time.monotonic())
            if not self._policies.ready and time.monotonic() > patience:
                patience = float("inf")
                for note in self._policies.install_newest(checkpoints):
                    self._log.warning(note)
            Poller(self.sockets()).wait(0.05)

    def close(self) -> None:
        """Close the sockets."""
        if self._link is not None:
            self._link.close()
