"""The column client against a real server: the same answers as the client of rows, and refusals by message."""

from __future__ import annotations

import time

import numpy as np
import pytest

from simul.common.client.columns import Answer, ColumnClient, Columns
from simul.common.errors import ERR_NO_SESSION
from simul.common.protocol.messages import START
from tests.support.stand import Stand, exchange
from tests.support.waiting import PATIENCE_SEC

pytestmark = pytest.mark.usefixtures("patience")


def _answered(client: ColumnClient, number: int, rows: int) -> list[Answer]:
    answers: list[Answer] = []
    deadline = time.monotonic() + PATIENCE_SEC
    while sum(len(a.rows) for a in answers) + sum(len(r.rows) for r in client.refusals) < rows:
        assert time.monotonic() < deadline
        client.poller.wait(0.02)
        answers += client.poll()
    assert {answer.id for answer in answers} <= {number}
    return answers


def test_columns_get_what_rows_get() -> None:
    with Stand(deterministic=True) as stand:
        by_row = {a.env: a for a in exchange(stand.client("bot"), [stand.decision(e, 0) for e in range(6)]).actions}
        client = ColumnClient(stand.run_dir.endpoint("data"), name="bot", spec=stand.spec, run_id=2)
        client.connect(PATIENCE_SEC)
        columns = Columns.empty(7, stand.spec)
        columns.keys[:, 0] = range(7)
        columns.flags[:6] = START  # row 6 has no session
        for env in range(6):
            decision = stand.decision(env, 0)
            columns.observation[env], columns.mask[env] = decision.observation, decision.mask
        upright, columns.observation = columns.observation, columns.observation[:1]
        with pytest.raises(ValueError, match=r"shape \[1, 12\]; expected \[7, 12\]"):
            client.submit(columns)
        columns.observation = upright
        answers = _answered(client, client.submit(columns), 7)
        assert [refusal.rows for refusal in client.refusals] == [(6,)]
        assert client.refusals[0].code == ERR_NO_SESSION
        rows = np.concatenate([answer.rows for answer in answers])
        assert sorted(rows) == list(range(6))
        for answer in answers:
            for i, env in enumerate(answer.rows):
                expected = by_row[int(env)]
                assert (answer.action[i], answer.policy_version[i]) == (expected.action, expected.policy_version)
                assert (answer.log_prob[i], answer.value[i]) == (np.float32(expected.log_prob), expected.value)
        client.close()
