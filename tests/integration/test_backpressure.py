"""Limits through real sockets: busy, deadline, fair shares, slow readers. Whoever overdoes it hurts only itself."""

from __future__ import annotations

import time

import numpy as np

from common.client import Replies
from common.decisions import start_flags
from common.errors import ERR_BUSY, ERR_DEADLINE
from common.messages import Figures, StatusRequest
from common.step_book import pack_step
from tests.support.raw_client import RawClient
from tests.support.stall import stalled
from tests.support.stand import Stand, exchange, gather

FREE = start_flags(record=False, greedy=False)


def test_the_python_client_backs_off_and_everything_is_answered() -> None:
    with Stand(max_rows_of_client=10, max_batch=4) as stand:
        client = stand.client("a", training=False)
        with stalled(stand) as stall:
            client.submit([stand.decision(0, 0, flags=FREE)])
            stall.wait_until_inside()
            for first in range(1, 41, 5):
                client.submit([stand.decision(first + i, 0, flags=FREE) for i in range(5)])
            asked = client.evaluate(np.zeros((10, 12), np.float32), np.ones((10, 5)))
            stall.go.set()
            replies, evaluations, deadline = Replies([], []), [], time.monotonic() + 10
            while client.waiting or not evaluations:
                more = client.poll()
                replies.actions += more.actions
                replies.failures += more.failures
                evaluations += more.evaluations
                assert time.monotonic() < deadline
                client.poller.wait(0.01)
        assert sorted(action.env for action in replies.actions) == list(range(41))
        assert not replies.failures
        assert [evaluation.id for evaluation in evaluations] == [asked]
        assert not evaluations[0].errors
        assert client.busy >= 6
        assert stand.server.metrics()["rows_errored"][ERR_BUSY] >= 30


def test_a_start_that_was_late_is_reaped_like_any_idle_session() -> None:
    with Stand(max_batch=1, idle_timeout_sec=0.3) as stand:
        client = stand.client("a")
        with stalled(stand) as stall:
            client.submit([stand.decision(env, 0) for env in range(2)], deadline_ms=5)
            stall.wait_until_inside()
            time.sleep(0.02)
            stall.go.set()
            assert [f.code for f in gather(client).failures] == [ERR_DEADLINE]
        deadline = time.monotonic() + 5
        while stand.server.metrics()["sessions_ended"].get("idle", 0) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
            client.poll()
        assert stand.server.metrics()["sessions_ended"] == {"idle": 2}
        assert len(exchange(client, [stand.decision(1, 0, episode=1)]).actions) == 1


def test_status_tells_a_client_how_it_stands() -> None:
    with Stand() as stand, RawClient(stand.run_dir.endpoint("data"), stand.spec) as raw:
        refused = raw.ask(StatusRequest(id=1))
        assert refused.code == "ERR_HELLO"
        welcome = raw.hello()
        exchange(stand.client("other"), [stand.decision(env, 0) for env in range(3)])
        raw.ask(*pack_step(2, [stand.decision(0, 0, flags=FREE)], stand.spec))
        figures = raw.ask(StatusRequest(id=3))
        assert isinstance(figures, Figures)
        assert (figures.id, figures.ready, figures.policies) == (3, True, {"learner": 0})
        assert (figures.sessions, figures.own_sessions, figures.clients) == (4, 1, 2)
        assert (figures.waiting, figures.decisions, figures.mean_batch) == (0, 4, 2.0)
        assert figures.limits == welcome.limits
        client = stand.client("python")
        client.ask_status()
        deadline, got = time.monotonic() + 5, None
        while got is None and time.monotonic() < deadline:
            got = client.poll().figures
            client.poller.wait(0.01)
        assert got is not None
        assert got.clients == 3
