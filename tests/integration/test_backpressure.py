"""Limits through real sockets: busy, deadline, fair shares, slow readers. Whoever overdoes it hurts only itself."""

from __future__ import annotations

import time

import numpy as np
import pytest

from simul.common.client.client import InferenceClient, Replies
from simul.common.client.steps import pack_step
from simul.common.errors import ERR_BUSY, ERR_DEADLINE
from simul.common.protocol.decisions import start_flags
from simul.common.protocol.messages import Figures, StatusRequest
from simul.inference_server.ops import reaper
from tests.support.faults import let_idle
from tests.support.raw_client import RawClient
from tests.support.stall import let_deadlines_pass, stalled
from tests.support.stand import Stand, exchange, gather
from tests.support.waiting import PATIENCE_SEC, wait_for

pytestmark = pytest.mark.usefixtures("patience")

FREE = start_flags(record=False, greedy=False)


def test_the_python_client_backs_off_and_everything_is_answered(monkeypatch) -> None:
    monkeypatch.setattr(
        "simul.inference_server.frontend.client_socket.RECEIVE_SEC", PATIENCE_SEC
    )  # all that has arrived is read at once
    with Stand(max_rows_of_client=10, max_batch=4) as stand:
        client = stand.client("a", training=False)
        with stalled(stand) as stall:
            client.submit([stand.decision(0, 0, flags=FREE)])
            stall.wait_until_inside()
            for first in range(1, 41, 5):
                client.submit([stand.decision(first + i, 0, flags=FREE) for i in range(5)])
            asked = client.evaluate(np.zeros((10, 12), np.float32), np.ones((10, 5)))
            stall.wait_until_arrived(9)
            stall.go.set()
            replies: list[Replies] = []

            def all_came() -> bool:
                replies.append(client.poll())
                return not client.waiting and any(reply.evaluations for reply in replies)

            wait_for(all_came)
        assert sorted(action.env for reply in replies for action in reply.actions) == list(range(41))
        assert not any(reply.failures for reply in replies)
        (evaluation,) = (evaluation for reply in replies for evaluation in reply.evaluations)
        assert (evaluation.id, evaluation.errors) == (asked, {})
        assert client.busy >= 6
        assert stand.server.metrics()["rows_errored"][ERR_BUSY] >= 30


def test_a_start_that_was_late_is_reaped_like_any_idle_session(monkeypatch) -> None:
    monkeypatch.setattr(reaper, "EVERY_SEC", 0.05)
    with Stand(max_batch=1) as stand:
        client = stand.client("a")
        with stalled(stand) as stall:
            client.submit([stand.decision(env, 0) for env in range(2)], deadline_ms=50_000)
            stall.wait_until_inside()
            let_deadlines_pass(stand)
            stall.go.set()
            assert [f.code for f in gather(client).failures] == [ERR_DEADLINE]
        let_idle(stand, "a")
        wait_for(lambda: client.poll() and stand.server.metrics()["sessions_ended"].get("idle", 0) == 2)
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
        wait_for(lambda: (got := client.poll().figures) and got.clients == 3)


def _is_held_up(stand: Stand) -> bool:
    """A row has been read, and waits for the learner."""
    return stand.server.metrics()["waiting"] == 1 and not stand.server._recorder.has_room(time.monotonic())


def _until_it_waits(stand: Stand, client: InferenceClient) -> int:
    """A recorded game goes on until the learner is full; the step that waits."""
    for step in range(20):
        client.submit([stand.decision(0, step)])
        wait_for(lambda: client.poll() and (not client.waiting or _is_held_up(stand)))
        if client.waiting:
            return step
    raise AssertionError("it never waited")


def test_a_full_learner_holds_up_whom_it_learns_from_and_nobody_else_and_no_clock_runs_meanwhile(monkeypatch) -> None:
    """The idle clock of the session that waits stands still; that of one whose answer was given runs."""
    monkeypatch.setattr(reaper, "EVERY_SEC", 0.05)
    with Stand(credit=0) as stand:
        trained, external = stand.client("trained"), stand.client("external", training=False)
        step = _until_it_waits(stand, trained)
        exchange(external, [stand.decision(9, 0, flags=FREE)])
        let_idle(stand, "trained", "external")
        played = 0
        while played < 20 or not stand.server.metrics()["sessions_ended"]:
            rows = [stand.decision(env, played, flags=0 if played else FREE) for env in range(3)]
            assert len(exchange(external, rows).actions) == 3
            played += 1
            assert not trained.poll().actions
        assert trained.waiting == 1
        assert stand.server.metrics()["sessions_ended"] == {"idle": 1}  # env 9 of the external one
        stand.learner.credit = 1_000_000
        assert [action.step for action in gather(trained).actions] == [step]
        assert [action.step for action in exchange(trained, [stand.decision(0, step + 1)]).actions] == [step + 1]


def test_a_server_that_waits_says_whether_for_messages_or_for_the_learner() -> None:
    with Stand(credit=0) as stand:

        def stage_sec(stage: str) -> float:
            return stand.server.metrics()["stage_sec"][stage]

        client = stand.client("trained")
        wait_for(lambda: stage_sec("wait") > 0.1)
        assert stage_sec("learner_full") == 0.0
        _until_it_waits(stand, client)
        wait_for(lambda: stage_sec("learner_full") > 0)
        before = stage_sec("wait")
        wait_for(lambda: stage_sec("learner_full") > 0.1)
        assert stage_sec("wait") == before
        assert stage_sec("forward") > 0
