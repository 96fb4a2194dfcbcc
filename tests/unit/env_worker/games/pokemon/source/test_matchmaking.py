"""Which seats of a battle play with the learner's teams."""

import random

import pytest

from simul.common.config.games.pokemon import RewardsConfig
from simul.common.config.schema import OpponentsConfig
from simul.env_worker.games.pokemon.source.matchmaking import Matchmaker
from simul.env_worker.games.pokemon.source.rewards import reward_weights


@pytest.mark.parametrize(
    ("kind", "seats"),
    [
        ("self_play", {(True, True)}),
        ("past", {(True, False), (False, True)}),
        ("random", {(True, False), (False, True)}),
        ("damage", {(True, False), (False, True)}),
    ],
)
def test_only_the_learner_itself_plays_with_its_teams(kind, seats):
    opponents = OpponentsConfig(**{"self_play": 0.0, kind: 1.0})
    matchmaker = Matchmaker(
        opponents, reward_weights(RewardsConfig(), 1.0), seed="1", gen=9, record=True, greedy=False,
    )  # fmt: skip
    matchmaker.set_policies(["learner", "past/3"])
    battles = [matchmaker.make(number, 0, 0, random.Random(number)) for number in range(2)]
    assert {battle.of_learner for battle in battles} == seats
    assert all(battle.of_learner[battle.learner_seat] for battle in battles)


def test_results_of_battles_decide_which_past_self_plays():
    opponents = OpponentsConfig(self_play=0.0, past=1.0, past_by="hard")
    matchmaker = Matchmaker(
        opponents, reward_weights(RewardsConfig(), 1.0), seed="1", gen=9, record=True, greedy=False,
    )  # fmt: skip
    matchmaker.set_policies(["learner", "past/3", "past/4"])
    for number in range(200):
        battle = matchmaker.make(number, 0, 0, random.Random(number))
        matchmaker.add_result(battle, 1 if battle.past_self == "past/3" else -1)
    later = [matchmaker.make(number, 0, 0, random.Random(number)).past_self for number in range(200, 400)]
    assert later.count("past/4") > 190
