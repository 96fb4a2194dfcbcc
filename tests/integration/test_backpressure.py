"""Limits through real sockets: busy, deadline, fair shares, slow readers. Whoever overdoes it hurts only itself."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np

from common.client import Replies, pack_step
from common.decisions import start_flags
from common.errors import ERR_BUSY, ERR_CAPACITY, ERR_DEADLINE, ERR_LIMIT
from common.messages import Actions, Error, Figures, StatusRequest
from tests.support.raw_client import RawClient
from tests.support.stall import stalled
from tests.support.stand import Stand, exchange

FREE = start_flags(record=False, greedy=False)


def _gather(client, timeout_sec: float = 10.0) -> Replies:
    total, deadline = Replies([], []), time.monotonic() + timeout_sec
    while client.waiting:
        more = client.poll()
        total.actions += more.actions
        total.failures += more.failures
        assert time.monotonic() < deadline
        client.poller.wait(0.01)
    return total


def test_beyond_the_limit_the_answer_is_busy_at_once_and_nothing_was_admitted() -> None:
    with Stand(max_rows_of_client=8) as stand, RawClient(stand.run_dir.endpoint("data"), stand.spec) as raw:
        assert raw.hello().limits["rows_per_step"] == 8
        with stalled(stand) as stall:
            stand.client("other").submit([stand.decision(0, 0)])
            stall.wait_until_inside()
            for number in range(3):
                rows = [stand.decision(4 * number + i, 0, flags=FREE) for i in range(4)]
                raw.send(*pack_step(number, rows, stand.spec))
            stall.go.set()
            answers = [raw.receive()[0] for _ in range(3)]
        busy = next(answer for answer in answers if isinstance(answer, Error))
        assert (busy.code, busy.id, busy.rows) == (ERR_BUSY, 2, ())
        assert 1 <= busy.retry_after_ms <= 1000
        assert stand.server.metrics()["rows_errored"] == {ERR_BUSY: 4}
        assert stand.server.metrics()["sessions"] == 9
        raw.send(*pack_step(3, [stand.decision(8 + i, 0, flags=FREE) for i in range(4)], stand.spec))
        message, tensors = raw.receive()
        assert isinstance(message, Actions)
        assert sorted(tensors["row"].tolist()) == [0, 1, 2, 3]
        refused = raw.ask(*pack_step(4, [stand.decision(i, 1, flags=0) for i in range(9)], stand.spec))
        assert (refused.code, refused.id) == (ERR_LIMIT, 4)


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


def test_a_row_whose_deadline_passed_is_not_forwarded_and_may_come_again() -> None:
    with Stand(max_batch=1, deterministic=True) as stand:
        plays = []
        for late in (False, True):
            client = stand.client("same", run_id=1 + late)
            first = [stand.decision(env, 0) for env in range(3)]
            second = [stand.decision(env, 1, reward=1.0) for env in range(3)]
            exchange(client, first)
            if late:
                batches = stand.server.metrics()["batches"]
                with stalled(stand) as stall:
                    client.submit(second, deadline_ms=20)
                    stall.wait_until_inside()
                    time.sleep(0.05)
                    stall.go.set()
                    replies = _gather(client)
                assert [action.env for action in replies.actions] == [0]
                assert [(f.env, f.code) for f in replies.failures] == [(1, ERR_DEADLINE), (2, ERR_DEADLINE)]
                assert stand.server.metrics()["batches"] == batches + 1
                second = second[1:] + second[:1]
            actions = exchange(client, second).actions
            actions += exchange(client, [stand.decision(env, 2) for env in range(3)]).actions
            plays.append(sorted((a.env, a.step, a.action, a.log_prob, a.value) for a in actions))
            stand.server.metrics()
            client.close()
        assert plays[0] == plays[1]
        deadline = time.monotonic() + 5
        while stand.server.metrics()["sessions"] and time.monotonic() < deadline:
            time.sleep(0.01)
        steps = stand.server.metrics()["steps"]
        assert steps["seen"] == 18 == steps["sent"] + sum(steps["dropped"].values()) + steps["open"]


def test_a_start_that_was_late_is_reaped_like_any_idle_session() -> None:
    with Stand(max_batch=1, idle_timeout_sec=0.3) as stand:
        client = stand.client("a")
        with stalled(stand) as stall:
            client.submit([stand.decision(env, 0) for env in range(2)], deadline_ms=5)
            stall.wait_until_inside()
            time.sleep(0.02)
            stall.go.set()
            assert [f.code for f in _gather(client).failures] == [ERR_DEADLINE]
        deadline = time.monotonic() + 5
        while stand.server.metrics()["sessions_ended"].get("idle", 0) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
            client.poll()
        assert stand.server.metrics()["sessions_ended"] == {"idle": 2}
        assert len(exchange(client, [stand.decision(1, 0, episode=1)]).actions) == 1


def test_a_flood_leaves_the_others_their_share() -> None:
    """Of every batch for which all three have rows enough, whoever floods gets a third like the others."""
    with Stand(max_batch=24, max_sessions=512, max_rows_of_client=400) as stand:
        clients = {name: stand.client(name, training=False) for name in ("flood", "a", "b")}
        envs = {"flood": 320, "a": 60, "b": 60}
        served: Counter[str] = Counter()
        settle, in_flight = stand.server._settle, stand.server._in_flight

        def counted(batch) -> None:
            if all(in_flight.of(client) >= 8 for client in stand.server._clients):
                for chunk in batch:
                    served[chunk.client.name] += len(chunk)
            settle(batch)

        stand.server._settle = counted
        with stalled(stand) as stall:
            for name, client in clients.items():
                client.submit([stand.decision(env, 0, flags=FREE) for env in range(envs[name])])
            stall.go.set()
        deadline = time.monotonic() + 20
        while sum(served.values()) < 1000:
            for client in clients.values():
                if actions := client.poll().actions:
                    client.submit([stand.decision(a.env, a.step + 1) for a in actions])
            assert time.monotonic() < deadline
        for polite in ("a", "b"):
            assert served[polite] >= 0.9 * sum(served.values()) / 3, served


def test_who_never_reads_loses_its_replies_and_then_its_sessions_and_nobody_else_notices() -> None:
    with Stand(slow_reader_replies=20) as stand:
        endpoint, other = stand.run_dir.endpoint("data"), stand.client("other")
        with RawClient(endpoint, stand.spec, queue=2) as deaf:
            deaf.hello("deaf")
            deaf.send(*pack_step(1, [stand.decision(0, 0, flags=FREE)], stand.spec))
            step, deadline = 0, time.monotonic() + 20
            while "slow_reader" not in stand.server.metrics()["sessions_ended"]:
                for _ in range(500):
                    deaf.socket.send([b"\x81\xa4type\xa6STATUS"])
                assert exchange(other, [stand.decision(5, step)]).actions[0].step == step
                step += 1
                assert time.monotonic() < deadline
            metrics = stand.server.metrics()
            assert metrics["sessions_ended"] == {"slow_reader": 1}
            assert metrics["replies_dropped"] >= 20
            assert metrics["clients"] == 1


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


def test_when_every_session_is_taken_the_answer_comes_at_once_and_an_end_makes_room() -> None:
    with Stand(max_sessions=2) as stand:
        client = stand.client("a")
        replies = exchange(client, [stand.decision(env, 0) for env in range(3)])
        assert [failure.code for failure in replies.failures] == [ERR_CAPACITY]
        exchange(client, [stand.decision(0, 1, kind=3, observation=None, mask=None)])
        assert len(exchange(client, [stand.decision(2, 0)]).actions) == 1
