"""Evaluations of positions that were asked before, of one version of the weights."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

LEAST_PRIOR = 1e-12  # its logarithm stays finite


class CachedEvaluation(NamedTuple):
    """What the network said of a position.

    Attributes:
        priors: float32 [K], of the legal actions in order.
        values: float64 [seats].
    """

    priors: NDArray[np.float32]
    values: NDArray[np.float64]


def logits_of(priors: NDArray[np.float32]) -> NDArray[np.float32]:
    """float32 [K]: logarithms of the priors, finite."""
    return np.log(np.maximum(priors, LEAST_PRIOR))


def position_key(actor: int, actions: NDArray[np.intp], observations: NDArray[Any]) -> bytes:
    """16 bytes over everything the network is shown of a position: equal keys have equal evaluations.

    Args:
        observations: wire dtype [R, D], of the seats that are asked.
    """
    digest = hashlib.blake2b(observations.ravel().data, digest_size=16, salt=actor.to_bytes(2, "little"))
    digest.update(actions.ravel().data)
    return digest.digest()


class EvaluationCache:
    """The newest `capacity` evaluations. Another version of the weights empties it.

    An older version comes where a server begins again from a checkpoint; its number may come again with other weights.

    Attributes:
        version: of the weights whose evaluations are kept.
        hits, misses: of `find`.
    """

    def __init__(self, capacity: int) -> None:
        self.version = -1
        self.hits = self.misses = 0
        self._capacity = capacity
        self._kept: OrderedDict[bytes, CachedEvaluation] = OrderedDict()  # oldest first

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, key: bytes) -> CachedEvaluation | None:
        """The evaluation of the position by the version that answered last."""
        found = self._kept.get(key)
        if found is None:
            self.misses += 1
        else:
            self.hits += 1
        return found

    def keep(self, key: bytes, version: int, evaluation: CachedEvaluation) -> None:
        """Store an answer of the server."""
        if version != self.version:
            self.version = version
            self._kept.clear()
        if not self._capacity:
            return
        if len(self._kept) >= self._capacity and key not in self._kept:
            self._kept.popitem(last=False)
        self._kept[key] = evaluation
