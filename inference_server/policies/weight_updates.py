"""Takes weights in from the learner: the first ones before anything is served, then newer ones between two batches.

They are verified on a thread beside the loop, in the order in which they came; the loop only swaps them in.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from logging import Logger
from pathlib import Path

from simul.common.protocol.errors import UnreadableWeightsError, WeightsError
from simul.common.protocol.messages import Weights
from simul.common.runtime.lifecycle import StopFlag
from simul.common.transport import DealerSocket, Poller
from simul.inference_server.ops.statistics import Statistics
from simul.inference_server.policies.engine_factory import Prepared
from simul.inference_server.policies.table import LEARNER, PolicyTable
from simul.inference_server.unrolls.learner_link import LearnerLink

LEARNER_PATIENCE_SEC = 5.0


class Swaps:
    """`link` None: weights come from a checkpoint and never change."""

    def __init__(self, link: LearnerLink | None, policies: PolicyTable, statistics: Statistics, log: Logger) -> None:
        self._link = link
        self._policies = policies
        self._statistics = statistics
        self._log = log
        self._verifier = ThreadPoolExecutor(1, thread_name_prefix="weights-verifier")
        self._pending: deque[tuple[Weights, Future[Prepared]]] = deque()

    def sockets(self) -> tuple[DealerSocket, ...]:
        """What becomes readable when weights arrive."""
        return tuple(self._link.sockets()) if self._link is not None else ()

    def learner_alive(self, now: float) -> bool:
        """Whether the learner was heard of lately."""
        return self._link is not None and self._link.alive(now)

    def poll(self, now: float) -> str:
        """Install what has arrived; a sentence where something was refused (the old weights stay)."""
        if self._link is None:
            return ""
        event = ""
        for weights, data in self._link.poll(now, self._policies.learner_version):
            if weights.policy == LEARNER:
                self._statistics.offered_version = weights.policy_version
            if self._policies.ready:
                self._drop_overtaken(weights)
                self._policies.expect(weights)
                self._pending.append((weights, self._verifier.submit(self._policies.prepare, weights, data)))
            else:
                event = self._take(weights, partial(self._policies.prepare, weights, data)) or event
        if self._pending and self._pending[0][1].done():  # one a turn
            weights, future = self._pending.popleft()
            event = self._take(weights, future.result) or event
        return event

    def _drop_overtaken(self, newer: Weights) -> None:
        """Older weights that nobody has begun to verify; they get no WEIGHTS_ACK."""
        for item in list(self._pending):
            weights, future = item
            if weights.policy == newer.policy and weights.policy_version < newer.policy_version and future.cancel():
                self._pending.remove(item)
                self._statistics.weights_overtaken += 1

    def _take(self, weights: Weights, prepared: Callable[[], Prepared]) -> str:
        """Serve them from the next batch on; a sentence where they are refused."""
        assert self._link is not None
        try:
            ready, begin = prepared(), time.perf_counter()
            self._policies.take(ready)
        except UnreadableWeightsError as error:
            self._statistics.weights_unreadable += 1
            self._link.acknowledge(weights, str(error), unreadable=True)
            return ""
        except WeightsError as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001 - a user's own network may raise anything while it is built
            self._log.exception("what serves %s could not be built", weights.policy)
            reason = f"{type(error).__name__}: {error}"
        else:
            self._statistics.swaps += 1
            self._statistics.weights_in_memory += bool(weights.path)
            self._statistics.swap_us.add((time.perf_counter() - begin) * 1e6)
            self._link.acknowledge(weights)
            return ""
        self._statistics.weights_refused += 1
        event = f"weights {weights.policy} version {weights.policy_version} refused: {reason}"
        self._log.warning(event)
        self._link.acknowledge(weights, reason)
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
        """Close the sockets; weights that are being verified are given up."""
        self._verifier.shutdown(wait=True, cancel_futures=True)
        if self._link is not None:
            self._link.close()
