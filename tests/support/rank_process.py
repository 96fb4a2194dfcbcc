"""One rank of a learner in a process of its own: makes the updates of `cases`, and writes what came out.

python -m tests.support.rank_process RANK FOLDER
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor, nn

from simul.common.nets.base import RecurrentNetwork
from simul.common.protocol.specs import GameSpec
from simul.learner import distributed_ranks
from simul.learner.algorithms import ALGORITHMS, Settings
from simul.learner.distributed_ranks import DistributedRanks
from simul.learner.io.unrolls import ReceivedUnroll
from simul.learner.ranks import ALONE, RankLostError, Ranks
from simul.learner.training.minibatches import empty_unroll
from simul.learner.training.sample_trainer import SampleUpdater, split_columns
from simul.learner.training.update import Updater

SPEC = GameSpec("numbers", 3, 4)
RANKS, UPDATES, STATE = 2, 5, 6
# Lengths of the unrolls of each rank in each update: unequal, one rank nearly empty, one with nothing at all.
LENGTHS = (
    ((8, 1, 5, 3), (8, 2)),
    ((7, 8, 8, 2, 1), (1,)),
    ((), (3, 4, 8)),
    ((6,), (2, 2, 5, 8)),
    ((8, 8), ()),
)


class SmallNetwork(RecurrentNetwork):
    """A tanh RNN in float64: the networks of Simul compute in float32."""

    state_size = STATE

    def __init__(self) -> None:
        super().__init__()
        self.into, self.back = nn.Linear(SPEC.observation_size, STATE), nn.Linear(STATE, STATE)
        self.policy, self.value = nn.Linear(STATE, SPEC.num_actions), nn.Linear(STATE, 1)
        self.unused = nn.Linear(2, 2)  # has no gradient on any rank

    def forward(self, observation: Tensor, mask: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """One step."""
        state = torch.tanh(self.into(observation) + self.back(state))
        return self.policy(state), self.value(state)[:, 0], state


def make_network() -> SmallNetwork:
    """The same on every rank."""
    torch.manual_seed(3)
    return SmallNetwork().double()


def make_unrolls(update: int, rank: int) -> list[ReceivedUnroll]:
    """What a rank receives for an update."""
    random = np.random.default_rng([update, rank])
    return [_unroll(random, length, session) for session, length in enumerate(LENGTHS[update][rank], 100 * rank)]


def _unroll(random: np.random.Generator, length: int, session: int) -> ReceivedUnroll:
    mask = random.random((length + 1, SPEC.num_actions)) < 0.7
    mask[:, 0] = True
    action = np.array([random.choice(np.flatnonzero(row)) for row in mask[:length]], np.int32)
    arrays = {
        "observation": random.normal(size=(length + 1, SPEC.observation_size)),
        "mask": mask.astype(np.uint8),
        "action": action,
        "log_prob": np.log(random.uniform(0.1, 0.9, length)),
        "reward": random.normal(size=length),
        "policy_version": np.zeros(length, np.int64),
        "state": random.normal(size=STATE),
    }
    return ReceivedUnroll(length, bool(random.random() < 0.5), arrays, session=session, over=True)


def make_nothing() -> ReceivedUnroll:
    """`empty_unroll` in float64."""
    empty = empty_unroll(SPEC, STATE)
    arrays = {name: a.astype(np.float64) if a.dtype == np.float32 else a for name, a in empty.arrays.items()}
    return dataclasses.replace(empty, arrays=arrays)


OPTIONS = {"discount": 0.9, "minibatches": 2, "epochs": 2, "max_gradient_norm": 0.5}


class TogetherUpdater(Updater):
    """Learns alone from minibatches that are those of the ranks put together; the unrolls of rank 0 come first."""

    numbers: Sequence[int] = ()  # unrolls of each rank

    def _draw(self, unrolls: int, minibatches: int) -> Iterator[NDArray[np.int64]]:
        self._randoms = getattr(self, "_randoms", [np.random.default_rng(rank) for rank in range(RANKS)])
        parts = min(self._minibatches, max(self.numbers))
        for _ in range(self._epochs):
            drawn = [random.permutation(number) for random, number in zip(self._randoms, self.numbers)]
            first, second = (np.array_split(order, parts) for order in drawn)
            for mine, other in zip(first, second):
                yield np.concatenate([mine, other + self.numbers[0]])


def learn(algorithm: str, ranks: Ranks = ALONE) -> dict[str, Tensor]:
    """The weights and the figures after UPDATES updates; with `ALONE`, from the unrolls of all ranks."""
    kind = TogetherUpdater if ranks.count == 1 else Updater
    updater = kind(
        make_network(), ALGORITHMS[algorithm], **OPTIONS, normalize_rewards=algorithm == "ppo", ranks=ranks,
        nothing=make_nothing(),
    )  # fmt: skip
    figures = {}
    for update in range(UPDATES):
        unrolls = [make_unrolls(update, rank) for rank in range(RANKS)]
        own = unrolls[ranks.rank]
        if isinstance(updater, TogetherUpdater):
            updater.numbers, own = [len(part) for part in unrolls], [unroll for part in unrolls for unroll in part]
        result = updater.update(own, 0, 1e-2, Settings())
        assert result.learned.all()
        figures = result.figures
    shown = {f"figure {name}": torch.tensor(value, dtype=torch.float64) for name, value in figures.items()}
    return {name: value.clone() for name, value in updater.network.state_dict().items()} | shown


def make_samples(rows: int) -> dict[str, NDArray[np.generic]]:
    """Columns as `messages.Samples` declares them; all actions are legal."""
    random = np.random.default_rng(rows)
    count = random.integers(0, 4, rows).astype(np.int32)
    return {
        "observation": random.normal(size=(rows, SPEC.observation_size)).astype(np.float32),
        "mask": np.full((rows, 1), 0b1111, np.uint8),
        "target_count": count,
        "target_action": np.concatenate([np.arange(n) for n in count]).astype(np.int32),
        "target_probability": np.concatenate([np.full(n, 1 / max(n, 1)) for n in count]).astype(np.float32),
        "outcome": random.uniform(-1, 1, rows).astype(np.float32),
        "policy_version": np.zeros(rows, np.int64),
    }


def learn_samples(rows: int, ranks: Ranks = ALONE) -> dict[str, Tensor]:
    """Gradients and figures of alphazero's minibatch of `rows` samples, which rank 0 deals. float32."""
    network = make_network().float()
    updater = SampleUpdater(
        network, num_actions=SPEC.num_actions, minibatches=1, max_gradient_norm=1e9, weight_decay=0.0, ranks=ranks
    )
    parts = split_columns(make_samples(rows), ranks.count) if ranks.rank == 0 else ()
    result, _, outcomes = updater.update([ranks.deal_arrays(parts)], 1e-3, Settings())
    assert result.steps == 1
    assert ranks.count > 1 or len(outcomes) == rows
    gradients = {f"gradient {name}": p.grad for name, p in network.named_parameters() if p.grad is not None}
    return gradients | {f"figure {name}": torch.tensor(value) for name, value in result.figures.items()}


WRITE_SEC = 8.0  # of a rank 0 whose disk is slow; a collective may take half as long
SAMPLES = (9, 1)  # of the second one a rank gets nothing


def main() -> int:
    """Writes FOLDER/RANK-ALGORITHM.safetensors; then rank 0 writes for longer than a collective may take.

    At last rank 1 hangs where rank 0 has saved. Exit code 1: rank 0 waited for it for longer than for a collective.
    """
    rank, folder = int(sys.argv[1]), Path(sys.argv[2])
    with closing(DistributedRanks(rank, RANKS, folder / "meeting", torch.device("cpu"), lambda: False)) as ranks:
        for algorithm in ALGORITHMS:
            save_file(learn(algorithm, ranks), folder / f"{rank}-{algorithm}.safetensors")
        for rows in SAMPLES:
            save_file(learn_samples(rows, ranks), folder / f"{rank}-alphazero{rows}.safetensors")
    distributed_ranks.TIMEOUT_SEC = WRITE_SEC / 2
    with closing(DistributedRanks(rank, RANKS, folder / "saved", torch.device("cpu"), lambda: False)) as ranks:
        if rank == 0:
            time.sleep(WRITE_SEC)
        ranks.wait_for_save()
        assert ranks.gather_numbers([rank]) == [[0], [1]]
    with closing(DistributedRanks(rank, RANKS, folder / "hung", torch.device("cpu"), lambda: False)) as ranks:
        if rank == 1:
            time.sleep(WRITE_SEC)
        try:
            ranks.wait_for_save()
        except RankLostError:
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
