"""Faults 15 to 19 and 21 to 23: sessions that are pulled at from several sides."""

from __future__ import annotations

import itertools
import math
import random
import time

import numpy as np
import pytest

from simul.common.client.client import InferenceClient
from simul.common.client.steps import pack_step
from simul.common.errors import ERR_CAPACITY, ERR_NO_SESSION, ERR_ORDER
from simul.common.protocol.messages import (
    ABORTED,
    DECISION,
    TERMINATED,
    Actions,
    Close,
    Error,
)
from simul.common.transport import PullSocket
from simul.inference_server.ops import reaper
from simul.inference_server.sessions.table import Session
from tests.support.faults import FREE, count, let_idle, reported, unharmed
from tests.support.raw_client import RawClient
from tests.support.stall import stalled
from tests.support.stand import SPEC, Stand, exchange
from tests.support.waiting import PATIENCE_SEC, wait_for


@pytest.mark.counts("rows_errored.ERR_NO_SESSION", by=1)
def test_fault_15_a_step_without_start_is_err_no_session(stand, client) -> None:
    started = stand.server.metrics()["sessions_started"]
    assert exchange(client, [stand.decision(0, 3, flags=0)]).failures[0].code == ERR_NO_SESSION
    assert stand.server.metrics()["sessions_started"] == started


@pytest.mark.counts("sessions_ended.restarted", by=1)
def test_fault_16_start_on_a_live_seat_ends_the_old_session_and_begins_from_zero(client, stand) -> None:
    before = stand.server.metrics()["sessions_ended"].get("restarted", 0)
    first = exchange(client, [stand.decision(0, 0, flags=4 | FREE)]).actions[0]
    exchange(client, [stand.decision(0, 1)])
    again = exchange(client, [stand.decision(0, 0, episode=1, flags=4 | FREE)]).actions[0]
    assert (again.action, again.value) == (first.action, pytest.approx(first.value, abs=1e-6))
    assert stand.server.metrics()["sessions_ended"]["restarted"] == before + 1
    assert exchange(client, [stand.decision(0, 2)]).failures[0].code == ERR_NO_SESSION


@pytest.mark.counts("rows_cached", by=2)
def test_fault_17_a_resend_gets_the_identical_reply_and_moves_nothing(stand, raw) -> None:
    answers = []
    for number in range(3):
        raw.send(*pack_step(number, [stand.decision(0, 0, flags=FREE)], stand.spec))
        message, tensors = raw.receive()
        assert isinstance(message, Actions)
        answers.append({name: tensor.tobytes() for name, tensor in tensors.items()})
    assert answers[0] == answers[1] == answers[2]
    assert isinstance(raw.ask(*pack_step(9, [stand.decision(0, 1)], stand.spec)), Actions)


@pytest.mark.parametrize(("step", "attempt"), [(3, 0), (0, 0), (1, 2), (2, 1), (-1, 0), (2**62, 0)])
@pytest.mark.counts("rows_errored.ERR_ORDER", by=1)
def test_fault_18_a_gap_or_a_step_back_is_err_order(stand, raw, step, attempt) -> None:
    for number in range(2):
        raw.ask(*pack_step(number, [stand.decision(0, number, flags=FREE if number == 0 else 0)], stand.spec))
    wrong = stand.decision(0, 1)
    wrong.step, wrong.attempt = step, attempt
    answer = raw.ask(*pack_step(5, [wrong], stand.spec))
    assert (answer.code, answer.rows) == (ERR_ORDER, (0,))
    assert isinstance(raw.ask(*pack_step(6, [stand.decision(0, 2)], stand.spec)), Actions)


@pytest.mark.counts("rows_errored.ERR_ORDER", by=2)
def test_fault_19_two_steps_of_one_session_are_never_in_one_batch(stand, raw) -> None:
    raw.ask(*pack_step(0, [stand.decision(0, 0, flags=FREE)], stand.spec))
    rows = [stand.decision(0, 1), stand.decision(0, 2), stand.decision(0, 1)]
    raw.send(*pack_step(1, rows, stand.spec))
    answers = [raw.receive() for _ in range(3)]
    refused = [(message.code, message.rows) for message, _ in answers if isinstance(message, Error)]
    assert sorted(refused) == [(ERR_ORDER, (1,)), (ERR_ORDER, (2,))]
    acted = next(tensors for message, tensors in answers if isinstance(message, Actions))
    assert len(acted["row"]) == 1
    assert isinstance(raw.ask(*pack_step(2, [stand.decision(0, 2)], stand.spec)), Actions)


def test_fault_21_an_idle_session_is_freed_once_and_its_late_step_refused(monkeypatch) -> None:
    monkeypatch.setattr(reaper, "EVERY_SEC", 0.05)
    with Stand() as stand, unharmed(stand, "sessions_ended.idle", by=3) as neighbour:
        client = stand.client("a")
        exchange(client, [stand.decision(env, 0) for env in range(3)])
        let_idle(stand, "a")
        wait_for(lambda: neighbour.play(1) or (client.poll() and count(stand, "sessions_ended.idle") == 3))
        replies = exchange(client, [stand.decision(0, 1), *stand.ends(1, 1)])
        assert [(f.env, f.code) for f in replies.failures] == [(0, ERR_NO_SESSION)]
        assert "idle_timeout_sec" in replies.failures[0].message
        assert [(a.env, a.action) for a in replies.actions] == [(1, -1)]


@pytest.mark.parametrize("lives", [40, pytest.param(4000, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])])
def test_fault_21_reaper_end_restart_and_new_life_race_and_every_slot_is_freed_once(lives: int, monkeypatch) -> None:
    """The reaper takes any session of the victim's to which nothing is owed, at random, every millisecond."""
    monkeypatch.setattr(reaper, "EVERY_SEC", 0.0)
    dice = random.Random(lives)
    with Stand(max_sessions=32) as stand, unharmed(stand, "sessions_ended.idle") as neighbour:
        table, idle = stand.server._admission_control._sessions, stand.server._admission_control._sessions.idle

        def reaped(since: float) -> list[Session]:  # called by the loop, so that nothing moves while it looks
            table.check()
            theirs = [session for session in idle(math.inf) if table.client_of(session).name == "victim"]
            return idle(since) + [session for session in theirs if dice.random() < 0.2]

        monkeypatch.setattr(table, "idle", reaped)
        wanted = {"idle", "aborted", "new_run", "closed"}
        for life in itertools.count():
            if life >= lives and wanted <= stand.server.metrics()["sessions_ended"].keys():
                break
            with RawClient(stand.run_dir.endpoint("data"), stand.spec) as victim:
                victim.hello("victim", run_id=life + 1)
                for number in range(10):
                    kinds = [(0, FREE, DECISION), (1, 0, DECISION), (2, 0, dice.choice((TERMINATED, ABORTED)))]
                    step, flags, kind = dice.choice(kinds)
                    rows = [stand.decision(env, step, flags=flags, kind=kind) for env in dice.sample(range(8), 4)]
                    victim.send(*pack_step(number, rows, stand.spec))
                    time.sleep(dice.choice((0.0, 0.0, 0.002)))
                if dice.random() < 0.5:
                    victim.send(Close())
            neighbour.play(1)
        wait_for(lambda: neighbour.play(1) or count(stand, "sessions") == 3)


def test_fault_22_when_every_session_is_taken_the_answer_comes_at_once_and_an_end_makes_room() -> None:
    with Stand(max_sessions=9) as stand, unharmed(stand, "rows_errored.ERR_CAPACITY", by=1):
        client = stand.client("a")
        replies = exchange(client, [stand.decision(env, 0) for env in range(7)])  # nobody waits for an end
        assert [(f.env, f.code) for f in replies.failures] == [(6, ERR_CAPACITY)]
        exchange(client, stand.ends(1, 0))
        assert len(exchange(client, [stand.decision(6, 0)]).actions) == 1
        exchange(client, stand.ends(1, *range(1, 7)))


def test_fault_22_clients_without_the_token_leave_the_runs_workers_their_sessions_and_the_view_says_so() -> None:
    with (
        Stand(max_sessions=16, envs=6, max_sessions_of_client=8) as stand,
        PullSocket(stand.run_dir.endpoint("status")) as status,
    ):
        strangers = [stand.client(name, training=False) for name in ("one", "two")]
        taken = [exchange(one, [stand.decision(env, 0, flags=FREE) for env in range(8)]) for one in strangers]
        assert [len(replies.actions) for replies in taken] == [8, 2]
        assert {failure.code for failure in taken[1].failures} == {ERR_CAPACITY}
        assert "all 10 sessions for clients without the run's token are in use; the other 6 of 16 are reserved" in (
            taken[1].failures[0].message
        )
        strangers[1].ask_status()
        limits = wait_for(lambda: strangers[1].poll().figures).limits
        assert (limits["sessions"], limits["sessions_without_token"], limits["sessions_of_client"]) == (16, 10, 8)
        (event,) = wait_for(lambda: [event for event in reported(status) if "session free" in event])
        assert event.startswith("6 games found no session free; the last was refused to client 'two': all 10")
        for life in (1, 2):  # also of a worker that was killed and comes back
            worker = stand.client("worker", run_id=life)
            assert len(exchange(worker, [stand.decision(env, 0) for env in range(6)]).actions) == 6
        exchange(strangers[0], stand.ends(1, *range(8)))
        assert len(exchange(strangers[1], [stand.decision(env, 0, flags=FREE) for env in range(2, 8)]).actions) == 6
        exchange(strangers[1], stand.ends(1, *range(8)))
        with unharmed(stand, "decisions"):
            exchange(worker, stand.ends(1, *range(6)))


@pytest.mark.counts("batches")
def test_fault_23_what_else_is_in_the_batch_changes_no_numbers(stand) -> None:
    answers = []
    for others in (0, 5, 23):
        client = InferenceClient(stand.run_dir.endpoint("data"), name="same", spec=SPEC)
        client.connect(PATIENCE_SEC)
        for step in range(6):
            start = FREE if step == 0 else 0
            with stalled(stand) as stall:  # all in one batch
                client.submit([stand.decision(1000, 0, episode=step, flags=FREE)])
                stall.wait_until_inside()
                client.submit([stand.decision(env, step, flags=start) for env in (7, *range(100, 100 + others))])
                stall.go.set()
            got = exchange(client, []).actions
            answers.append(next((a.step, a.action, a.log_prob, a.value) for a in got if a.env == 7))
        client.close()
    alone, few, many = (np.array(answers[i : i + 6]) for i in (0, 6, 12))
    assert np.allclose(alone, few, atol=1e-4)
    assert np.allclose(alone, many, atol=1e-4)
