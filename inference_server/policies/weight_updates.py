"""Weights on their way in: the link receives them, a thread beside the loop verifies them, the table swaps them in.

The first weights come before anything is served; newer ones are verified in the order in which they arrive, and served
from the next batch on. On any mismatch the old weights stay.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from logging import Logger
from pathlib import Path

from simul.common.errors import ConfigError, UnreadableWeightsError, WeightsError
from simul.common.protocol.messages import LEARNER_POLICY, Weights
from simul.common.role.lifecycle import StopFlag
from simul.common.transport import DealerSocket, Poller
from simul.inference_server.base.statistics import Statistics
from simul.inference_server.policies.engine_factory import PreparedWeights
from simul.inference_server.policies.table import PolicyTable
from simul.inference_server.unrolls.learner_link import LearnerLink

LEARNER_PATIENCE_SEC = 5.0


class WeightUpdates:
    """`link` None: weights come from a checkpoint and never change."""

    def __init__(self, link: LearnerLink | None, policies: PolicyTable, statistics: Statistics, log: Logger) -> None:
        self._link = link
        self._policies = policies
        self._statistics = statistics
        self._log = log
        self._verifier = ThreadPoolExecutor(1, thread_name_prefix="weights-verifier")
        self._pending: deque[tuple[Weights, Future[PreparedWeights]]] = deque()
        self._defect = ""  # what the network raised when an engine was built for it

    def sockets(self) -> tuple[DealerSocket, ...]:
        """Sockets that become readable when weights arrive."""
        return tuple(self._link.sockets()) if self._link is not None else ()

    def learner_alive(self, now: float) -> bool:
        """True if the learner sent something within SILENT_AFTER_SEC."""
        return self._link is not None and self._link.alive(now)

    def poll(self, now: float) -> str:
        """Receive and swap in weights. Returns a sentence if some were refused (the old weights stay)."""
        if self._link is None:
            return ""
        event = ""
        for weights, data in self._link.poll(now, self._policies.learner_version):
            if weights.policy == LEARNER_POLICY:
                self._statistics.offered_version = weights.policy_version
            if self._policies.ready:
                self._drop_overtaken(weights)
                self._policies.keep_for_update(weights)
                self._pending.append((weights, self._verifier.submit(self._policies.prepare, weights, data)))
            else:
                event = self._swap_in(weights, partial(self._policies.prepare, weights, data)) or event
        if self._pending and self._pending[0][1].done():  # one a turn
            weights, future = self._pending.popleft()
            event = self._swap_in(weights, future.result) or event
        return event

    def _drop_overtaken(self, newer: Weights) -> None:
        """Drop older weights whose verification has not begun."""
        for item in list(self._pending):
            weights, future = item
            if weights.policy == newer.policy and weights.policy_version < newer.policy_version and future.cancel():
                self._pending.remove(item)
                self._statistics.weights_overtaken += 1
                if self._link is not None:
                    reason = f"version {newer.policy_version} arrived before it was verified"
                    self._link.acknowledge(weights, reason, overtaken=True)

    def _swap_in(self, weights: Weights, prepared: Callable[[], PreparedWeights]) -> str:
        """Serve them from the next batch on. Returns a sentence if they are refused."""
        assert self._link is not None
        try:
            ready, begin = prepared(), time.perf_counter()
            self._policies.swap_in(ready)
        except UnreadableWeightsError as error:
            self._statistics.weights_unreadable += 1
            self._link.acknowledge(weights, str(error), unreadable=True)
            return ""
        except WeightsError as error:
            reason = str(error)
        except ConfigError as error:
            reason = self._defect = str(error)
        except Exception as error:  # noqa: BLE001 - a user's own network may raise anything while it is built
            self._log.exception("what serves %s could not be built", weights.policy)
            reason = f"{type(error).__name__}: {error}"
            self._defect = (
                f"The network cannot be served here: {reason}. The log of the inference server says where; where the "
                "type of numbers is at fault, set server.precision=float32."
            )
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

    def wait_for_first(self, checkpoints: Path, stop: StopFlag) -> None:
        """Take the living learner's weights; else, after a while, the newest checkpoint's. Waits for either.

        Raises ConfigError where the network itself raises: other weights would not help.
        """
        patience = time.monotonic() + LEARNER_PATIENCE_SEC
        while not self._policies.ready and not stop:
            self.poll(time.monotonic())
            if self._defect and not self._policies.ready:
                raise ConfigError(self._defect)
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
