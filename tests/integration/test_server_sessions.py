"""The session contract through real sockets: START, resend, REDO, ends, reconnect, swap."""

from __future__ import annotations

import random
import time

import msgspec
import numpy as np
import pytest

from common.client import Replies
from common.decisions import Action
from common.errors import ERR_DENIED, ERR_MASK, ERR_NO_SESSION, ERR_ORDER, ERR_POLICY, ERR_VALUE, CheckpointError
from common.messages import ABORTED, TERMINATED, TRUNCATED
from common.nets.load import WEIGHTS_FILE
from learner.checkpoints import RunFacts, write_folder
from tests.support.stand import Stand, exchange

STEPS = 12


def _play(stand: Stand, name: str, envs: list[int]) -> dict[tuple[int, int], Action]:
    """Every env's actions when its decisions come interleaved at random with those of the other envs."""
    client = stand.client(name)
    progress = dict.fromkeys(envs, 0)
    answers = {}
    rng = random.Random(len(envs))
    while progress:
        chosen = rng.sample(sorted(progress), rng.randint(1, len(progress)))
        for action in exchange(client, [stand.decision(env, progress[env]) for env in chosen]).actions:
            answers[action.env, action.step] = action
            progress[action.env] += 1
            if progress[action.env] == STEPS:
                del progress[action.env]
    client.close()
    return answers


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_interleaved_sessions_get_to_the_last_bit_what_each_gets_alone(precision: str) -> None:
    with Stand(deterministic=True, precision=precision) as stand:
        together = _play(stand, "bot", list(range(20)))
        for env in range(0, 20, 4):
            alone = _play(stand, "bot", [env])
            for step in range(STEPS):
                a, b = alone[env, step], together[env, step]
                assert (a.action, a.log_prob, a.value) == (b.action, b.log_prob, b.value)


def test_resend_returns_the_identical_reply_and_advances_the_state_once() -> None:
    with Stand(deterministic=True) as stand:
        client = stand.client("a")
        first = exchange(client, [stand.decision(0, 0)]).actions[0]
        again = exchange(client, [stand.decision(0, 0)]).actions[0]
        assert first == again
        after = exchange(client, [stand.decision(0, 1)]).actions[0]
        plain = _play(stand, "a", [0])
        assert (after.value, after.action) == (plain[0, 1].value, plain[0, 1].action)


def test_redo_starts_from_the_state_before_the_refused_action() -> None:
    with Stand(deterministic=True) as stand:
        reference = _play(stand, "a", [0])
        client = stand.client("a", run_id=2)
        for step in range(4):
            exchange(client, [stand.decision(0, step)])
        for attempt in (1, 2):
            redone = exchange(client, [stand.decision(0, 3, attempt=attempt)]).actions[0]
            assert redone.value == reference[0, 3].value
        after = exchange(client, [stand.decision(0, 4)]).actions[0]
        assert after.value == reference[0, 4].value


def test_bad_rows_get_their_own_error_and_their_mates_an_action() -> None:
    with Stand() as stand:
        client, stranger = stand.client("a"), stand.client("b", training=False)
        nan = np.full(stand.spec.observation_size, np.nan, np.float32)
        none = np.zeros(stand.spec.num_actions, np.uint8)
        replies = exchange(
            client,
            [
                stand.decision(0, 0),
                stand.decision(1, 1),
                stand.decision(2, 0, observation=nan),
                stand.decision(3, 0, mask=none),
                stand.decision(4, 0, policy="nobody"),
                stand.decision(5, 0),
            ],
        )
        assert [action.env for action in replies.actions] == [0, 5]
        assert {f.env: f.code for f in replies.failures} == {
            1: ERR_NO_SESSION,
            2: ERR_VALUE,
            3: ERR_MASK,
            4: ERR_POLICY,
        }
        assert exchange(client, [stand.decision(0, 5)]).failures[0].code == ERR_ORDER
        assert exchange(stranger, [stand.decision(0, 1)]).failures[0].code == ERR_NO_SESSION
        assert exchange(stranger, [stand.decision(0, 0)]).failures[0].code == ERR_DENIED
        assert len(exchange(client, [stand.decision(0, 1)]).actions) == 1


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
        _wait_for(lambda: len(stand.learner.unrolls) >= 5)
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
        steps = stand.server.metrics()["steps"]
        assert steps["dropped"] == {"aborted": 2}
        assert steps["seen"] == steps["sent"] + 2 + steps["open"] == 18


def test_every_reply_is_of_one_version_and_versions_never_go_back() -> None:
    with Stand() as stand:
        client = stand.client("a")
        seen = []
        for step in range(60):
            stand.learner.publish("learner", step + 1, stand.weights(seed=step))
            actions = exchange(client, [stand.decision(env, step) for env in range(8)]).actions
            assert len({action.policy_version for action in actions}) == 1
            seen.append(actions[0].policy_version)
        assert seen == sorted(seen)
        assert seen[-1] > 20
        stand.learner.publish("learner", 3, stand.weights())
        _wait_for(lambda: any(not ack.accepted for ack in stand.learner.acks))
        assert exchange(client, [stand.decision(0, 60)]).actions[0].policy_version >= seen[-1]


def _wait_for(condition, timeout_sec: float = 5.0) -> None:
    deadline = time.monotonic() + timeout_sec
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_row_whose_session_ended_meanwhile_is_answered_too_and_a_stale_start_opens_nothing() -> None:
    with Stand(credit=0) as stand:  # a full learner: recorded decisions wait in the batcher
        client = stand.client("a")
        for step in range(5):  # one complete unroll fills the backlog
            client.submit([stand.decision(0, step)])
            deadline = time.monotonic() + 5
            while client.waiting and step < 4 and time.monotonic() < deadline:
                client.poll()
                client.poller.wait(0.02)
        client.submit([stand.decision(1, 0)])
        client.submit([stand.decision(1, 1, kind=ABORTED, observation=None, mask=None)])
        client.submit([stand.decision(1, 0, episode=1)])
        client.submit([stand.decision(1, 0, episode=0)])
        _wait_for(lambda: stand.server.metrics()["sessions_ended"].get("aborted") == 1)
        stand.learner.credit = 1_000_000
        replies, deadline = Replies([], []), time.monotonic() + 10
        while client.waiting and time.monotonic() < deadline:
            more = client.poll()
            replies.actions += more.actions
            replies.failures += more.failures
            client.poller.wait(0.02)
        assert client.waiting == 0
        assert sorted(f.code for f in replies.failures if f.env == 1) == [ERR_NO_SESSION, ERR_ORDER]
        assert [(a.episode, a.action >= 0) for a in replies.actions if a.env == 1 and a.action >= 0] == [(1, True)]


def test_a_session_that_begins_and_ends_in_one_message_leaves_its_slot_to_the_next_one() -> None:
    with Stand(deterministic=True) as stand:
        client = stand.client("a")
        replies = exchange(
            client,
            [
                stand.decision(0, 0),
                stand.decision(0, 1, kind=ABORTED, observation=None, mask=None),
                stand.decision(0, 0, episode=1, policy="learner"),
                stand.decision(1, 0),
            ],
        )
        assert [(f.episode, f.code) for f in replies.failures] == [(0, ERR_NO_SESSION)]
        assert sorted((a.env, a.episode) for a in replies.actions if a.action >= 0) == [(0, 1), (1, 0)]
        assert stand.server.metrics()["batch_histogram"] == {"2": 1}
        stand.server._sessions.check()


def test_ordinary_rows_and_all_others_share_a_message() -> None:
    with Stand(deterministic=True, unroll_length=3) as stand:
        reference = _play(stand, "a", [0, 1, 2, 3])
        client = stand.client("a", run_id=2)
        for step in range(STEPS):
            rows = [stand.decision(env, step) for env in range(4)]
            late = stand.decision(4, step, flags=0)  # never began
            again = [stand.decision(1, step - 1)] if step else []  # the answer is known
            actions = exchange(client, [rows[0], late, *again, *rows[2:]]).actions
            actions += exchange(client, [rows[1]]).actions
            got = {(a.env, a.step): a for a in actions}
            for env in range(4):
                expected = reference[env, step]
                assert (got[env, step].action, got[env, step].value) == (expected.action, expected.value)
            if step:
                assert got[1, step - 1].value == reference[1, step - 1].value
        metrics = stand.server.metrics()
        assert metrics["rows_errored"] == {ERR_NO_SESSION: STEPS}
        assert metrics["rows_cached"] == STEPS - 1


def test_what_is_resent_after_a_long_wait_is_answered_once() -> None:
    with Stand(credit=0) as stand:
        client = stand.client("a")
        for step in range(4):
            exchange(client, [stand.decision(0, step)])
        exchange(client, [stand.decision(0, 4, flags=0)])  # its predecessor unroll goes to the backlog
        client.submit([stand.decision(0, 5)])
        for _ in range(3):
            client.poll()
            client._resend(older_than=time.monotonic())
        stand.learner.credit = 1_000_000
        actions, deadline = [], time.monotonic() + 10
        while client.waiting and time.monotonic() < deadline:
            actions += client.poll().actions
            client.poller.wait(0.02)
        time.sleep(0.2)
        actions += client.poll().actions
        assert [action.step for action in actions] == [5]
        assert client.resent == 3


def test_past_selves_come_and_go_and_games_stay_with_the_one_they_began_with() -> None:
    with Stand(deterministic=True) as stand:
        client = stand.client("a")
        weights = {f"past/{n}": stand.weights(seed=n) for n in range(4)}

        def offer(*names: str) -> None:
            for name in names:
                stand.learner.publish(name, int(name[-1]), weights[name], resident=("learner", *names))
            _wait_for(lambda: set(stand.server._housekeeping._policies.names) == {"learner", *names})

        offer("past/0", "past/1")
        first = exchange(client, [stand.decision(0, 0, policy="past/0"), stand.decision(1, 0, policy="past/1")]).actions
        offer("past/2", "past/3")
        again = exchange(client, [stand.decision(0, 1), stand.decision(1, 1)]).actions
        assert [a.policy_version for a in first + again] == [0, 1, 0, 1]
        stand.learner.publish("past/9", 9, weights["past/0"][:-8], resident=("learner", "past/9"))
        _wait_for(lambda: any(not ack.accepted for ack in stand.learner.acks))
        assert exchange(client, [stand.decision(0, 2)]).actions[0].policy_version == 0
        ends = [stand.decision(env, 3 - env, kind=ABORTED, observation=None, mask=None) for env in (0, 1)]
        exchange(client, ends)
        stand.server._housekeeping._policies.remove_retired(stand.server._sessions.bound_to, time.monotonic() + 60)
        offer("past/0", "past/2")  # takes the place of a freed one
        replay = exchange(client, [stand.decision(0, 0, episode=1, policy="past/0")]).actions[0]
        assert (replay.value, replay.policy_version) == (first[0].value, 0)


def test_an_end_has_a_known_kind_and_the_step_after_the_last() -> None:
    with Stand() as stand:
        client = stand.client("a")

        def end(env: int, step: int, kind: int) -> Replies:
            return exchange(client, [stand.decision(env, step, kind=kind, observation=None, mask=None)])

        assert end(7, 0, 9).failures[0].code == ERR_VALUE  # without a session too
        for env in (0, 1):
            exchange(client, [stand.decision(env, 0)])
        for step in (0, 2, 5):
            failure = end(0, step, TERMINATED).failures[0]
            assert failure.code == ERR_ORDER
            assert f"expected the end at step 1; got step {step}" in failure.message
        for _ in range(2):
            assert end(0, 1, TERMINATED).actions[0].action == -1
        assert end(1, 2, ABORTED).actions[0].action == -1  # a row between was refused
        assert stand.server.metrics()["sessions_ended"] == {"terminated": 1, "aborted": 1}


def test_an_end_may_stand_at_an_unanswered_step() -> None:
    with Stand(credit=0) as stand:
        client = stand.client("a")
        for step in range(5):
            exchange(client, [stand.decision(0, step)])
        client.submit([stand.decision(1, 0)])  # waits: the learner is full
        client.submit([stand.decision(1, 0, kind=TERMINATED, observation=None, mask=None)])
        _wait_for(lambda: stand.server.metrics()["sessions_ended"].get("terminated") == 1)


def test_a_checkpoint_of_another_encoder_is_not_served(tmp_path) -> None:
    with Stand() as stand:
        data, policies = stand.weights(), stand.server._housekeeping._policies
        for spec, version in ((stand.spec, 7), (msgspec.structs.replace(stand.spec, encoder_version=99), 8)):
            facts = RunFacts(spec, stand.config.network, "0" * 16, 1)
            files = {WEIGHTS_FILE: data}
            write_folder(tmp_path / f"{version:09d}", facts.meta(version, 0, 0, files, False), files)
        with pytest.raises(CheckpointError, match=f"{spec.fingerprint()}.*{stand.spec.fingerprint()}"):
            policies.install_checkpoint(tmp_path / "000000008")
        assert "another encoder" in policies.install_newest(tmp_path)[0]
        assert policies.learner_version == 7
