"""Traffic that any network of the game can take."""

import numpy as np

from simul.common.protocol.messages import START
from simul.common.protocol.specs import GameSpec, Slice
from simul.inference_server.loadtest.traffic import Seats, masks, observations

LAYOUT = (Slice("a", 0, 2, low=-2.0, high=-1.0), Slice("b", 2, 3, kind="id", vocabulary=7))
SPEC = GameSpec("test/mixed", 5, 6, observation_dtype="float16", layout=LAYOUT)


def test_observations_keep_to_the_layout() -> None:
    drawn = observations(SPEC, 200, np.random.default_rng(0))
    assert drawn.dtype == np.float16
    assert drawn[:, :2].min() >= -2.0
    assert drawn[:, :2].max() <= -1.0
    assert set(np.unique(drawn[:, 2:]).tolist()) == set(range(7))


def test_every_mask_leaves_an_action() -> None:
    drawn = masks(SPEC, 500, np.random.default_rng(0))
    assert drawn.sum(axis=1).min() >= 1
    assert 0.4 < drawn.mean() < 0.7


def test_all_seats_cost_no_copy_and_some_are_theirs() -> None:
    seats = Seats(SPEC, 4, seed=1)
    everyone = seats.rows(np.arange(4))
    assert everyone is seats.rows(np.arange(4))
    some = seats.rows(np.array([3, 1]))
    assert some.keys[:, 0].tolist() == [3, 1]
    assert np.array_equal(some.observation, everyone.observation[[3, 1]])
    shuffled = seats.rows(np.array([1, 0, 3, 2]))
    assert shuffled.keys[:, 0].tolist() == [1, 0, 3, 2]


def test_steps_and_episodes() -> None:
    seats = Seats(SPEC, 3, seed=1)
    seats.advance(np.array([0, 2]))
    seats.advance(np.array([2]))
    seats.restart(np.array([2]))
    rows = seats.rows(np.arange(3))
    assert rows.keys[:, 2].tolist() == [0, 0, 1]
    assert rows.keys[:, 3].tolist() == [1, 0, 0]
    assert rows.flags.tolist() == [0, START, START]
