"""Running statistics of what was learned from: of observations, for the network, and of returns, to scale rewards.

All unrolls of an update are counted before it, each once. The statistics are saved with the optimizer's moments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simul.common.nets.normalization import CLIP, EPSILON, NormalizedNetwork
from simul.learner.batches import ReceivedUnroll

MOST_SESSIONS = 100_000  # whose returns are carried from one unroll to the next; ends that never came are forgotten


class RunningMoments:
    """Mean and variance of a stream, merged batch by batch (Chan, Golub and LeVeque 1979), in float64.

    Attributes:
        count: how many were counted. mean, variance: float64, of the shape of one; 0 and 1 while `count` is 0.
    """

    def __init__(self, shape: tuple[int, ...] = ()) -> None:
        self.count = 0
        self.mean: NDArray[np.float64] = np.zeros(shape)
        self.variance: NDArray[np.float64] = np.ones(shape)

    def add(self, batch: NDArray[np.float64]) -> None:
        """Count a batch, float64 [N, ...]."""
        if not len(batch):
            return
        total = self.count + len(batch)
        delta = batch.mean(axis=0) - self.mean
        squares = self.variance * self.count + batch.var(axis=0) * len(batch)
        squares += np.square(delta) * (self.count * len(batch) / total)
        self.mean = self.mean + delta * (len(batch) / total)
        self.variance = squares / total
        self.count = total

    def state(self) -> dict[str, Tensor]:
        """Tensors for `load`."""
        arrays = {"count": np.array(self.count), "mean": self.mean, "variance": self.variance}
        return {name: torch.tensor(array) for name, array in arrays.items()}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Go on from `state()` of another life."""
        self.count = int(state["count"])
        self.mean, self.variance = state["mean"].double().numpy(), state["variance"].double().numpy()


class Statistics(Protocol):
    """One kind of statistics. `name`: of its tensors in a checkpoint."""

    name: str
    moments: RunningMoments

    def count(self, unrolls: Sequence[ReceivedUnroll]) -> None:
        """Count the unrolls of one update."""


class ObservationStatistics:
    """Counts the observations that actions were chosen for, and writes the buffers of the network."""

    name = "observations"

    def __init__(self, network: NormalizedNetwork) -> None:
        self._network = network
        self.moments = RunningMoments(tuple(network.observation_mean.shape))

    def count(self, unrolls: Sequence[ReceivedUnroll]) -> None:
        """See `Statistics`. The last row of an unroll only bootstraps, or begins the next one."""
        rows = [unroll.arrays["observation"][: unroll.length] for unroll in unrolls]
        self.moments.add(np.concatenate(rows).astype(np.float64))
        self._network.observation_mean.copy_(torch.from_numpy(self.moments.mean.astype(np.float32)))
        self._network.observation_variance.copy_(torch.from_numpy(self.moments.variance.astype(np.float32)))


class RewardScale:
    """Scales rewards by the standard deviation of the discounted return so far (as VecNormalize of Stable-Baselines3).

    The discounted return of a session is R_t = discount R_{t-1} + r_t, from 0 at its first step, or where an unroll of
    it is missing.
    """

    name = "returns"

    def __init__(self, discount: float) -> None:
        self._discount = discount
        self._open: dict[int, tuple[int, float]] = {}  # by session: the step that comes next, the return before it
        self.moments = RunningMoments()

    def count(self, unrolls: Sequence[ReceivedUnroll]) -> None:
        """See `Statistics`. Unrolls of a session come in order."""
        returns: list[float] = []
        for unroll in unrolls:
            step, value = self._open.pop(unroll.session, (0, 0.0))
            if step != unroll.first_step:
                value = 0.0
            for reward in unroll.arrays["reward"].tolist():
                value = self._discount * value + reward
                returns.append(value)
            if not unroll.over:
                self._open[unroll.session] = unroll.first_step + unroll.length, value
        while len(self._open) > MOST_SESSIONS:
            del self._open[next(iter(self._open))]
        self.moments.add(np.array(returns))

    def scaled(self, reward: Tensor) -> Tensor:
        """`reward` over the standard deviation of the returns, clipped at CLIP."""
        deviation = float(np.sqrt(self.moments.variance + EPSILON))
        return (reward / deviation).clamp(-CLIP, CLIP)
