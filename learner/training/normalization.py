"""Running statistics of what was learned from: of observations, for the network, and of returns, to scale rewards.

All unrolls of an update are counted before it, each once; every rank counts those of all ranks. The statistics are
saved with the optimizer's moments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simul.common.errors import WeightsError
from simul.common.nets.normalization import CLIP, EPSILON, GroupColumns, NormalizedNetwork
from simul.learner.io.unrolls import ReceivedUnroll
from simul.learner.ranks import ALONE, Ranks

ASSUMED = 100_000  # observations behind statistics that came with weights alone, as those of an exported policy do
MOST_SESSIONS = 100_000  # whose returns are carried from one unroll to the next; ends that never came are forgotten


class RunningMoments:
    """Mean and variance of a stream, merged batch by batch (Chan, Golub and LeVeque 1979), in float64.

    Attributes:
        count: int64, how many were counted. mean, variance: float64; 0 and 1 where `count` is 0. All of the shape of
            one.
    """

    def __init__(self, shape: tuple[int, ...] = ()) -> None:
        self.count: NDArray[np.int64] = np.zeros(shape, np.int64)
        self.mean: NDArray[np.float64] = np.zeros(shape)
        self.variance: NDArray[np.float64] = np.ones(shape)

    def add(self, batch: NDArray[np.float64]) -> None:
        """Count a batch, float64 [N, ...]."""
        if len(batch):
            self.merge(len(batch), batch.mean(axis=0), batch.var(axis=0))

    def merge(self, count: int | NDArray[np.int64], mean: NDArray[np.float64], variance: NDArray[np.float64]) -> None:
        """Count what another one has counted."""
        total = self.count + count
        share = count / np.maximum(total, 1)
        delta = mean - self.mean
        spread = self.variance * (1 - share) + variance * share + np.square(delta) * (share * (1 - share))
        self.mean = self.mean + delta * share
        self.variance = np.where(total > 0, spread, self.variance)
        self.count = total

    def state(self) -> dict[str, Tensor]:
        """Tensors for `load`."""
        arrays = {"count": self.count, "mean": self.mean, "variance": self.variance}
        return {name: torch.tensor(array) for name, array in arrays.items()}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Go on from `state()` of another life; one count for all, as older checkpoints have, is that of each.

        Raises WeightsError.
        """
        for name, own in self.state().items():
            expected, value = f"{own.dtype} {list(own.shape)}", state.get(name)
            if value is None:
                raise WeightsError(f"{name}: expected {expected}, got none")
            if value.dtype != own.dtype or value.shape not in ({own.shape, ()} if name == "count" else {own.shape}):
                raise WeightsError(f"{name}: expected {expected}, got {value.dtype} {list(value.shape)}")
            if name != "mean" and (value < 0).any():
                raise WeightsError(f"{name}: expected no number below 0, got {value.min():g}")
        self.mean, self.variance = state["mean"].double().numpy(), state["variance"].double().numpy()
        self.count = np.broadcast_to(state["count"].numpy(), self.mean.shape).copy()


class RunningStatistics(Protocol):
    """One kind of statistics. `name`: of its tensors in a checkpoint."""

    name: str
    moments: RunningMoments

    def count(self, unrolls: Sequence[ReceivedUnroll], ranks: Ranks = ALONE) -> None:
        """Count the unrolls of one update, those of all ranks."""


class ObservationStatistics:
    """Counts the observations that actions were chosen for, and writes the buffers of the network.

    Where nothing is counted yet and the buffers are not new, they stand for ASSUMED observations.
    """

    name = "observations"

    def __init__(self, network: NormalizedNetwork) -> None:
        self._network = network
        self.moments = RunningMoments(tuple(network.observation_mean.shape))

    def count(self, unrolls: Sequence[ReceivedUnroll], ranks: Ranks = ALONE) -> None:
        """See `RunningStatistics`. The last row of an unroll only bootstraps, or begins the next one."""
        if not self.moments.count.any():
            self._begin()
        rows = [unroll.arrays["observation"][: unroll.length] for unroll in unrolls]
        own = RunningMoments(self.moments.mean.shape)
        if rows:
            seen = np.concatenate(rows).astype(np.float64)
            own.add(seen)
            for group in self._network.groups if len(seen) else ():
                self._share(own, seen, group)
        figures = {"count": own.count, "mean": own.mean, "variance": own.variance}
        for each in ranks.gather_arrays(figures):
            self.moments.merge(each["count"], each["mean"], each["variance"])
        self._network.observation_mean.copy_(torch.from_numpy(self.moments.mean.astype(np.float32)))
        self._network.observation_variance.copy_(torch.from_numpy(self.moments.variance.astype(np.float32)))

    def _share(self, own: RunningMoments, seen: NDArray[np.float64], group: GroupColumns) -> None:
        """Give the blocks of a group the statistics and number of all entities that are present in `seen` [N, D]."""
        entities = seen[:, group.blocks]  # [N, count, width]
        there = entities.reshape(-1, entities.shape[2])
        if group.present is not None:
            there = there[seen[:, group.present].reshape(-1) > 0]
        own.count[group.blocks] = len(there)
        if len(there):
            own.mean[group.blocks], own.variance[group.blocks] = there.mean(axis=0), there.var(axis=0)

    def _begin(self) -> None:
        mean, variance = self._network.observation_mean, self._network.observation_variance
        if mean.any() or (variance != 1).any():
            self.moments.merge(ASSUMED, mean.double().cpu().numpy(), variance.double().cpu().numpy())


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

    def count(self, unrolls: Sequence[ReceivedUnroll], ranks: Ranks = ALONE) -> None:
        """See `RunningStatistics`. Unrolls of a session come in order; to several ranks in one update, in any."""
        own = [(unroll.session, unroll.first_step, unroll.length, unroll.over) for unroll in unrolls]
        pieces = [(*facts, unroll.arrays["reward"]) for facts, unroll in zip(own, unrolls)]
        if ranks.count > 1:
            rewards = np.concatenate([np.zeros(0, np.float32), *(unroll.arrays["reward"] for unroll in unrolls)])
            pieces = _in_order(
                ranks.gather_arrays({"facts": np.array(own, np.int64).reshape(-1, 4), "reward": rewards})
            )
        returns: list[float] = []
        for session, first_step, length, over, earned in pieces:
            step, value = self._open.pop(session, (0, 0.0))
            if step != first_step:
                value = 0.0
            for reward in earned.tolist():
                value = self._discount * value + reward
                returns.append(value)
            if not over:
                self._open[session] = first_step + length, value
        while len(self._open) > MOST_SESSIONS:
            del self._open[next(iter(self._open))]
        self.moments.add(np.array(returns))

    def scaled(self, reward: Tensor) -> Tensor:
        """`reward` over the standard deviation of the returns, clipped at CLIP."""
        deviation = float(np.sqrt(self.moments.variance + EPSILON))
        return (reward / deviation).clamp(-CLIP, CLIP)


def _in_order(gathered: Sequence[Mapping[str, NDArray[Any]]]) -> list[tuple[int, int, int, bool, NDArray[np.float32]]]:
    """(session, first step, length, over, rewards) of the unrolls of all ranks, those of a session in order."""
    pieces = []
    for each in gathered:
        ends = np.cumsum(each["facts"][:, 2])
        for (session, first_step, length, over), end in zip(each["facts"].tolist(), ends.tolist()):
            pieces.append((session, first_step, length, bool(over), each["reward"][end - length : end]))
    return sorted(pieces, key=lambda piece: piece[1])
