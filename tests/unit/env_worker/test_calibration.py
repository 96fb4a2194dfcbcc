"""What a policy expected, beside what came."""

from __future__ import annotations

import pytest

from simul.common.protocol.decisions import Action, Decision
from simul.common.protocol.messages import ABORTED, START, TERMINATED, TRUNCATED
from simul.env_worker.calibration import ValueCalibration
from simul.launch.evaluation.calibration import calibration_error, calibration_rows, calibration_text


def play(calibration, episode, values, rewards, end=TERMINATED, policy="learner"):
    """A session that earns `rewards` behind its decisions; the last one comes with its end."""
    before = [0.0, *rewards]
    for step, value in enumerate(values):
        calibration.take_decisions(
            [Decision(0, 0, episode, step, flags=0 if step else START, reward=before[step], policy=policy)]
        )
        calibration.take_actions([Action(0, 0, episode, step, 0, 3, 0.0, value, 7)])
    calibration.take_decisions([Decision(0, 0, episode, len(values), kind=end, reward=before[-1])])
    calibration.take_actions([Action(0, 0, episode, len(values), 0, -1, 0.0, 0.0, 7)])


def test_earned_and_value_together_are_compared_with_the_whole_return():
    calibration = ValueCalibration()
    play(calibration, 1, values=[0.1, -0.1], rewards=[0.4, 0.6])  # expects 0.1, then 0.3; comes to 1
    play(calibration, 2, values=[0.1], rewards=[-1.0])
    rows = calibration_rows({"calibration": calibration.figures()})
    assert [row["decisions"] for row in rows] == [2, 1]
    assert [row["expected"] for row in rows] == pytest.approx([0.1, 0.3])
    assert [row["final"] for row in rows] == pytest.approx([0.0, 1.0])
    assert calibration_error(rows) == pytest.approx((2 * 0.1 + 0.7) / 3)
    assert "        2            0.550  0.500" in calibration_text(rows)


@pytest.mark.parametrize(("end", "policy"), [(ABORTED, "learner"), (TRUNCATED, "learner"), (TERMINATED, "eval/1")])
def test_what_is_cut_short_or_of_another_policy_does_not_count(end, policy):
    calibration = ValueCalibration()
    play(calibration, 1, values=[0.9], rewards=[1.0], end=end, policy=policy)
    assert calibration_rows({"calibration": calibration.figures()}) == []


def test_values_beyond_every_return_are_in_the_outer_bins():
    calibration = ValueCalibration()
    play(calibration, 1, values=[7.0, -7.0], rewards=[0.0, 1.0])
    assert [row["expected"] for row in calibration_rows({"calibration": calibration.figures()})] == [-7.0, 7.0]
