"""What the ranks of a learner say to each other. A learner of one process is `ALONE`; several: `distributed_ranks`.

Every method is a collective: all ranks call the same ones in the same order, or all of them fail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray
from torch import Tensor

from simul.common.errors import SimulError

Arrays = Mapping[str, NDArray[Any]]


class RankLostError(SimulError):
    """Another rank ended, or said nothing for too long. Caught by `main()`: the process ends, all ranks start again."""


class Ranks(Protocol):
    """The processes of one learner. Rank 0 owns weights, league, replay and checkpoints."""

    @property
    def rank(self) -> int:
        """Number of this process, from 0."""

    @property
    def count(self) -> int:
        """How many processes there are."""

    def wait_for_first(self) -> None:
        """Wait until rank 0 calls this, for minutes if need be."""

    def wait_for_save(self) -> None:
        """Wait until rank 0 calls this after it has written to disk, which may take SAVE_PATIENCE_SEC."""

    def gather_numbers(self, numbers: Sequence[int]) -> list[list[int]]:
        """By rank: the numbers that it gave; each rank gives as many."""

    def gather_arrays(self, arrays: Arrays) -> list[dict[str, NDArray[Any]]]:
        """By rank: the arrays that it gave, of any shapes."""

    def deal_arrays(self, parts: Sequence[Arrays]) -> dict[str, NDArray[Any]]:
        """Rank r gets `parts[r]` of rank 0; the parts of the others are not used."""

    def broadcast_bytes(self, data: bytes) -> bytes:
        """`data` of rank 0."""

    def add(self, tensor: Tensor) -> Tensor:
        """Sum over all ranks, without gradient; each rank gives the same shape. `tensor` may be overwritten."""


class Alone:
    """The only process of a learner: nothing is sent, nothing is copied."""

    rank, count = 0, 1

    def wait_for_first(self) -> None:
        """See `Ranks`."""

    def wait_for_save(self) -> None:
        """See `Ranks`."""

    def gather_numbers(self, numbers: Sequence[int]) -> list[list[int]]:
        """See `Ranks`."""
        return [list(numbers)]

    def gather_arrays(self, arrays: Arrays) -> list[dict[str, NDArray[Any]]]:
        """See `Ranks`."""
        return [dict(arrays)]

    def deal_arrays(self, parts: Sequence[Arrays]) -> dict[str, NDArray[Any]]:
        """See `Ranks`."""
        return dict(parts[0])

    def broadcast_bytes(self, data: bytes) -> bytes:
        """See `Ranks`."""
        return data

    def add(self, tensor: Tensor) -> Tensor:
        """See `Ranks`."""
        return tensor


ALONE = Alone()


def split_steps(waiting: Sequence[int], steps: int) -> list[int]:
    """How many of `steps` each rank takes, as equally as what is `waiting` at each allows; together `steps`, or all.

    Each takes whole unrolls of at least so many steps. Pure.
    """
    taken = [0] * len(waiting)
    left, order = steps, sorted(range(len(waiting)), key=lambda rank: (waiting[rank], rank))
    for position, rank in enumerate(order):  # the emptiest first: the others divide what it lacks
        taken[rank] = min(waiting[rank], -(-left // (len(order) - position)))
        left -= taken[rank]
    return taken
