"""Random samples of searched positions, as columns of SAMPLES or one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simul.common.client.samples import pack_samples
from simul.common.protocol.masks import pack_masks
from simul.common.protocol.samples import Sample
from simul.common.protocol.specs import GameSpec


class SampleDraw:
    """Samples that depend on the seed and their order only."""

    def __init__(self, spec: GameSpec, seed: int = 0, most_actions: int = 3) -> None:
        self._spec = spec
        self._random = np.random.default_rng(seed)
        self._most_actions = most_actions

    def sample(self, *, version: int = 0, targeted: bool = True) -> Sample:
        """One with up to `most_actions` entries in its target; none where not `targeted`."""
        random, spec = self._random, self._spec
        legal = random.random(spec.num_actions) < 0.5
        legal[random.integers(spec.num_actions)] = True
        count = min(int(random.integers(1, self._most_actions + 1)), int(legal.sum())) if targeted else 0
        actions = np.sort(random.permutation(np.flatnonzero(legal))[:count]).astype(np.int32)
        weights = random.random(count) + 0.1
        return Sample(
            observation=(100 * random.random(spec.observation_size)).astype(spec.dtype()),
            mask=pack_masks(legal),
            outcome=float(np.float32(random.uniform(-1, 1))),
            policy_version=version,
            actions=actions,
            probabilities=(weights / weights.sum()).astype(np.float32) if count else weights.astype(np.float32),
            ending=random.integers(0, 256, sum(spec.ending_sizes), np.uint8),
        )

    def columns(self, rows: int, *, version: int = 0) -> dict[str, NDArray[Any]]:
        """Columns of a SAMPLES message, every third row without a target."""
        samples = [self.sample(version=version, targeted=i % 3 != 2) for i in range(rows)]
        return pack_samples(0, samples, self._spec)[1]
