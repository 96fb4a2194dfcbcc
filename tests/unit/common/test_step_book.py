"""Rows that were submitted: what their sender learns of a refusal."""

from __future__ import annotations

import numpy as np

from common.decisions import Decision
from common.errors import ERR_DEADLINE, ERR_ORDER
from common.messages import Error
from common.step_book import StepBook


def test_a_refused_row_comes_back_with_the_servers_advice_when_to_try_again() -> None:
    book = StepBook()
    rows = [Decision(env=env, seat=0, episode=0, step=0, observation=np.zeros(3), mask=np.ones(2)) for env in range(2)]
    book.sent(7, book.open(rows, deadline_ms=5), now=0.0)
    (late,) = book.refuse(Error(code=ERR_DEADLINE, message="late", id=7, rows=(1,), retry_after_ms=12))
    assert (late.env, late.code, late.message, late.retry_after_ms) == (1, ERR_DEADLINE, "late", 12)
    (wrong,) = book.refuse(Error(code=ERR_ORDER, message="a gap", id=7))
    assert (wrong.env, wrong.retry_after_ms) == (0, 0)
    assert book.waiting == 0
