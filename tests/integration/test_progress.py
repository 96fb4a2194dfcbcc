"""How far the learner is reaches the clients that train, with its weights, and nobody else."""

from __future__ import annotations

from tests.support.stand import Stand
from tests.support.waiting import wait_for


def test_holders_of_the_token_are_told_and_others_are_not() -> None:
    with Stand() as stand:
        early = stand.client("worker")
        assert early.progress == 0.0
        stand.learner.publish("past/1", 1, stand.weights(seed=1), resident=("learner", "past/1"), progress=0.9)
        stand.learner.publish("learner", 1, stand.weights(seed=2), resident=("learner", "past/1"), progress=0.25)

        def told() -> float:
            early.poll()
            return early.progress

        wait_for(lambda: told() == 0.25)
        assert stand.client("another").progress == 0.25, "from WELCOME on"
        stranger = stand.client("stranger", training=False)
        wait_for(lambda: stranger.poll() is not None and "past/1" in stranger.policies)
        assert stranger.progress == 0.0
