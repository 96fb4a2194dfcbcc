"""What the server counts. Pure."""

from __future__ import annotations

from collections import Counter
from typing import Any

from simul.common.runtime.metrics import Stages, Timings, power_of_two_bucket

STAGES = ("receive", "admit", "gather", "forward", "sample", "reply", "record")
# The rest of the loop: work, and waiting for messages, for a fuller batch, for a learner that has no room.
OTHER_STAGES = ("batch", "evaluate", "weights", "report", "wait", "batch_wait", "learner_full")


class Statistics:
    """Counters since process start; docs/metrics.md explains every name."""

    def __init__(self) -> None:
        self.decisions = 0  # decisions answered, each once
        self.messages = 0  # STEP, EVALUATE and SAMPLES, refused ones included
        self.batches = 0
        self.batch_histogram: Counter[int] = Counter()
        self.rows_errored: Counter[str] = Counter()
        self.forward_failures = 0  # rows, of those errored
        self.forward_failure = ""  # error text of the last one
        self.faults = 0  # messages on which the server failed by a fault of its own
        self.fault = ""  # the last of them
        self.rows_cached = 0
        self.rows_duplicate = 0
        self.rows_redone = 0
        self.replies_dropped = 0
        self.evaluations = 0  # rows of EVALUATE answered
        self.evaluation_batches = 0
        self.messages_refused: Counter[str] = Counter()  # as a whole, by code
        self.connections: Counter[str] = Counter()
        self.connections_cut: Counter[str] = Counter()  # by the proxy, by cause
        self.proxy_restarts = 0
        self.unanswered_bytes = 0  # that came through the proxy
        self.sessions_ended: Counter[str] = Counter()
        self.steps_seen = 0  # recorded decisions admitted, each once
        self.steps_sent = 0
        self.steps_dropped: Counter[str] = Counter()
        self.unrolls_completed = 0  # sent, waiting to be sent, or dropped before
        self.unrolls_sent = 0
        self.unrolls_dropped: Counter[str] = Counter()
        self.samples_admitted = 0  # rows of SAMPLES that were not refused
        self.samples_sent = 0
        self.samples_dropped: Counter[str] = Counter()
        self.weights_refused = 0
        self.weights_overtaken = 0  # replaced by newer ones before their verification began
        self.weights_unreadable = 0  # not found in the memory that was announced
        self.swaps = 0
        self.weights_in_memory = 0  # of the swaps, those read out of the learner's memory
        self.offered_version = -1  # the newest of the learner's weights that arrived, taken or not
        self.queue_wait_us = Timings()
        self.latency_us = Timings()
        self.forward_us = Timings()
        self.swap_us = Timings()
        self.stages = Stages((*STAGES, *OTHER_STAGES))

    def batch(self, rows: int, answered: int, forward_sec: float) -> None:
        """Count one forward of `rows` rows, of which `answered` had a finite result."""
        self.batches += 1
        self.decisions += answered
        self.batch_histogram[power_of_two_bucket(rows)] += 1
        self.forward_us.add(forward_sec * 1e6)

    def forward_failed(self, rows: int, why: str) -> None:
        """The forward of so many rows raised, or its result is not finite."""
        self.forward_failures += rows
        self.forward_failure = why

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a report."""
        return {
            "decisions": self.decisions,
            "messages": self.messages,
            "rows_errored": dict(self.rows_errored),
            "faults": self.faults,
            "rows_cached": self.rows_cached,
            "rows_duplicate": self.rows_duplicate,
            "rows_redone": self.rows_redone,
            "replies_dropped": self.replies_dropped,
            "malformed": self.messages_refused.total(),
            "messages_refused": dict(self.messages_refused),
            "connections": dict(self.connections),
            "connections_cut": dict(self.connections_cut),
            "proxy_restarts": self.proxy_restarts,
            "unanswered_bytes": self.unanswered_bytes,
            "evaluations": self.evaluations,
            "evaluation_batches": self.evaluation_batches,
            "batches": self.batches,
            "batch_histogram": {str(size): n for size, n in sorted(self.batch_histogram.items())},
            "queue_wait_us": self.queue_wait_us.percentiles(),
            "latency_us": self.latency_us.percentiles(),
            "forward_us": self.forward_us.percentiles(),
            "stage_us": {
                stage: round(self.stages.seconds[stage] * 1e6 / max(self.decisions, 1), 3) for stage in STAGES
            },
            "stage_sec": dict(self.stages.seconds),
            "loop_sec": self.stages.elapsed_sec,
            "sessions_ended": dict(self.sessions_ended),
            "weights_refused": self.weights_refused,
            "weights_overtaken": self.weights_overtaken,
            "weights_unreadable": self.weights_unreadable,
            "swaps": self.swaps,
            "weights_in_memory": self.weights_in_memory,
            "swap_us": self.swap_us.percentiles(),
            "offered_version": self.offered_version,
        }
