"""The server tells clients that train the learner's progress, and no others."""

from __future__ import annotations

from functools import partial

import pytest

from tests.support.learner_stand import LearnerStand
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


def test_a_learner_says_which_share_of_its_horizon_it_has_learned() -> None:
    with LearnerStand(total_decisions=96) as stand:
        client = stand.client("worker")
        assert client.progress == 0.0

        def told(share: float) -> bool:
            client.poll()
            return client.progress == pytest.approx(share)

        def learned(decisions: int) -> bool:
            return bool(stand.learner.metrics["decisions_learned"] == decisions)

        for decisions in (32, 64, 96, 128):  # two batches each
            stand.play(client)
            wait_for(partial(learned, decisions))
            wait_for(partial(told, min(decisions / 96, 1.0)))
