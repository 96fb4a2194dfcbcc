"""Samples as they arrive from a server, checked, and as they are stored. Pure: no sockets, no files.

N samples, D = observation size, A = actions, K entries of all policy targets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simul.common.errors import ProtocolError, SimulError
from simul.common.protocol.messages import SampleBatch
from simul.common.protocol.sample_checks import keep_rows, unpack_samples
from simul.common.protocol.specs import GameSpec


class RejectedSamples(SimulError):
    """`count` samples that cannot be learned from. The receiver drops them and counts them by `cause`."""

    def __init__(self, cause: str, message: str, count: int) -> None:
        super().__init__(message)
        self.cause = cause
        self.count = count


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
    ) -> tuple[ReceivedSamples, list[RejectedSamples]]:
        """The samples that can be learned from, and what is wrong with the others.

        Raises:
            RejectedSamples: `wrong_spec` or `bad_shape`: none of them can.
        """
        if message.spec_fingerprint != self._fingerprint:
            found, wanted = message.spec_fingerprint, self._fingerprint
            raise RejectedSamples("wrong_spec", f"spec fingerprint: expected {wanted}, got {found}", message.length)
        try:
            columns, errors = unpack_samples(self._spec, tensors)
        except ProtocolError as error:
            raise RejectedSamples("bad_shape", str(error), message.length) from None
        rejected = [RejectedSamples("bad_value", error.message, len(error.rows)) for error in errors]
        later = columns["policy_version"] > newest_version
        if count := int(later.sum()):
            words = f"its policy version is {columns['policy_version'].max()}, the newest that was published "
            rejected.append(RejectedSamples("bad_version", f"{words}{newest_version}", count))
            columns = keep_rows(columns, ~later)
        return ReceivedSamples(message.batch, columns), rejected


@dataclass(frozen=True)
class SampleLayout:
    """How a sample is stored in bytes: observation, packed mask, ids int32 [k], probabilities float32 [k]."""

    spec: GameSpec

    @property
    def observation_bytes(self) -> int:
        """Of one observation."""
        return self.spec.observation_size * self.spec.dtype().itemsize

    @property
    def mask_bytes(self) -> int:
        """Of one packed mask."""
        return -(-self.spec.num_actions // 8)

    @property
    def least_bytes(self) -> int:
        """Of a sample without a policy target."""
        return self.observation_bytes + self.mask_bytes

    @property
    def most_bytes(self) -> int:
        """Of a sample whose policy target holds every action."""
        return self.least_bytes + 8 * self.spec.num_actions

    def rows(self, columns: Mapping[str, NDArray[Any]]) -> list[NDArray[np.uint8]]:
        """Each sample's bytes."""
        count = columns["target_count"]
        fixed = np.concatenate((_as_bytes(columns["observation"]), columns["mask"]), axis=1)
        ends = np.cumsum(count)
        targets = columns["target_action"].view(np.uint8), columns["target_probability"].view(np.uint8)
        return [
            np.concatenate((fixed[i], *(entries[4 * (end - k) : 4 * end] for entries in targets)))
            for i, (end, k) in enumerate(zip(ends.tolist(), count.tolist()))
        ]

    def columns(self, rows: list[NDArray[np.uint8]]) -> dict[str, NDArray[Any]]:
        """The inverse of `rows`, without outcome and version."""
        seen, fixed = self.observation_bytes, self.least_bytes
        head = np.stack([row[:fixed] for row in rows])
        middle = [fixed + (len(row) - fixed) // 2 for row in rows]
        ids = np.concatenate([row[fixed:at] for row, at in zip(rows, middle)])
        probabilities = np.concatenate([row[at:] for row, at in zip(rows, middle)])
        return {
            "observation": np.ascontiguousarray(head[:, :seen]).view(self.spec.dtype()),
            "mask": head[:, seen:],
            "target_count": np.array([(len(row) - fixed) // 8 for row in rows], np.int32),
            "target_action": ids.view(np.int32),
            "target_probability": probabilities.view(np.float32),
        }


def _as_bytes(rows: NDArray[Any]) -> NDArray[np.uint8]:
    """[N, D] -> uint8 [N, D * itemsize]."""
    return np.ascontiguousarray(rows).view(np.uint8)
