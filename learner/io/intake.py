"""What admitted servers send on the unroll socket: checked and put into a queue, or dropped. I/O thread only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from simul.common.errors import ProtocolError
from simul.common.protocol.codec import Tensors
from simul.common.protocol.messages import SampleBatch, Unroll
from simul.learner.io.receive_queues import SampleQueue, UnrollQueue
from simul.learner.io.rejected import RejectedError
from simul.learner.io.samples import SampleChecker
from simul.learner.io.unroll_memory import UnrollMemories
from simul.learner.io.unrolls import ReceivedUnroll, UnrollChecker


@dataclass(frozen=True)
class Intake:
    """Where unrolls and samples go.

    Attributes:
        unroll_checker, sample_checker: None for what the run does not learn from, which is dropped.
        newest_version: the newest that a server can have served.
    """

    unrolls: UnrollQueue
    samples: SampleQueue
    memories: UnrollMemories
    unroll_checker: UnrollChecker | None
    sample_checker: SampleChecker | None
    newest_version: Callable[[], int]

    @property
    def waiting_rows(self) -> int:
        """Steps of unrolls, and samples, that the main loop has not taken yet."""
        return self.unrolls.waiting_rows + self.samples.waiting_rows

    def take_unroll(self, peer: bytes, message: Unroll, tensors: Tensors) -> None:
        """Put an unroll into its queue, or drop it."""
        try:
            unroll = self._check_unroll(peer, message, tensors)
        except ProtocolError as error:
            self.drop_malformed(str(error))
        except RejectedError as error:
            self.unrolls.drop(error.cause, str(error), error.rows)
        else:
            self.unrolls.put(unroll)

    def _check_unroll(self, peer: bytes, message: Unroll, tensors: Tensors) -> ReceivedUnroll:
        if self.unroll_checker is None:
            raise RejectedError("wrong_algorithm", "this run learns from samples", max(message.length, 0))
        if message.place >= 0:
            tensors = self.memories.copy_unroll(peer, message)
        unroll = self.unroll_checker.check(message, tensors)
        played, published = unroll.newest_version, self.newest_version()
        if played > published:
            words = f"its policy version is {played}, the newest that was published {published}"
            raise RejectedError("bad_version", words, unroll.length)
        return unroll

    def take_samples(self, message: SampleBatch, tensors: Tensors) -> None:
        """Put the samples that can be learned from into their queue, and drop the others."""
        try:
            if self.sample_checker is None:
                raise RejectedError("wrong_algorithm", "this run learns from unrolls", message.length)
            samples, rejected = self.sample_checker.check(message, tensors, self.newest_version())
        except RejectedError as error:
            self.samples.drop(error.cause, str(error), error.rows)
            return
        for each in rejected:
            self.samples.drop(each.cause, str(each), each.rows)
        if samples.length:
            self.samples.put(samples)

    def drop_malformed(self, reason: str) -> None:
        """Count a message that cannot be read, or does not belong here, as an unroll."""
        self.unrolls.drop("malformed", reason, 0)
