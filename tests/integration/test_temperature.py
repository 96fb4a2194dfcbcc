"""Temperature over the wire: read with START, kept for the session's life, refused where it is none."""

from __future__ import annotations

import numpy as np
import pytest

from common.errors import ERR_VALUE
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


@pytest.mark.parametrize("temperature", [0.0, -1.0, np.nan, np.inf, 100.5])
def test_what_is_no_temperature_is_refused_and_opens_nothing(temperature: float) -> None:
    with Stand() as stand:
        client = stand.client("a")
        rows = [stand.decision(0, 0, flags=FREE, temperature=temperature), stand.decision(1, 0, flags=FREE)]
        replies = exchange(client, rows)
        assert [(f.env, f.code) for f in replies.failures] == [(0, ERR_VALUE)]
        assert [a.env for a in replies.actions] == [1]
        assert stand.server.metrics()["sessions"] == 1


def test_what_is_learned_from_is_sampled_at_temperature_1() -> None:
    with Stand() as stand:
        failure = exchange(stand.client("a"), [stand.decision(0, 0, temperature=0.5)]).failures[0]
        assert failure.code == ERR_VALUE
        assert failure.message == "temperature 0.5 with RECORD; what is learned from is sampled at temperature 1"
