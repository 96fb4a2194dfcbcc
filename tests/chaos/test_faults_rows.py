"""Faults 11 to 14: messages that decode and are wrong, and forwards that fail."""

from __future__ import annotations

import math
import re
import time

import msgpack
import numpy as np
import pytest
import torch

from simul.common.client.client import InferenceClient
from simul.common.client.evaluation import Evaluation, pack_evaluate
from simul.common.client.steps import pack_step
from simul.common.config.schema import ServerConfig
from simul.common.errors import ERR_INTERNAL, ERR_MASK, ERR_NO_SESSION, ERR_ORDER, ERR_SHAPE, ERR_VALUE
from simul.common.protocol.decisions import start_flags
from simul.common.protocol.messages import (
    TERMINATED,
    Actions,
    Close,
    Evaluate,
    Ping,
    StatusRequest,
    Step,
)
from simul.common.role.reports import REPORT_EVERY_SEC
from simul.common.transport import PullSocket
from simul.inference_server.engine.engine import DeviceLost
from simul.inference_server.serving.refusals import MOST_TEXTS
from tests.support.faults import FREE, reported, unharmed
from tests.support.raw_client import RawClient
from tests.support.stall import poisoned
from tests.support.stand import Stand, exchange
from tests.support.waiting import PATIENCE_SEC, wait_for


@pytest.mark.counts("malformed", by=2)
def test_fault_11_a_tensor_that_is_not_as_promised_is_err_shape(stand, raw) -> None:
    """All that may be wrong with one: test_codec.py and test_row_checks.py."""
    message, tensors = pack_step(5, [stand.decision(env, 0, flags=FREE) for env in range(2)], stand.spec)
    answer = raw.ask(message, tensors | {"observation": np.zeros((2, 11), np.float32)})
    assert (answer.code, answer.id) == (ERR_SHAPE, 5)
    header = msgpack.packb({"type": "STEP", "id": 5, "tensors": [["observation", "float32", [2, 13]]]})
    assert raw.refused([header, tensors["observation"].tobytes()]).code == ERR_SHAPE


@pytest.mark.counts("rows_errored.ERR_VALUE", by=3)
def test_fault_12_numbers_that_are_none_never_reach_the_state_table(stand, client) -> None:
    rows = [stand.decision(env, 0, flags=FREE) for env in range(5)]
    rows[0].observation[3], rows[1].observation[0], rows[2].reward = np.nan, -np.inf, np.nan
    rows[3].observation[:] = 1e-42  # denormal: small, and a number
    replies = exchange(client, rows)
    assert {failure.env: failure.code for failure in replies.failures} == dict.fromkeys((0, 1, 2), ERR_VALUE)
    assert "observation[3] is nan" in replies.failures[0].message
    assert "1 of 12 are not" in replies.failures[0].message
    assert "reward is nan" in replies.failures[2].message
    assert sorted(action.env for action in replies.actions) == [3, 4]
    huge = stand.decision(9, 0, flags=FREE, observation=np.full(12, 3e38, np.float32))
    exchange(client, [huge])  # finite: answered, or refused as a forward that failed; never stored as NaN
    assert np.isfinite(stand.server._weight_updates._policies["learner"].engine._table.numpy()).all()
    exchange(client, stand.ends(1, 3, 4))


@pytest.mark.counts("malformed", by=4)
def test_extra_messages_without_rows_have_no_tensors(stand, raw) -> None:
    something = {"comment": np.zeros(3, np.uint8)}
    for message in (Ping(id=1), StatusRequest(id=1), Close(), Evaluate(id=1)):
        answer = raw.ask(message, something)
        assert (answer.code, "'comment' is not of this message" in answer.message) == (ERR_SHAPE, True)


@pytest.mark.counts("rows_errored.ERR_MASK", by=2)
def test_fault_13_bits_beyond_the_last_action_are_err_mask(stand, raw) -> None:
    rows = {"observation": np.zeros((4, 12), np.float32), "mask": np.array([[31], [32], [160 + 1], [1]], np.uint8)}
    raw.send(Evaluate(id=3), rows)
    refused, answered = raw.receive()[0], raw.receive()[1]
    assert (refused.code, refused.rows) == (ERR_MASK, (1, 2))
    assert list(answered["row"]) == [0, 3]


@pytest.mark.parametrize("mask", [[0, 0, 0, 0, 0], [2, 2, 2, 2, 2], [1, 0, 255, 0, 0]])
@pytest.mark.counts("rows_errored.ERR_MASK", by=1)
def test_fault_13_a_mask_without_a_legal_action_or_with_other_numbers_is_err_mask(stand, client, mask) -> None:
    rows = [stand.decision(0, 0, flags=FREE, mask=np.array(mask, np.uint8)), stand.decision(1, 0, flags=FREE)]
    replies = exchange(client, rows)
    assert [(failure.env, failure.code) for failure in replies.failures] == [(0, ERR_MASK)]
    assert [action.env for action in replies.actions] == [1]


@pytest.mark.parametrize("draws", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_fault_13_a_masked_action_is_never_drawn(draws: int) -> None:
    n, dice = 1000, np.random.default_rng(13)
    with (
        Stand(max_sessions=n + 10) as stand,
        unharmed(stand, "decisions") as neighbour,
        RawClient(stand.run_dir.endpoint("data"), stand.spec) as raw,
    ):
        raw.hello()
        _, tensors = pack_step(0, [stand.decision(env, 0, flags=FREE) for env in range(n)], stand.spec)
        for step in range(draws // n):
            mask = (dice.random((n, 5)) < 0.3).astype(np.uint8)
            mask[np.arange(n), dice.integers(5, size=n)] = 1
            tensors["keys"][:, 3], tensors["flags"][:] = step, FREE if step == 0 else 0
            raw.send(Step(id=step), tensors | {"mask": mask})
            answered = 0
            while answered < n:
                message, found = raw.receive()
                assert isinstance(message, Actions)
                assert mask[found["row"], found["action"]].all()
                answered += len(found["row"])
            neighbour.play(1)


@pytest.mark.counts("rows_errored.ERR_ORDER", by=1)
def test_extra_a_start_at_another_attempt_opens_nothing(stand, client, raw) -> None:
    """An open session without a step would read and write rows of the state table that are not its own."""
    greedy = start_flags(record=False, greedy=True)
    (before,) = exchange(client, [stand.decision(0, 0, flags=greedy)]).actions
    row = stand.decision(0, 0, flags=FREE)
    for step, attempt, flags, code in ((0, 1, FREE, ERR_ORDER), (-1, 1, 0, ERR_NO_SESSION), (-1, 0, 0, ERR_NO_SESSION)):
        row.step, row.attempt, row.flags = step, attempt, flags
        assert raw.ask(*pack_step(step + 5, [row], stand.spec)).code == code
    (after,) = exchange(client, [stand.decision(0, 0, flags=greedy, episode=1)]).actions
    assert (after.action, after.value) == (before.action, before.value)
    exchange(client, [stand.decision(0, 1, episode=1, kind=TERMINATED)])


@pytest.mark.counts("rows_errored.ERR_NO_SESSION", by=4000)
def test_extra_many_bad_rows_get_few_errors(stand, raw) -> None:
    """Each of them names its own env, and the queue of a client that reads holds a thousand replies."""
    keys = [(env, 0, 0) for env in range(2000)]
    observation, mask = np.zeros((2000, 12), np.float32), np.ones((2000, 5), np.uint8)
    raw.send(*pack_step(1, [stand.decision(env, 3) for env in range(2000)], stand.spec))
    raw.send(*pack_evaluate(2, observation, mask, stand.spec, sessions=keys))
    for number in (1, 2):
        found = []
        while sum(len(error.rows) for error in found) < 2000:
            found.append(raw.receive()[0])
        assert {(error.code, error.id) for error in found} == {(ERR_NO_SESSION, number)}
        assert found[0].message.startswith("env 0 seat 0 has no live session")
        batches = math.ceil(2000 / ServerConfig().max_batch)
        assert len(found) <= batches * (MOST_TEXTS + 1)


def evaluated(client: InferenceClient, observation: np.ndarray) -> Evaluation:
    """Rows of which every action is legal, float32 [N, D], evaluated with zero state."""
    client.evaluate(observation, np.ones((len(observation), 5)))
    return wait_for(lambda: client.poll().evaluations)[0]


@pytest.mark.counts("rows_errored.ERR_INTERNAL", by=3)
def test_fault_14_only_the_culprit_of_a_failed_forward_gets_the_error(stand, client) -> None:
    exchange(client, [stand.decision(env, 0, flags=FREE) for env in range(13)])
    with poisoned(stand, marker=777.0):
        rows = [stand.decision(env, 1) for env in range(13)]
        for env in (4, 11):
            rows[env].observation[0] = 777.0
        replies = exchange(client, rows)
        assert sorted(action.env for action in replies.actions) == [env for env in range(13) if env not in (4, 11)]
        assert {(f.env, f.code) for f in replies.failures} == {(4, ERR_INTERNAL), (11, ERR_INTERNAL)}
        bad = np.zeros((5, 12), np.float32)
        bad[2, 0] = 777.0
        assert list(evaluated(client, bad).errors) == [2]
    failures = exchange(client, [stand.decision(4, 2)]).failures
    assert [f.code for f in failures] == [ERR_NO_SESSION]
    assert len(exchange(client, [stand.decision(env, 2) for env in range(3)]).actions) == 3
    exchange(client, stand.ends(3, 0, 1, 2))


def test_fault_14_people_are_told_once_a_minute_and_not_with_every_row() -> None:
    with (
        Stand() as stand,
        PullSocket(stand.run_dir.endpoint("status")) as status,
        unharmed(stand, "rows_errored.ERR_INTERNAL", by=40),
    ):
        client = stand.client("a")
        rows = [stand.decision(env, 0) for env in range(40)]
        for row in rows:
            row.observation[0] = 777.0
        with poisoned(stand, marker=777.0):
            exchange(client, rows[:20])
            events: list[str] = []

            def told() -> list[str]:
                parts = "; ".join(reported(status)).split("; ")
                events.extend(part for part in parts if part.startswith("the forward failed"))
                return events  # others may come between: a slow machine lets the watchdog speak

            wait_for(told)
            exchange(client, rows[20:])
            time.sleep(2 * REPORT_EVERY_SEC)
        (event,) = told()
        assert re.fullmatch(r"the forward failed for (1?\d|20) rows: poisoned", event)


@pytest.mark.counts("rows_errored.ERR_INTERNAL", by=48)
@pytest.mark.parametrize("result", [torch.nan, torch.inf])
def test_fault_14_results_that_are_not_finite_cost_no_further_forward(
    stand, client, monkeypatch, caplog, result
) -> None:
    engine = stand.server._weight_updates._policies["learner"].engine
    run, forwards = engine._backend.run, []

    def overflowing(observation, mask, state):
        logits, value, new_state = run(observation, mask, state)
        forwards.append(len(observation))
        return logits, torch.where(observation[:, 0] > 1e38, result, value), new_state

    alike = [exchange(client, [stand.decision(env, 0, flags=FREE) for env in range(32)])]
    monkeypatch.setattr(engine._backend, "run", overflowing)
    rows = [stand.decision(env, 1) for env in range(32)]
    for row in rows[8:]:
        row.observation[:] = 3e38
    replies = exchange(client, rows)
    assert len(forwards) == 1
    assert [len(reply.actions) for reply in (*alike, replies)] == [32, 8]
    assert {(f.env, f.code) for f in replies.failures} == {(env, ERR_INTERNAL) for env in range(8, 32)}
    assert len([record for record in caplog.records if "not finite" in record.message]) == 1
    told = replies.failures[0].message
    assert "expected observations of ordinary size" in told
    assert told.endswith("the largest number here is 3e+38")
    evaluation = evaluated(client, np.stack([row.observation for row in rows]))
    assert len(forwards) == 2
    assert evaluation.errors == dict.fromkeys(range(8, 32), (ERR_INTERNAL, told))
    assert np.isfinite(evaluation.value[:8]).all()
    assert len(exchange(client, [stand.decision(env, 2) for env in range(8)]).actions) == 8
    exchange(client, stand.ends(3, *range(8)))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_fault_14_a_lost_device_ends_the_server_instead_of_one_row_after_the_other() -> None:
    with Stand() as stand:
        client = stand.client("a")
        with poisoned(stand, marker=777.0, error=DeviceLost):
            client.submit([stand.decision(0, 0, observation=np.full(12, 777.0, np.float32))])
            stand._thread.join(PATIENCE_SEC)
            assert not stand._thread.is_alive()
    with Stand() as anew, unharmed(anew):  # whoever started it starts it anew
        pass
