"""From a game's returns to values in [-1, 1], which the network learns and the search backs up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simul.common.config.search import SearchConfig


def outcome_of(returns: Sequence[float], config: SearchConfig) -> NDArray[np.float64]:
    """float64 [seats]: the returns divided by `return_scale` and clipped to [-1, 1].

    With `outcome: ranks`, of each seat the seats of lower return less those of higher, divided by the other seats: 1
    for a win, -1 for the last place, 0 for equals.
    """
    values = np.asarray(returns, np.float64)
    if config.outcome == "returns":
        return np.clip(values / config.return_scale, -1.0, 1.0)
    return np.sign(values[:, None] - values).sum(axis=1) / max(len(values) - 1, 1)
