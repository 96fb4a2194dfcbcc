"""Defaults of the section `learner` by kind of game, which a game's description names. Every key that is set wins."""

from __future__ import annotations

from collections.abc import Mapping

# Start and final value, in a straight line over total_decisions.
SCHEDULES = (("learning_rate", "final_learning_rate"), ("entropy_coefficient", "final_entropy_coefficient"))

# What a kind leaves out has the default of `LearnerConfig`.
LEARNER_PRESETS: Mapping[str, Mapping[str, float]] = {
    # Episodes are cheap and few decisions long, and runs are short: each batch is used for many optimiser steps.
    "small games": {
        "batch_steps": 2048,
        "minibatches": 4,
        "epochs": 4,
        "learning_rate": 1e-3,
        "final_learning_rate": 1e-4,
        "total_decisions": 1_000_000,
        "discount": 0.99,
    },
    # Battles give more decisions than an update can use often, and a return is hundreds of decisions away.
    "battles": {},
}
