"""Rows of several policies in one message run as batches of their own."""

from __future__ import annotations

import threading

from tests.support.stand import Stand, exchange
from tests.support.waiting import PATIENCE_SEC, wait_for


def test_a_reply_does_not_wait_for_the_batch_of_another_policy() -> None:
    with Stand() as stand:
        client, policies = stand.client("a"), stand.server._weight_updates._policies
        stand.learner.publish("past/1", 1, stand.weights(seed=1), resident=("learner", "past/1"))
        wait_for(lambda: policies.names == ("learner", "past/1"))
        names = ("learner", "past/1", "learner", "past/1")
        exchange(client, [stand.decision(env, 0, policy=name) for env, name in enumerate(names)])
        engine, inside, go = policies["past/1"].engine, threading.Event(), threading.Event()
        forward = engine.forward

        def held(rows: int) -> None:
            inside.set()
            assert go.wait(PATIENCE_SEC)
            forward(rows)

        engine.forward = held
        try:
            client.submit([stand.decision(env, 1) for env in range(4)])
            assert inside.wait(PATIENCE_SEC)
            answered = []
            wait_for(lambda: answered.extend(client.poll().actions) or len(answered) == 2)
            assert sorted((a.env, a.policy_version) for a in answered) == [(0, 0), (2, 0)]
            assert client.waiting == 2
        finally:
            go.set()
        wait_for(lambda: answered.extend(client.poll().actions) or not client.waiting)
        assert sorted((a.env, a.policy_version) for a in answered[2:]) == [(1, 1), (3, 1)]
