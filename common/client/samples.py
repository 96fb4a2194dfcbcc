"""SAMPLES for `InferenceClient`: packs positions of searched games, and keeps them until they are answered.

client.submit_samples([Sample(...), ...])
client.samples.waiting, client.samples.accepted, client.samples.refused
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simul.common.client.evaluation import check_bytes
from simul.common.client.requests import PendingRequest, PendingRequests
from simul.common.protocol.codec import Tensors
from simul.common.protocol.masks import packed_width
from simul.common.protocol.messages import Error, Sampled, Samples
from simul.common.protocol.samples import Sample
from simul.common.protocol.specs import GameSpec

MESSAGE_BYTES = 4 * 1024 * 1024


class _PendingSamples(PendingRequest, kw_only=True):
    rows: int


class PendingSamples(PendingRequests[_PendingSamples]):
    """Every sample submitted, until it is answered.

    submitted = accepted + refused (by code) + waiting, in samples.

    Attributes:
        accepted: samples that the server took. waiting: samples not answered yet.
        refused: samples that it did not take, by error code.
        errors: the first sentence of each code, until the caller empties it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.submitted = self.accepted = self.waiting = 0
        self.refused: Counter[str] = Counter()
        self.errors: dict[str, str] = {}

    def add(self, message: Samples, tensors: Tensors) -> None:
        """Register a message before it is sent."""
        rows = len(tensors["outcome"])
        self.submitted += rows
        self.waiting += rows
        self._pending[message.id] = _PendingSamples(message, tensors, rows=rows)

    def apply_sampled(self, message: Sampled) -> bool:
        """Settle an answered message. False where it was answered before."""
        if (pending := self._pending.pop(message.id, None)) is None:
            return False
        self.waiting -= pending.rows
        self.accepted += message.accepted
        for error in message.errors:
            self._refuse(error.code, error.message, len(error.rows))
        return True

    def apply_error(self, error: Error) -> None:
        """Settle a message that was refused as a whole."""
        pending = self._pending.pop(error.id)
        self.waiting -= pending.rows
        self._refuse(error.code, error.message, pending.rows)

    def _refuse(self, code: str, message: str, rows: int) -> None:
        self.refused[code] += rows
        self.errors.setdefault(code, message)


def split_samples(samples: Sequence[Sample], most_rows: int) -> Iterator[Sequence[Sample]]:
    """Parts that fit a message each: at most `most_rows` samples, and about MESSAGE_BYTES."""
    start = size = 0
    for at, sample in enumerate(samples):
        if at > start and (at - start == most_rows or size + sample.nbytes > MESSAGE_BYTES):
            yield samples[start:at]
            start, size = at, 0
        size += sample.nbytes
    if start < len(samples):
        yield samples[start:]


def pack_samples(number: int, samples: Sequence[Sample], spec: GameSpec) -> tuple[Samples, dict[str, NDArray[Any]]]:
    """The SAMPLES message `number` and its tensors."""
    tensors: dict[str, NDArray[Any]] = {
        "observation": np.stack([sample.observation for sample in samples]).astype(spec.dtype(), copy=False),
        "mask": np.stack([sample.mask for sample in samples]),
        "target_count": np.array([len(sample.actions) for sample in samples], np.int32),
        "target_action": np.concatenate([sample.actions for sample in samples]).astype(np.int32),
        "target_probability": np.concatenate([sample.probabilities for sample in samples]).astype(np.float32),
        "outcome": np.array([sample.outcome for sample in samples], np.float32),
        "policy_version": np.array([sample.policy_version for sample in samples], np.int64),
    }
    if sum(spec.ending_sizes):
        tensors["ending"] = np.stack([sample.ending for sample in samples])
    return Samples(id=number), tensors


def check_samples(samples: Sequence[Sample], spec: GameSpec) -> None:
    """Raises ValueError where an array of a sample does not fit the game spec."""
    mask_bytes = packed_width(spec.num_actions)
    for sample in samples:
        check_bytes(sample.observation, spec)
        for name, array, shape in (
            ("observation", sample.observation, (spec.observation_size,)),
            ("packed mask", sample.mask, (mask_bytes,)),
            ("probabilities", sample.probabilities, np.shape(sample.actions)),
            ("ending", sample.ending, (sum(spec.ending_sizes),)),
        ):
            if np.shape(array) != shape:
                raise ValueError(
                    f"the {name} of a sample has shape {list(np.shape(array))}; the game {spec.name} expects "
                    f"{list(shape)}"
                )
        if sample.mask.dtype != np.uint8:
            raise ValueError(f"the packed mask of a sample has dtype {sample.mask.dtype}; expected uint8 (pack_masks)")
        if sample.ending.dtype != np.uint8:
            raise ValueError(f"the ending of a sample has dtype {sample.ending.dtype}; expected uint8")
