"""What a policy expected, beside what came."""

from __future__ import annotations

import pytest

from simul.common.config.loader import load_config
from simul.common.errors import ConfigError
from simul.common.protocol.decisions import Action, Decision
from simul.common.protocol.messages import ABORTED, START, TERMINATED, TRUNCATED
from simul.env_worker.calibration import ValueCalibration
from simul.launch.evaluation.calibration import (
    calibration_error,
    calibration_rows,
    calibration_text,
    check_outcomes,
    check_returns,
)


def play(calibration, episode, values, rewards, outcome=1, end=TERMINATED, policy="learner"):
    """A session that earns `rewards` behind its decisions; the last one comes with its end."""
    before = [0.0, *rewards]
    for step, value in enumerate(values):
        calibration.take_decisions(
            [Decision(0, 0, episode, step, flags=0 if step else START, reward=before[step], policy=policy)]
        )
        calibration.take_actions([Action(0, 0, episode, step, 0, 3, 0.0, value, 7)])
    calibration.take_decisions([Decision(0, 0, episode, len(values), kind=end, reward=before[-1], outcome=outcome)])
    calibration.take_actions([Action(0, 0, episode, len(values), 0, -1, 0.0, 0.0, 7)])


def test_earned_and_value_together_are_compared_with_the_games_won():
    calibration = ValueCalibration()
    play(calibration, 1, values=[0.1, -0.1], rewards=[0.4, 0.59])  # expects 0.1, then 0.3; shaping leaves a trace
    play(calibration, 2, values=[0.1], rewards=[-1.0], outcome=-1)
    play(calibration, 3, values=[1.1], rewards=[0.01], outcome=0)
    rows = calibration_rows({"calibration": calibration.figures()})
    assert [row["decisions"] for row in rows] == [2, 1, 1]
    assert [row["expected"] for row in rows] == pytest.approx([0.55, 0.65, 1.05])
    assert [row["won"] for row in rows] == [0.5, 1.0, 0.5]
    assert calibration_error(rows) == pytest.approx((2 * 0.05 + 0.35 + 0.55) / 4)
    assert "        2            0.550  0.500" in calibration_text(rows)


def test_games_that_pay_something_else_than_their_outcome_have_no_table():
    calibration = ValueCalibration()
    play(calibration, 1, values=[0.1], rewards=[1.0])
    play(calibration, 2, values=[0.1], rewards=[0.5])
    figures = {"calibration": calibration.figures()}
    assert calibration_rows(figures) == []
    with pytest.raises(ConfigError, match="1 of these sessions earned something else"):
        check_outcomes(figures)


@pytest.mark.parametrize(
    ("game", "seats", "setting", "sentence"),
    [
        ("cartpole", 1, "seed=1", r"gymnasium:CartPole-v1 has 1 seat\. Leave"),
        ("ofc", 2, "ofc.players=2", "Open Face Chinese pays points"),
        ("blokus", 4, "blokus.variant=classic", "has 4 seats"),
        ("openspiel", 2, "openspiel.reward_scale=0.5", r"openspiel\.reward_scale is 0\.5"),
        ("pokemon", 2, "pokemon.rewards.win_loss=0.5", r"win_loss is 0\.5"),
        ("pokemon", 2, "pokemon.rewards.potential_based=false", "is false and keeps pokemon_count, hp_delta"),
    ],
)
def test_a_configuration_whose_returns_are_no_outcomes_is_refused(game, seats, setting, sentence):
    with pytest.raises(ConfigError, match=f"expected a game of two seats that pays 1, 0 or -1 at its end.*{sentence}"):
        check_returns(load_config(game, [setting]), seats)
    check_returns(load_config("pokemon"), 2)


@pytest.mark.parametrize(("end", "policy"), [(ABORTED, "learner"), (TRUNCATED, "learner"), (TERMINATED, "eval/1")])
def test_what_is_cut_short_or_of_another_policy_does_not_count(end, policy):
    calibration = ValueCalibration()
    play(calibration, 1, values=[0.9], rewards=[1.0], end=end, policy=policy)
    assert calibration_rows({"calibration": calibration.figures()}) == []


def test_values_beyond_every_return_are_in_the_outer_bins():
    calibration = ValueCalibration()
    play(calibration, 1, values=[7.0, -7.0], rewards=[0.0, 1.0])
    assert [row["expected"] for row in calibration_rows({"calibration": calibration.figures()})] == [-3.0, 4.0]
