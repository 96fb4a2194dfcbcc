"""Losses: pure functions on [T, B] tensors."""

from simul.learner.algorithms.base import Algorithm, Loss, Settings, Trajectories
from simul.learner.algorithms.ppo import ppo_loss
from simul.learner.algorithms.reinforce import reinforce_loss
from simul.learner.algorithms.vtrace import vtrace_loss

ALGORITHMS: dict[str, Algorithm] = {"ppo": ppo_loss, "vtrace": vtrace_loss, "reinforce": reinforce_loss}

__all__ = ["ALGORITHMS", "Algorithm", "Loss", "Settings", "Trajectories"]
