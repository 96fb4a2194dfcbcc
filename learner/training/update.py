"""One weight update: epochs of minibatches, each forward, loss, backward, clipped Adam step."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from simul.common.errors import WeightsError
from simul.common.nets.base import RecurrentNetwork
from simul.common.nets.normalization import NormalizedNetwork
from simul.common.runtime.metrics import Stages
from simul.learner.algorithms import Algorithm, Loss, Settings
from simul.learner.algorithms.opponent import labelled_rows, with_opponent_loss
from simul.learner.io.unrolls import ReceivedUnroll
from simul.learner.ranks import ALONE, Ranks
from simul.learner.training.minibatches import Minibatch, make_minibatch
from simul.learner.training.normalization import ObservationStatistics, RewardScale, RunningStatistics
from simul.learner.training.optimizers import Adam

STAGES = ("wait", "batch", "update", "publish", "save", "report")  # of the learner's loop
LARGE_REWARD = 1e3  # a larger reward is the likely cause of a gradient that is not finite


@dataclass(frozen=True)
class UpdateResult:
    """Figures of an update, means over its minibatches.

    Attributes:
        figures: losses and the rest of `simul.learner.reports.FIGURES`.
        ratio_error: float32 [n], |ratio - 1| of the steps chosen by the weights before this update (unrolls of lag 0
            throughout, first minibatch): the difference between the server's and the learner's precision.
        learned: bool [n], True for unrolls, or drawn samples, of this rank that an optimizer step was made with.
        steps: optimizer steps.
        skipped: minibatches without a step because the gradient was not finite.
        cause: that of the last of these, as a sentence; else empty.
    """

    figures: dict[str, float]
    ratio_error: NDArray[np.float32]
    learned: NDArray[np.bool_]
    steps: int
    skipped: int
    cause: str = ""


class OptimizerStep:
    """Backward, clipping and one step of the optimizer. All ranks make the same step.

    Attributes:
        skipped_in_a_row: minibatches without a step since the last one with a step.
    """

    def __init__(
        self, network: nn.Module, optimizer: torch.optim.Optimizer, max_gradient_norm: float, ranks: Ranks = ALONE
    ) -> None:
        self.skipped_in_a_row = 0
        self._ranks = ranks
        self._network = network
        self._optimizer = optimizer
        self._max_gradient_norm = max_gradient_norm

    def set_learning_rate(self, learning_rate: float) -> None:
        """Of the steps from now on."""
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate

    def step(self, loss: Loss) -> dict[str, float] | None:
        """One step. Returns the loss's figures and the gradient's norm before clipping.

        None, and no step, where the gradient is not finite.
        """
        self._optimizer.zero_grad(set_to_none=True)
        loss.total.backward()
        shown = loss.figures if self._ranks.count == 1 else self._add_up(loss.figures)
        parameters = [parameter for parameter in self._network.parameters() if parameter.grad is not None]
        norm = get_total_norm([parameter.grad for parameter in parameters if parameter.grad is not None])
        if not (number := float(norm)) < math.inf:  # NaN included; not clipped, so that the cause stays visible
            self.skipped_in_a_row += 1
            return None
        clip_grads_with_norm_(parameters, self._max_gradient_norm, norm)
        self._optimizer.step()
        self.skipped_in_a_row = 0
        names, values = zip(*shown.items())
        numbers = torch.stack(values).tolist()  # one device-to-host sync a minibatch
        return dict(zip(names, numbers)) | {"gradient_norm": number}

    def _add_up(self, figures: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Replace each gradient by its sum over all ranks; returns the figures' sums. One collective.

        Before the norm is taken, so that all ranks clip, or skip, alike.
        """
        parameters = [parameter for parameter in self._network.parameters() if parameter.requires_grad]
        own = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        names, values = zip(*figures.items())
        has_gradient = torch.tensor([p.grad is not None for p in parameters])
        behind = [torch.stack(values).to(own[0]), has_gradient.to(own[0])]
        flat = self._ranks.add(torch.cat([*(gradient.flatten() for gradient in own), *behind]))
        *gradients, sums, found = flat.split([*(gradient.numel() for gradient in own), len(names), len(parameters)])
        for parameter, gradient, used in zip(parameters, gradients, found.tolist()):
            parameter.grad = gradient.view_as(parameter) if used else None
        return dict(zip(names, sums.unbind()))

    def describe_gradient(self, loss: Loss, largest_reward: float) -> str:
        """The likely reason why the last gradient is not finite. Device-to-host syncs here: rare."""
        gradients = {name: p.grad for name, p in self._network.named_parameters() if p.grad is not None}
        bad = [name for name, gradient in gradients.items() if not torch.isfinite(gradient).all()]
        if bad:
            what = f"{len(bad)} of {len(gradients)} gradients are not finite, nearest to the loss that of {bad[-1]}"
        else:
            largest = max(gradients, key=lambda name: float(gradients[name].abs().max()))
            what = f"the gradients' norm overflows, the largest is that of {largest}"
        advice = "scale the rewards to about 1" if largest_reward > LARGE_REWARD else "lower learner.learning_rate"
        return (
            f"{what}; the loss is {float(loss.total.detach()):.3g}, the largest absolute reward in these unrolls "
            f"{largest_reward:.3g}. Advice: {advice}."
        )


def mean_figures(shown: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Means over the minibatches of an update that have the figure, nan where none has; {} without a minibatch."""
    table = {name: np.array([figures[name] for figures in shown]) for name in (shown[0] if shown else ())}
    known = {name: column[~np.isnan(column)] for name, column in table.items()}
    return {name: float(column.mean()) if column.size else math.nan for name, column in known.items()}


class Updater:
    """Learns from unrolls. See `simul.learner.training.trainer.NetworkUpdater`."""

    def __init__(
        self,
        network: RecurrentNetwork,
        algorithm: Algorithm,
        *,
        discount: float,
        minibatches: int,
        epochs: int,
        max_gradient_norm: float,
        target_kl: float = 0.0,
        precision: torch.dtype = torch.float32,
        zero_state: bool = False,
        seed: int = 0,
        normalize_rewards: bool = False,
        stages: Stages | None = None,
        ranks: Ranks = ALONE,
        nothing: ReceivedUnroll | None = None,
        burn_in: int = 0,
    ) -> None:
        """`stages`: those of the learner's loop, see STAGES.

        `target_kl`: of the behaviour policy and the current one, as the algorithm reports it; after the first pass, an
        update ends with the first minibatch above it. 0: never.
        `burn_in`: see `make_minibatch`.
        `nothing`: with several ranks, the `empty_unroll` for a minibatch of which this one has no part.
        """
        self._ranks = ranks
        self._nothing = nothing
        self._stages = stages or Stages(STAGES)
        self.network = network
        self.device = next(network.parameters()).device
        self.optimizer = Adam(network.parameters(), eps=1e-5, fused=self.device.type in ("cpu", "cuda"))
        self._optimizer_step = OptimizerStep(network, self.optimizer, max_gradient_norm, ranks)
        self._algorithm = algorithm
        self._discount = discount
        self._minibatches = minibatches
        self._epochs = epochs
        self._target_kl = target_kl or math.inf
        self._precision = precision
        self._zero_state = zero_state
        self._burn_in = burn_in
        self._random = np.random.default_rng(seed + ranks.rank)
        self._reward_scale = RewardScale(discount) if normalize_rewards else None
        self._statistics: list[RunningStatistics] = [self._reward_scale] if self._reward_scale else []
        if isinstance(network, NormalizedNetwork):
            self._statistics.append(ObservationStatistics(network))

    @property
    def skipped_in_a_row(self) -> int:
        """Minibatches without a step since the last one with a step."""
        return self._optimizer_step.skipped_in_a_row

    def update(
        self, unrolls: Sequence[ReceivedUnroll], version: int, learning_rate: float, settings: Settings
    ) -> UpdateResult:
        """Learn from each unroll `epochs` times; `version` is that of the weights before.

        With several ranks each gives its own unrolls, one of them at least one.
        """
        self._optimizer_step.set_learning_rate(learning_rate)
        for statistics in self._statistics:
            statistics.count(unrolls, self._ranks)
        most = max(number for (number,) in self._ranks.gather_numbers([len(unrolls)]))
        shown: list[dict[str, float]] = []
        ratio_error = np.zeros(0, np.float32)
        learned = np.zeros(len(unrolls), np.bool_)
        skipped, cause = 0, ""
        in_a_pass = min(self._minibatches, most)
        for number, part in enumerate(self._draw(len(unrolls), in_a_pass)):
            minibatch = make_minibatch(self._choose(unrolls, part), self._discount, self.device, self._burn_in)
            if self._reward_scale is not None:
                minibatch = _with_rewards(minibatch, self._reward_scale.scaled(minibatch.trajectories.reward))
            self._stages.lap("batch")
            loss = self._loss(minibatch, settings)
            if number == 0:
                # Only unrolls that the current weights began: else the recurrent state is of older weights.
                fresh = (minibatch.policy_version[:1] == version) & minibatch.trajectories.valid  # (T, B)
                ratio_error = (loss.log_ratio.exp() - 1).abs()[fresh].cpu().numpy()
            figures = self._optimizer_step.step(loss)
            self._stages.lap("update")
            if figures is None:
                trajectories = minibatch.trajectories
                largest = float((trajectories.reward * trajectories.valid).abs().max()) if len(part) else 0.0
                skipped, cause = skipped + 1, self._optimizer_step.describe_gradient(loss, largest)
                continue
            learned[part] = True
            shown.append(figures)
            if number + 1 >= in_a_pass and figures["kl"] > self._target_kl:
                break
        return UpdateResult(mean_figures(shown), ratio_error, learned, len(shown), skipped, cause)

    def statistics(self) -> dict[str, Tensor]:
        """Running statistics of what was learned from, for a checkpoint."""
        return {
            f"{statistics.name}.{name}": value
            for statistics in self._statistics
            for name, value in statistics.moments.state().items()
        }

    def load_statistics(self, saved: Mapping[str, Tensor]) -> None:
        """Go on from `statistics()` of an earlier life; what it did not count begins afresh.

        Raises WeightsError where they do not fit.
        """
        for statistics in self._statistics:
            start = f"{statistics.name}."
            state = {name.removeprefix(start): value for name, value in saved.items() if name.startswith(start)}
            try:
                if state:
                    statistics.moments.load(state)
            except WeightsError as error:
                raise WeightsError(f"statistics of {statistics.name}: {error}") from None

    def _draw(self, unrolls: int, minibatches: int) -> Iterator[NDArray[np.int64]]:
        """Indices of each minibatch's unrolls; empty where there are fewer unrolls."""
        for _ in range(self._epochs):
            yield from np.array_split(self._random.permutation(unrolls), minibatches)

    def _choose(self, unrolls: Sequence[ReceivedUnroll], part: NDArray[np.int64]) -> list[ReceivedUnroll]:
        if not len(part):
            assert self._nothing is not None
            return [self._nothing]
        return [unrolls[i] for i in part]

    def _loss(self, minibatch: Minibatch, settings: Settings) -> Loss:
        trajectories = minibatch.trajectories
        labelled = labelled_rows(trajectories)
        if not self.network.predicts_opponent or not settings.opponent_coefficient:
            labelled = None
        lowered = self._precision != torch.float32
        with torch.autocast(self.device.type, dtype=self._precision, enabled=lowered):
            logits, value, opponent = self._unroll(minibatch, labelled)
        if lowered:
            logits, value = logits.float(), value.float()
        loss = self._algorithm(trajectories, logits[:-1], value, settings, self._ranks)
        if labelled is None or opponent is None or trajectories.label is None:
            return loss
        label, coefficient = trajectories.label[labelled], settings.opponent_coefficient
        return with_opponent_loss(loss, label, opponent.float(), coefficient, self._ranks)

    def _unroll(self, batch: Minibatch, labelled: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor | None]:
        """Logits [T + 1, B, A] and value [T + 1, B] of the current weights, and the opponent's logits [N, K, C].

        `labelled`: bool [T, B], the N rows that these are wanted of; None: of none.
        """
        observation, mask, state, lengths = batch.observation, batch.mask, batch.state, batch.lengths
        shape = observation.shape[:2]
        wanted = None if labelled is None else F.pad(labelled, (0, 0, 0, 1))  # the last row only bootstraps
        if self._zero_state:  # every row is a sequence of its own, of length 1 or 0
            seen = torch.arange(shape[0])[:, None] < lengths
            observation, mask = observation.flatten(0, 1)[None], mask.flatten(0, 1)[None]
            state, lengths = self.network.initial_state(shape.numel()), seen.flatten().long()
            wanted = None if wanted is None else wanted.flatten()[None]
        opponent = None
        if wanted is None:
            logits, value = self.network.unroll(observation, mask, state, lengths)
        else:
            logits, value, opponent = self.network.unroll_predicting(observation, mask, state, lengths, wanted)
        if self._zero_state:
            return logits[0].unflatten(0, shape), value[0].unflatten(0, shape), opponent
        return logits, value, opponent


def _with_rewards(minibatch: Minibatch, reward: Tensor) -> Minibatch:
    return dataclasses.replace(minibatch, trajectories=dataclasses.replace(minibatch.trajectories, reward=reward))
