"""The outcome, shaping that is kept, and shaping that is taken back at the end."""

from __future__ import annotations

import pytest

from simul.common.config.games.pokemon import RewardsConfig
from simul.env_worker.games.pokemon.host.tally import RewardFacts, Tally
from simul.env_worker.games.pokemon.source.rewards import PARTS, RewardMeter, RewardWeights, reward_weights

WHOLE = (6.0, 6.0, 6.0, 6.0)
START = RewardFacts(WHOLE, 1)
PATH = [
    START,
    RewardFacts((6.0, 5.0, 5.5, 4.25), 4, Tally(1, 2, 0, 1)),
    RewardFacts((4.0, 5.0, 3.0, 4.0), 9, Tally(1, 3, 2, 1)),
    RewardFacts((1.0, 1.0, 0.2, 0.5), 20, Tally(4, 3, 5, 5)),
]
END = RewardFacts((1.0, 0.0, 0.2, 0.0), 21, Tally(4, 3, 5, 6))
ALL = dict(
    zip(PARTS, (2.0, 0.5, 0.25, 0.125, 0.1, 0.05, 0.01))
)  # different powers of everything: a part in the wrong place shows


def walk(weights: RewardWeights, outcome: int = 1) -> tuple[RewardMeter, float]:
    meter = RewardMeter(weights)
    return meter, sum(meter.advance(facts) for facts in PATH) + meter.finish(outcome, END)


def test_only_the_outcome_by_default():
    weights = reward_weights(RewardsConfig(), 0.999)
    assert weights.tally is None
    for outcome in (1, 0, -1):
        meter, total = walk(weights, outcome)
        assert total == outcome
        assert meter.parts == [outcome, 0, 0, 0, 0, 0, 0]


def test_parts_that_are_kept_sum_to_their_weight_times_what_happened():
    meter, total = walk(reward_weights(RewardsConfig(**ALL, potential_based=False), 0.9), -1)
    happened = (-1, 6 - 5, 1.0 - 0.0, 0.2 - 0.0, -4, -3, -20)
    assert meter.parts == pytest.approx([weight * n for weight, n in zip(ALL.values(), happened)])
    assert total == pytest.approx(sum(meter.parts))


@pytest.mark.parametrize("outcome", [1, 0, -1])
def test_potential_based_shaping_adds_up_to_nothing_over_a_finished_battle(outcome):
    meter, total = walk(reward_weights(RewardsConfig(**ALL), 1.0), outcome)
    assert total == pytest.approx(2.0 * outcome)
    assert meter.parts == pytest.approx([2.0 * outcome, 0, 0, 0, 0, 0, 0])


def test_the_discounted_return_does_not_depend_on_potential_based_shaping():
    """Ng, Harada, Russell 1999: the return from the first decision on differs by Phi of its state, here 0."""
    meter = RewardMeter(reward_weights(RewardsConfig(**ALL), 0.9))
    assert meter.advance(PATH[0]) == 0.0
    rewards = [meter.advance(facts) for facts in PATH[1:]]
    assert any(abs(reward) > 0.1 for reward in rewards)
    rewards.append(meter.finish(1, END))
    assert sum(reward * 0.9**t for t, reward in enumerate(rewards)) == pytest.approx(2.0 * 0.9**3)


def test_a_count_is_paid_at_the_end_or_as_a_potential_at_once():
    kept = RewardMeter(RewardWeights(pokemon_count=0.5, potential_based=False))
    at_once = RewardMeter(RewardWeights(pokemon_count=0.5))
    assert [kept.advance(facts) for facts in PATH] == [0.0] * 4
    assert kept.finish(1, END) == 1.5
    assert [at_once.advance(facts) for facts in PATH] == [0.0, 0.5, -1.0, 0.5]


def test_both_teams_start_level_even_where_not_all_of_a_team_was_brought():
    meter = RewardMeter(RewardWeights(pokemon_count=1.0))
    assert meter.advance(RewardFacts((3.0, 6.0, 3.0, 6.0), 1)) == 0.0
    assert meter.advance(RewardFacts((3.0, 5.0, 3.0, 5.0), 2)) == 1.0


def test_what_comes_before_the_first_turn_is_the_start():
    meter = RewardMeter(RewardWeights(pokemon_count=1.0, turn_penalty=1.0, potential_based=False))
    assert meter.advance(RewardFacts((6.0, 6.0, 6.0, 6.0), 0)) == 0.0  # team preview: three of the six will come
    assert meter.advance(RewardFacts((3.0, 6.0, 3.0, 6.0), 1)) == 0.0
    assert meter.advance(RewardFacts((3.0, 6.0, 3.0, 6.0), 2)) == -1.0
    assert meter.finish(1, RewardFacts((3.0, 5.0, 3.0, 5.0), 3)) == 1.0 + 1.0 - 1.0


def test_a_truncated_battle_keeps_the_potential_of_its_final_state():
    meter = RewardMeter(RewardWeights(hp_delta=0.1))
    meter.advance(START)
    assert meter.advance(RewardFacts((6.0, 4.0, 6.0, 4.0), 2)) == pytest.approx(0.2)
    assert meter.parts[PARTS.index("hp_delta")] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("config", "counted"),
    [
        (RewardsConfig(hp_delta=1, pokemon_count=1, turn_penalty=1), None),
        (RewardsConfig(hp_delta=1, potential_based=False), 0),
        (RewardsConfig(switch_penalty=1, free_switches=7), 7),
        (RewardsConfig(fail_immune=1), 0),
        (RewardsConfig(knockout=1), 0),
        (RewardsConfig(potential_based=False), None),
    ],
)
def test_lines_are_counted_only_where_a_part_needs_it(config, counted):
    assert reward_weights(config, 1.0).tally == counted
