"""Losses: pure functions, of trajectories [T, B], or of positions [B] (`alphazero`)."""

from simul.learner.algorithms.base import Algorithm, Loss, Settings, Trajectories
from simul.learner.algorithms.ppo import ppo_loss
from simul.learner.algorithms.reinforce import reinforce_loss
from simul.learner.algorithms.vtrace import vtrace_loss

ALPHAZERO = "alphazero"  # learns from samples of a replay buffer, the others from unrolls
ALGORITHMS: dict[str, Algorithm] = {"ppo": ppo_loss, "vtrace": vtrace_loss, "reinforce": reinforce_loss}

__all__ = ["ALGORITHMS", "ALPHAZERO", "Algorithm", "Loss", "Settings", "Trajectories"]
