"""Ends of sessions through real sockets: last rewards, aborts, policies that leave, rows that come too late."""

from __future__ import annotations

import numpy as np

from simul.common.errors import ERR_NO_SESSION, ERR_ORDER
from simul.common.protocol.messages import ABORTED, TERMINATED, TRUNCATED
from tests.support.stand import Stand, exchange, gather
from tests.support.waiting import wait_for


def test_last_rewards_reach_the_learner_and_aborted_games_teach_nothing() -> None:
    with Stand(unroll_length=4) as stand:
        client = stand.client("a")
        for step in range(6):
            exchange(client, [stand.decision(env, step, reward=10.0 * env + step) for env in (1, 2, 3)])
        final = stand.decision(2, 6).observation
        ends = [
            stand.decision(1, 6, kind=TERMINATED, reward=16.5, observation=None, mask=None),
            stand.decision(2, 6, kind=TRUNCATED, reward=26.5, observation=final, mask=None),
            stand.decision(3, 6, kind=ABORTED, reward=99.0, observation=None, mask=None),
        ]
        for _ in range(2):  # an end may be sent again
            assert {action.action for action in exchange(client, ends).actions} == {-1}
        wait_for(lambda: len(stand.learner.unrolls) >= 5)
        by_env = {1: [], 2: [], 3: []}
        for message, tensors in stand.learner.unrolls:
            by_env[int(tensors["reward"][0] // 10)].append((message, tensors))
        assert np.concatenate([t["reward"] for _, t in by_env[1]]).tolist() == [11, 12, 13, 14, 15, 16.5]
        assert [m.terminated for m, _ in by_env[1]] == [False, True]
        message, tensors = by_env[2][-1]
        assert message.truncated
        assert tensors["reward"].tolist() == [25, 26.5]
        assert np.array_equal(tensors["observation"][-1], final)
        assert [m.length for m, _ in by_env[3]] == [4]
        wait_for(lambda: stand.server.metrics()["steps"]["sent"] == 16)  # counted behind the message
        steps = stand.server.metrics()["steps"]
        assert steps["dropped"] == {"aborted": 2}
        assert steps["seen"] == steps["sent"] + 2 + steps["open"] == 18


def test_a_row_whose_session_ended_meanwhile_is_answered_too_and_a_stale_start_opens_nothing() -> None:
    with Stand(credit=0) as stand:  # a full learner: recorded decisions wait in the batcher
        client = stand.client("a")
        for step in range(5):  # one complete unroll fills the backlog; what comes after the last answer waits
            exchange(client, [stand.decision(0, step)])
        client.submit([stand.decision(1, 0)])
        client.submit([stand.decision(1, 1, kind=ABORTED, observation=None, mask=None)])
        client.submit([stand.decision(1, 0, episode=1)])
        client.submit([stand.decision(1, 0, episode=0)])
        wait_for(lambda: stand.server.metrics()["sessions_ended"].get("aborted") == 1)
        stand.learner.credit = 1_000_000
        replies = gather(client)
        assert sorted(f.code for f in replies.failures if f.env == 1) == [ERR_NO_SESSION, ERR_ORDER]
        assert [(a.episode, a.action >= 0) for a in replies.actions if a.env == 1 and a.action >= 0] == [(1, True)]


def test_a_session_that_begins_and_ends_in_one_message_leaves_its_slot_to_the_next_one() -> None:
    with Stand(deterministic=True) as stand:
        client = stand.client("a")
        end = stand.decision(0, 1, kind=ABORTED, observation=None, mask=None)
        again = stand.decision(0, 0, episode=1, policy="learner")
        replies = exchange(client, [stand.decision(0, 0), end, again, stand.decision(1, 0)])
        assert [(f.episode, f.code) for f in replies.failures] == [(0, ERR_NO_SESSION)]
        assert sorted((a.env, a.episode) for a in replies.actions if a.action >= 0) == [(0, 1), (1, 0)]
        wait_for(lambda: stand.server.metrics()["batch_histogram"] == {"2": 1})  # counted behind the reply
        stand.server._admission_control._sessions.check()


def test_past_selves_come_and_go_and_games_stay_with_the_one_they_began_with() -> None:
    with Stand() as stand:
        client = stand.client("a")

        def offer(*names: str) -> None:
            for name in names:
                version = int(name[-1])
                stand.learner.publish(name, version, stand.weights(seed=version), resident=("learner", *names))
            wait_for(lambda: set(stand.server._weight_updates._policies.names) == {"learner", *names})

        offer("past/0", "past/1")
        first = exchange(client, [stand.decision(0, 0, policy="past/0"), stand.decision(1, 0, policy="past/1")]).actions
        offer("past/2", "past/3")
        again = exchange(client, [stand.decision(0, 1), stand.decision(1, 1)]).actions
        assert [a.policy_version for a in first + again] == [0, 1, 0, 1]
