"""Samples as they arrive from a server, checked. Pure: no sockets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from simul.common.errors import ProtocolError
from simul.common.protocol.messages import SampleBatch
from simul.common.protocol.sample_checks import keep_rows, unpack_samples
from simul.common.protocol.specs import GameSpec
from simul.learner.io.rejected import RejectedError


@dataclass(frozen=True)
class ReceivedSamples:
    """The samples of one message; `columns` as `messages.Samples` declares them, `batch` as `messages.SampleBatch`."""

    batch: int
    columns: Mapping[str, NDArray[Any]]

    @property
    def length(self) -> int:
        """Samples."""
        return len(self.columns["outcome"])


class SampleChecker:
    """Checks the samples of one run."""

    def __init__(self, spec: GameSpec) -> None:
        self._spec = spec
        self._fingerprint = spec.fingerprint()

    def check(
        self, message: SampleBatch, tensors: Mapping[str, NDArray[Any]], newest_version: int
    ) -> tuple[ReceivedSamples, list[RejectedError]]:
        """The samples that can be learned from, and what is wrong with the others.

        Raises:
            RejectedError: `wrong_spec` or `bad_shape`: none of them can.
        """
        if message.spec_fingerprint != self._fingerprint:
            found, wanted = message.spec_fingerprint, self._fingerprint
            raise RejectedError("wrong_spec", f"spec fingerprint: expected {wanted}, got {found}", message.length)
        try:
            columns, errors = unpack_samples(self._spec, tensors)
        except ProtocolError as error:
            raise RejectedError("bad_shape", str(error), message.length) from None
        rejected = [RejectedError("bad_value", error.message, len(error.rows)) for error in errors]
        later = columns["policy_version"] > newest_version
        if count := int(later.sum()):
            words = f"its policy version is {columns['policy_version'].max()}, the newest that was published "
            rejected.append(RejectedError("bad_version", f"{words}{newest_version}", count))
            columns = keep_rows(columns, ~later)
        return ReceivedSamples(message.batch, columns), rejected
