"""A whole batch through an engine at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simul.inference_server.engine.engine import Outputs, PolicyEngine


def act(
    engine: PolicyEngine,
    observation: NDArray[Any],
    mask: NDArray[np.uint8],
    read_rows: NDArray[np.int64],
    write_rows: NDArray[np.int64],
    noise: NDArray[np.float32],
    temperature: NDArray[np.float32] | float = 1.0,
) -> Outputs:
    """Stage, forward and sample.

    Args:
        engine: whose table is read and written.
        observation: wire dtype [B, D]; mask: uint8 [B, A], 1 = legal.
        read_rows, write_rows: int64 [B], rows of the table; no two rows of a batch write the same one.
        noise: float32 [B, A], Gumbel noise, zeros for greedy rows.
        temperature: float32 [B], the logits are divided by it.
    """
    n = len(read_rows)
    staging = engine.stage(n)
    staging.observation[:n], staging.mask[:n], staging.noise[:n] = observation, mask, noise
    staging.read_rows[:n], staging.write_rows[:n], staging.temperature[:n] = read_rows, write_rows, temperature
    engine.forward(n)
    return engine.sample()
