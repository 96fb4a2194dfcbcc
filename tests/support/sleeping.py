"""CartPole whose steps take their time: a run of it leaves the processor to others."""

from __future__ import annotations

import time
from typing import Any

import gymnasium

STEP_SEC = 0.001


class Sleeping(gymnasium.Wrapper):
    """Each step sleeps for STEP_SEC."""

    def __init__(self) -> None:
        super().__init__(gymnasium.make("CartPole-v1"))

    def step(self, action: Any) -> Any:
        time.sleep(STEP_SEC)
        return self.env.step(action)
