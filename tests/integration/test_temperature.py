"""Temperature over the wire: read with START, kept for the session's life, refused where it is none."""

from __future__ import annotations

import numpy as np
import torch

from simul.common.errors import ERR_VALUE
from simul.common.protocol.messages import GREEDY, RECORD, START
from simul.inference_server.engine.sampling import sample, sample_on_host
from simul.inference_server.sessions.row_checks import MIN_TEMPERATURE
from tests.support.faults import FREE
from tests.support.stand import Stand, exchange


def test_each_session_keeps_its_temperature_and_the_log_probs_say_so() -> None:
    with Stand(deterministic=True) as stand:
        client = stand.client("a")
        temperatures = [1.0, 0.1, 10.0]
        spread = {env: [] for env in range(3)}
        for step in range(30):
            rows = [
                stand.decision(
                    env, step, observation=np.full(12, step, np.float32), mask=np.ones(5, np.uint8),
                    temperature=temperatures[env] if step == 0 else 1.0, flags=FREE if step == 0 else 0,
                )
                for env in range(3)
            ]  # fmt: skip
            for action in exchange(client, rows).actions:
                spread[action.env].append(abs(action.log_prob + np.log(5)))
        assert np.mean(spread[2]) < np.mean(spread[0]) < np.mean(spread[1])  # hotter: nearer to uniform


def test_what_is_no_temperature_is_refused_and_opens_nothing_and_the_smallest_is_served() -> None:
    wrong = [0.0, -1.0, np.nan, np.inf, 100.5, 1e-40, 0.00099]
    with Stand() as stand:
        rows = [
            stand.decision(env, 0, flags=FREE, temperature=temperature)
            for env, temperature in enumerate([*wrong, MIN_TEMPERATURE])
        ]
        replies = exchange(stand.client("a"), rows)
        assert {f.env: f.code for f in replies.failures} == dict.fromkeys(range(len(wrong)), ERR_VALUE)
        (action,) = replies.actions
        assert (action.env, np.isfinite(action.log_prob)) == (len(wrong), True)
        assert stand.server.metrics()["sessions"] == 1


def test_the_smallest_temperature_divides_the_largest_logits_to_finite_numbers() -> None:
    logits = np.array([[3e35, -3e35, 0.0], [1.0, 1.0, -3e38]], np.float32)
    legal, noise = np.ones((2, 3), np.bool_), np.zeros((2, 3), np.float32)
    legal[1, 2] = False
    smallest = np.full(2, MIN_TEMPERATURE, np.float32)
    action, log_prob = sample_on_host(logits, legal, noise, smallest)
    assert action.tolist() == [0, 0]
    assert np.allclose(log_prob, [0.0, -np.log(2)])
    on_device = sample(*map(torch.from_numpy, (logits, legal, noise, smallest)))
    assert np.allclose(on_device[1], log_prob)


def test_what_is_learned_from_is_sampled_at_temperature_1() -> None:
    with Stand() as stand:
        failure = exchange(stand.client("a"), [stand.decision(0, 0, temperature=0.5)]).failures[0]
        assert failure.code == ERR_VALUE
        assert failure.message == "temperature 0.5 with RECORD; what is learned from is sampled at temperature 1"
        failure = exchange(stand.client("b"), [stand.decision(0, 0, flags=START | RECORD | GREEDY)]).failures[0]
        assert (failure.code, failure.message.partition(";")[0]) == (ERR_VALUE, "GREEDY with RECORD")
