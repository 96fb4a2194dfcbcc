"""SAMPLES of search workers, checked and handed to the learner; each sample is sent or dropped by cause."""

from __future__ import annotations

import hashlib
from typing import Any

from simul.common.errors import ERR_DENIED, ProtocolError
from simul.common.protocol.codec import Tensors
from simul.common.protocol.messages import SampleBatch, Sampled, Samples
from simul.common.protocol.sample_checks import unpack_samples
from simul.common.protocol.specs import GameSpec
from simul.inference_server.base.statistics import Statistics
from simul.inference_server.sessions.clients import Client
from simul.inference_server.unrolls.learner_link import LearnerLink

RETRY_AFTER_MS = 200  # while a living learner is full


class SampleRelay:
    """Keeps nothing: a message that is sent again is forwarded again, and the learner stores it once."""

    def __init__(self, spec: GameSpec, link: LearnerLink | None, statistics: Statistics, *, algorithm: str) -> None:
        """`algorithm`: the learner's."""
        self._spec = spec
        self._fingerprint = spec.fingerprint()
        self._link = link
        self._statistics = statistics
        self._algorithm = algorithm

    def has_room(self, now: float) -> bool:
        """False while a living learner is full: samples wait at their clients."""
        return self._link is None or self._link.has_room(now)

    def admit_samples(self, client: Client, message: Samples, tensors: Tensors, now: float) -> Sampled:
        """Forward the good rows of a message. Returns its answer.

        Raises:
            ProtocolError: ERR_DENIED, nothing is learned from this client's samples; else as `unpack_samples`.
        """
        if not client.training:
            raise ProtocolError(ERR_DENIED, "SAMPLES needs the run's training token; HELLO came without it")
        if self._link is None or self._algorithm != "alphazero":
            why = "no learner" if self._link is None else f"the algorithm {self._algorithm}, which learns from steps"
            raise ProtocolError(ERR_DENIED, f"this server has {why}; SAMPLES is for algorithm: alphazero")
        columns, errors = unpack_samples(self._spec, tensors)
        accepted = len(columns["outcome"])
        for error in errors:
            self._statistics.rows_errored[error.code] += len(error.rows)
        if accepted:
            batch = SampleBatch(
                length=accepted, batch=batch_number(client, message), spec_fingerprint=self._fingerprint
            )
            self._forward(self._link, batch, columns, now)
        return Sampled(id=message.id, accepted=accepted, errors=errors)

    def account(self) -> dict[str, Any]:
        """The account in samples: admitted = sent + waiting + dropped (by cause)."""
        waiting = self._link.samples_waiting() if self._link is not None else 0
        return {
            "admitted": self._statistics.samples_admitted,
            "sent": self._statistics.samples_sent - waiting,
            "waiting": waiting,
            "dropped": dict(self._statistics.samples_dropped),
        }

    def _forward(self, link: LearnerLink, batch: SampleBatch, columns: Tensors, now: float) -> None:
        statistics = self._statistics
        statistics.samples_admitted += batch.length
        try:
            taken = link.offer(batch, columns, now)
        except Exception:
            statistics.samples_dropped["server_fault"] += batch.length
            raise
        if taken:
            statistics.samples_sent += batch.length
        else:
            statistics.samples_dropped["learner_down"] += batch.length


def batch_number(client: Client, message: Samples) -> int:
    """A number of 62 bits that no other message has: the same one for a resend, also to another life of the server."""
    name = f"{client.name}\0{client.run_id}\0{message.id}".encode()
    return int.from_bytes(hashlib.sha256(name).digest()[:8], "big") >> 2
