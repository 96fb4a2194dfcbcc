"""Schedules: where each shape is at the start, half-way, at the horizon and behind it."""

import pytest

from simul.common.config.schema import LearnerConfig
from simul.learner.build import learning_schedule
from simul.learner.training.schedules import scheduled


@pytest.mark.parametrize(
    ("shape", "values"),
    [
        ("constant", [1.0, 1.0, 1.0, 1.0, 1.0]),
        ("linear", [1.0, 0.8, 0.6, 0.2, 0.2]),
        ("cosine", [1.0, 0.8828427, 0.6, 0.2, 0.2]),
        ("exponential", [1.0, 0.6687403, 0.4472136, 0.2, 0.2]),
    ],
)
def test_schedules_end_at_their_last_value(shape, values):
    assert [scheduled(shape, 1.0, 0.2, n, 100) for n in (0, 25, 50, 100, 500)] == pytest.approx(values)


def test_the_learner_takes_the_configured_shapes():
    options = LearnerConfig(
        learning_rate=1e-2, final_learning_rate=1e-4, learning_rate_schedule="exponential",
        entropy_coefficient=0.1, final_entropy_coefficient=0.0, entropy_schedule="constant",
    )  # fmt: skip
    schedule = learning_schedule(options, 1000)
    assert schedule.learning_rate(500) == pytest.approx(1e-3)
    assert schedule.settings(500).entropy_coefficient == 0.1
    plain = learning_schedule(LearnerConfig(learning_rate=1e-2, final_learning_rate=0.0), 1000)
    assert plain.learning_rate(500) == pytest.approx(5e-3)
