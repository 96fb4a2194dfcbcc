"""When a forward raises: halve the batch until the rows that make it raise stand alone; only they fail. Pure.

A result that is not finite raises nothing: the result itself shows which rows it concerns.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from simul.inference_server.batching.batcher import Portion

P = TypeVar("P", bound=Portion)

FAILED = "the forward of this row failed"  # text for the sender; no internals of the server
NOT_FINITE = "the network's output is not finite"


def describe_not_finite_result(observation: NDArray[Any]) -> str:
    """Error text for rows whose result holds NaN or infinity. observation: [M, D], of each row."""
    largest = float(np.abs(observation).max())
    return (
        "the network's answer to this row is not finite; expected observations of ordinary size, in this row and those "
        f"before it: the largest number here is {largest:g}"
    )


def split_in_halves(batch: list[P]) -> tuple[list[P], list[P]]:
    """The first and the second half of a batch's rows; of one row, the first half is empty."""
    first: list[P] = []
    second: list[P] = []
    room = sum(map(len, batch)) // 2
    for portion in batch:
        if room >= len(portion):
            first.append(portion)
        elif room:
            first.append(portion.pick(slice(room)))
            second.append(portion.pick(slice(room, None)))
        else:
            second.append(portion)
        room -= min(room, len(portion))
    return first, second
