"""Outcome and potential-based shaping."""

import pytest

from env_worker.games.pokemon.rewards import RewardMeter, RewardWeights

START = (6.0, 6.0, 6.0, 6.0)


def test_only_the_outcome_by_default():
    meter = RewardMeter(RewardWeights(2.0))
    assert meter.advance((3.0, 6.0, 1.5, 6.0)) == 0.0
    assert RewardMeter(RewardWeights(2.0)).finish(-1) == -2.0
    assert RewardMeter(RewardWeights(2.0)).finish(0) == 0.0
    assert meter.finish(1) == 2.0


@pytest.mark.parametrize("outcome", [1, 0, -1])
def test_shaping_adds_up_to_nothing_over_a_finished_battle(outcome):
    meter = RewardMeter(RewardWeights(1.0, 0.1, 0.5))
    path = [START, (6.0, 5.0, 5.5, 4.25), (4.0, 5.0, 3.0, 4.0), (1.0, 0.0, 0.2, 0.0)]
    total = sum(meter.advance(standing) for standing in path) + meter.finish(outcome)
    assert total == pytest.approx(outcome)
    assert meter.parts[0] == outcome
    assert meter.parts[1:] == pytest.approx([0.0, 0.0])


def test_a_faint_of_the_foe_is_worth_its_weight_at_once():
    meter = RewardMeter(RewardWeights(1.0, 0.25, 0.0))
    assert meter.advance(START) == 0.0
    assert meter.advance((6.0, 5.0, 6.0, 5.0)) == 0.25
    assert meter.advance((5.0, 5.0, 5.0, 5.0)) == -0.25


def test_hp_counts_in_full_bars():
    meter = RewardMeter(RewardWeights(1.0, 0.0, 0.5))
    assert meter.advance((6.0, 6.0, 6.0, 5.5)) == 0.25


def test_a_truncated_battle_keeps_the_potential_of_its_final_state():
    meter = RewardMeter(RewardWeights(1.0, 0.1, 0.0))
    meter.advance(START)
    assert meter.advance((6.0, 4.0, 6.0, 4.0)) == pytest.approx(0.2)
    assert meter.parts[1] == pytest.approx(0.2)
