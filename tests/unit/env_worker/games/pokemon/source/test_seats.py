"""A seat's rewards at a truncated end, where each change of the potential is paid once, and its labels."""

from __future__ import annotations

import numpy as np
import pytest

from simul.common.protocol.messages import RECORD, START, TRUNCATED
from simul.env_worker.games.pokemon.host.host_messages import BattleEnd, SeatRow
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


def _recorded(labels: int, flags: int = START | RECORD) -> PolicySeat:
    seat = PolicySeat(0, 1, 0, "learner", flags, RewardWeights(), labels=labels)
    seat.decide(row(1, 6.0))
    return seat


def test_a_label_comes_with_the_next_decision_or_the_end_of_recorded_sessions():
    seat, told = _recorded(1), row(2, 5.0)._replace(label=(8, -1))
    assert seat.decide(told).label == (8,)
    assert _recorded(2).decide(told).label == (8, -1)
    assert _recorded(1, START).decide(told).label == ()
    assert _recorded(2).decide(row(2, 5.0)).label == (), "nothing is known"
    end = seat.terminated(1, BattleEnd(0, 1, 9, "win", labels=((3, 4), (5, 6))))
    assert end is not None
    assert end.label == (5,)


def test_a_refused_action_is_asked_for_again_without_a_label():
    seat = _recorded(1)
    seat.redo = True
    assert seat.decide(row(1, 6.0)._replace(label=(8, -1))).label == ()


def test_a_decision_that_was_taken_back_hands_its_label_to_the_end():
    seat = _recorded(1)
    seat.withdraw(seat.decide(row(2, 5.0)._replace(label=(8, -1))))
    end = seat.truncated()
    assert end is not None
    assert end.label == (8,)
