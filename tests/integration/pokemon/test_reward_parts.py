"""Composite rewards on the real simulator: every part pays, and zero-sum where they must be."""

from __future__ import annotations

from collections import defaultdict

import pytest

from simul.common.config.games.pokemon import PokemonConfig, RewardsConfig
from simul.env_worker.games.pokemon.source.rewards import PARTS
from tests.support.battles import Table, make_source

EVERY_PART = RewardsConfig(
    win_loss=1.0, knockout=1.0, pokemon_count=1.0, hp_delta=1.0, fail_immune=1.0, switch_penalty=1.0, turn_penalty=1.0,
    potential_based=False,
)  # fmt: skip
Rewards = dict[tuple[int, int, int], list[float]]  # (env, seat, episode) -> one a decision, and the end's


def played(rewards: RewardsConfig, battles: int = 8, gen: int = 9) -> tuple[Rewards, dict[str, float]]:
    """Self-play of random legal actions: every reward, and the sums of the parts."""
    config = PokemonConfig(format=f"gen{gen}randombattle", rewards=rewards)
    source = make_source(config, seed=3, episodes=battles, discount=0.99)
    found: Rewards = defaultdict(list)
    source.start()
    try:
        table = Table(source)
        while not source.idle():
            for made in table.turn():
                if made.attempt == 0:
                    found[made.env, made.seat, made.episode].append(made.reward)
        metrics = source.metrics()
    finally:
        source.close()
    assert metrics["episodes"]["finished"] == battles
    return found, metrics["reward_parts"]


@pytest.mark.slow  # .ci/long runs that of generation 9
@pytest.mark.parametrize("gen", [1, 4, 9])
def test_every_part_pays(gen):
    rewards, parts = played(EVERY_PART, gen=gen)
    assert sum(map(sum, rewards.values())) == pytest.approx(sum(parts.values()))
    assert tuple(parts) == PARTS
    # Both seats are in the sums: what one wins the other loses, and penalties are everybody's.
    assert [parts[name] for name in PARTS[:3]] == [0.0, 0.0, 0.0]
    assert parts["hp_delta"] == pytest.approx(0.0, abs=1.0)  # hp of the foe comes in hundredths
    assert all(parts[name] <= -5 for name in PARTS[4:])


def test_potential_based_parts_leave_the_outcome_alone():
    weights = {name: 1.0 for name in PARTS}
    rewards, _ = played(RewardsConfig(**weights), battles=3)
    for mine in rewards.values():
        value = sum(reward * 0.99**step for step, reward in enumerate(mine[1:]))
        assert abs(value) == pytest.approx(0.99 ** (len(mine) - 2))
