"""Losses: pure functions on [T, B] tensors."""

from learner.algorithms.base import Algorithm, Loss, Settings, Trajectories
from learner.algorithms.ppo import ppo_loss
from learner.algorithms.reinforce import reinforce_loss
from learner.algorithms.vtrace import vtrace_loss

ALGORITHMS: dict[str, Algorithm] = {"ppo": ppo_loss, "vtrace": vtrace_loss, "reinforce": reinforce_loss}

__all__ = ["ALGORITHMS", "Algorithm", "Loss", "Settings", "Trajectories"]
