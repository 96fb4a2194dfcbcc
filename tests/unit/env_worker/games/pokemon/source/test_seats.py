"""A seat's rewards at a truncated end: each change of the potential is paid once."""

from __future__ import annotations

import numpy as np
import pytest

from simul.common.protocol.messages import TRUNCATED
from simul.env_worker.games.pokemon.host.host_messages import SeatRow
from simul.env_worker.games.pokemon.host.tally import RewardFacts
from simul.env_worker.games.pokemon.source.rewards import RewardWeights
from simul.env_worker.games.pokemon.source.seats import PolicySeat
from simul.env_worker.games.pokemon.tables.layout import NUM_ACTIONS, OBSERVATION_SIZE

DISCOUNT = 0.9


def row(turn: int, foe_hp: float) -> SeatRow:
    facts = RewardFacts((6.0, 6.0, 6.0, foe_hp), turn)
    return SeatRow(0, 0, turn, turn, facts, np.zeros(OBSERVATION_SIZE, np.float16), np.ones(NUM_ACTIONS, np.uint8))


@pytest.fixture
def seat():
    made = PolicySeat(0, 0, 0, "learner", 0, RewardWeights(hp_delta=1.0, discount=DISCOUNT))
    assert made.decide(row(1, 6.0)).reward == 0.0
    assert made.decide(row(2, 5.0)).reward == pytest.approx(DISCOUNT)
    return made


def test_a_decision_that_was_taken_back_hands_its_reward_to_the_end(seat):
    open_decision = seat.decide(row(3, 3.0))
    carried = seat.withdraw(open_decision)
    end = seat.truncated()
    assert (end.kind, end.step) == (TRUNCATED, 2)
    assert carried + end.reward == pytest.approx(DISCOUNT * 3.0 - 1.0)


def test_an_end_without_news_pays_what_the_discount_takes(seat):
    assert seat.truncated().reward == pytest.approx(DISCOUNT * 1.0 - 1.0)
