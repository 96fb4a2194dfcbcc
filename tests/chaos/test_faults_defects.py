"""Fault 14, a defect of the server's own: an unforeseen exception out of one message costs that message only."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simul.common.client.steps import pack_step
from simul.common.errors import ERR_INTERNAL, ERR_NO_SESSION
from simul.common.protocol.messages import Error, Evaluate, Ping, Step
from tests.support.faults import count, unharmed
from tests.support.raw_client import RawClient
from tests.support.stand import Stand
from tests.support.waiting import wait_for

ROWS = 3


class Defect(Exception):
    """What nothing expects."""


def break_once(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, *, after: bool = False) -> None:
    """The next call of a method raises, `after` it has done its work or instead."""
    method: Callable[..., Any] = getattr(owner, name)
    left = [1]

    def broken(*args: Any, **more: Any) -> Any:
        if not left:
            return method(*args, **more)
        if after:
            method(*args, **more)
        left.clear()
        raise Defect("poisoned")

    monkeypatch.setattr(owner, name, broken)


def answers_to(raw: RawClient, message: Step | Evaluate, tensors: Any) -> list[tuple[str, tuple[int, ...]]]:
    """(code, rows) of every answer to a message, () for all of its rows; "" for actions."""
    raw.send(message, tensors)
    answers: list[tuple[str, tuple[int, ...]]] = []
    asked, owed = False, True
    while True:
        answer, found = raw.receive()
        if getattr(answer, "id", None) == 77:  # PONG: nothing stands between
            return answers
        code = answer.code if isinstance(answer, Error) else ""
        answers.append((code, tuple(answer.rows) if isinstance(answer, Error) else tuple(found["row"].tolist())))
        owed = () not in [rows for _, rows in answers] and sum(len(rows) for _, rows in answers) < ROWS
        if not owed and not asked:
            asked = True
            raw.send(Ping(id=77))


def rows_of(stand: Stand, step: int) -> tuple[Step, dict[str, Any]]:
    return pack_step(step, [stand.decision(env, step) for env in range(ROWS)], stand.spec)


@pytest.fixture
def trainer(stand: Stand) -> Any:
    """A client whose steps are recorded, its games at step 1."""
    with RawClient(stand.run_dir.endpoint("data"), stand.spec) as raw:
        raw.hello("trainer", run_id=next(_lives), training_token=stand.run_dir.token())
        assert answers_to(raw, *rows_of(stand, 0)) == [("", (0, 1, 2))]
        yield raw


_lives = iter(range(1, 1000))

WHOLE = {  # a method of the server's parts: the message is refused, and its sessions end
    "before it is looked at": ("_admission_control._in_flight", "has_room"),
    "before its rows begin": ("_admission_control._step_admission", "admit_rows"),
    "when its rows have begun": ("_recorder", "add_rewards"),
    "when all of it is judged": ("_admission_control._step_admission", "_chunks"),
}


def part(stand: Stand, path: str) -> Any:
    found: Any = stand.server
    for name in path.split("."):
        found = getattr(found, name)
    return found


@pytest.mark.parametrize("name", WHOLE)
def test_fault_14_a_defect_costs_its_message(stand, trainer, monkeypatch, name) -> None:
    path, method = WHOLE[name]
    with unharmed(stand, "messages_refused.ERR_INTERNAL", by=1):
        break_once(monkeypatch, part(stand, path), method)
        assert answers_to(trainer, *rows_of(stand, 1)) == [(ERR_INTERNAL, ())]
        assert {code for code, _ in answers_to(trainer, *rows_of(stand, 2))} == {ERR_NO_SESSION}
        assert answers_to(trainer, *rows_of(stand, 0)) == [("", (0, 1, 2))]


@pytest.mark.counts("faults", by=1)
def test_fault_14_a_defect_that_one_row_meets_costs_this_row(stand, trainer, monkeypatch) -> None:
    assert answers_to(trainer, *rows_of(stand, 1)) == [("", (0, 1, 2))]
    before = count(stand, "rows_errored.ERR_INTERNAL")
    message, tensors = rows_of(stand, 1)
    tensors["keys"][:, 4] = 1  # REDO: judged row by row
    break_once(monkeypatch, stand.server._admission_control._sessions, "begin_step")
    assert sorted(answers_to(trainer, message, tensors)) == [("", (1, 2)), (ERR_INTERNAL, (0,))]
    assert count(stand, "rows_errored.ERR_INTERNAL") == before + 1


ROW_BY_ROW = {  # each row gets an error of its own
    "before they are queued": ("_batcher", "queue_chunk", False),
    "when they are queued": ("_batcher._batch_wait", "client_returned", True),
    "while their results are judged": ("_operations.statistics", "batch", False),
}


@pytest.mark.counts("rows_errored.ERR_INTERNAL", by=ROWS)
@pytest.mark.parametrize("name", ROW_BY_ROW)
def test_fault_14_rows_on_which_the_server_fails_are_answered_once(stand, trainer, monkeypatch, name) -> None:
    path, method, after = ROW_BY_ROW[name]
    failures = count(stand, "faults"), stand.server._operations.statistics.forward_failures
    break_once(monkeypatch, part(stand, path), method, after=after)
    assert answers_to(trainer, *rows_of(stand, 1)) == [(ERR_INTERNAL, (0, 1, 2))]
    assert answers_to(trainer, *rows_of(stand, 0)) == [("", (0, 1, 2))]
    assert (count(stand, "faults") - 1, stand.server._operations.statistics.forward_failures) == failures


@pytest.mark.counts("rows_errored.ERR_INTERNAL", by=1)
@pytest.mark.parametrize("error", [TypeError, KeyError, AssertionError, Defect])
def test_fault_14_whatever_a_network_raises_costs_the_row_that_makes_it(stand, trainer, monkeypatch, error) -> None:
    backend = stand.server._weight_updates._policies["learner"].engine._backend
    run = backend.run

    def raising(observation, mask, state):
        if (observation[:, 0] == 777.0).any():
            raise error("poisoned")
        return run(observation, mask, state)

    monkeypatch.setattr(backend, "run", raising)
    message, tensors = rows_of(stand, 1)
    tensors["observation"][1, 0] = 777.0
    answers = answers_to(trainer, message, tensors)
    assert Counter(row for _, rows in answers for row in rows) == Counter(range(ROWS))
    assert [rows for code, rows in answers if code == ERR_INTERNAL] == [(1,)]


@pytest.mark.counts("messages_refused.ERR_INTERNAL", by=2)
def test_fault_14_a_defect_without_a_session(stand, trainer, monkeypatch) -> None:
    question = {"observation": np.zeros((ROWS, 12), np.float32), "mask": np.full((ROWS, 1), 31, np.uint8)}
    break_once(monkeypatch, stand.server._evaluator, "admit")
    assert answers_to(trainer, Evaluate(id=5), question) == [(ERR_INTERNAL, ())]
    break_once(monkeypatch, stand.server._client_socket._codec, "decode")
    trainer.send(Ping(id=1))
    assert trainer.receive()[0].code == ERR_INTERNAL
    assert answers_to(trainer, *rows_of(stand, 1)) == [("", (0, 1, 2))]


@pytest.mark.counts("replies_dropped", by=1)
def test_fault_14_an_answer_that_cannot_be_sent_is_lost_alone_and_asked_for_again(stand, trainer, monkeypatch) -> None:
    break_once(monkeypatch, stand.server._client_socket.socket, "deliver")
    trainer.send(Ping(id=1))
    assert answers_to(trainer, *rows_of(stand, 1)) == [("", (0, 1, 2))]


@pytest.mark.counts("faults", by=1)
def test_fault_14_an_end_that_cannot_be_recorded_frees_its_slot(stand, trainer, monkeypatch) -> None:
    sessions = count(stand, "sessions")
    break_once(monkeypatch, stand.server._recorder, "close_recording", after=True)
    ends = pack_step(1, stand.ends(1, *range(ROWS)), stand.spec)
    assert answers_to(trainer, *ends) == [("", (0, 1, 2))]
    assert count(stand, "sessions") == sessions - ROWS


AFTER_THE_REPLY = {  # the rows have their actions, and their sessions end
    "before the states are taken": ("_actor._sessions", "commit", False),
    "when the states are taken": ("_actor._sessions", "commit", True),
    "before the steps are recorded": ("_recorder", "append_steps", False),
    "when the steps are recorded": ("_recorder", "append_steps", True),
}


@pytest.mark.counts("faults", by=1)
@pytest.mark.parametrize("name", AFTER_THE_REPLY)
def test_fault_14_a_defect_after_the_reply_ends_the_sessions_of_its_batch(stand, trainer, monkeypatch, name) -> None:
    path, method, after = AFTER_THE_REPLY[name]
    ended, dropped = (count(stand, name) for name in ("sessions_ended.server_fault", "steps.dropped.server_fault"))
    break_once(monkeypatch, part(stand, path), method, after=after)
    assert answers_to(trainer, *rows_of(stand, 1)) == [("", (0, 1, 2))]
    assert {code for code, _ in answers_to(trainer, *rows_of(stand, 2))} == {ERR_NO_SESSION}
    assert count(stand, "sessions_ended.server_fault") == ended + ROWS
    assert count(stand, "steps.dropped.server_fault") > dropped
    assert answers_to(trainer, *rows_of(stand, 0)) == [("", (0, 1, 2))]


@pytest.mark.counts("unrolls.dropped.server_fault", by=1)
@pytest.mark.parametrize("owner", ["_buffer", "_link"])
@pytest.mark.parametrize("ends", [False, True])
def test_fault_14_an_unroll_that_cannot_be_handed_over_is_dropped(stand, trainer, monkeypatch, owner, ends) -> None:
    for step in range(1, 4):
        assert answers_to(trainer, *rows_of(stand, step)) == [("", (0, 1, 2))]
    wait_for(lambda: stand.server._recorder._link.reads_memory(time.monotonic()))
    break_once(monkeypatch, part(stand, f"_recorder.{owner}"), "lend" if owner == "_buffer" else "offer")
    dropped = count(stand, "steps.dropped.server_fault")
    last = pack_step(4, stand.ends(4, *range(ROWS)), stand.spec) if ends else rows_of(stand, 4)
    assert answers_to(trainer, *last) == [("", (0, 1, 2))]
    wait_for(lambda: count(stand, "steps.dropped.server_fault") > dropped)
    unrolls = stand.server.metrics()["unrolls"]
    assert unrolls["completed"] == unrolls["sent"] + unrolls["waiting"] + sum(unrolls["dropped"].values())


@pytest.mark.counts("rows_errored.ERR_INTERNAL", by=ROWS + 1)
def test_fault_14_a_defect_costs_an_evaluation_or_one_of_its_rows(stand, trainer, monkeypatch) -> None:
    question = {"observation": np.zeros((ROWS, 12), np.float32), "mask": np.full((ROWS, 1), 31, np.uint8)}
    break_once(monkeypatch, stand.server._evaluator, "_reply")
    assert answers_to(trainer, Evaluate(id=5), question) == [(ERR_INTERNAL, (0, 1, 2))]
    question["session"] = np.array([[env, 0, 0] for env in range(ROWS)], np.int64)
    break_once(monkeypatch, stand.server._admission_control._sessions, "state_row")
    assert sorted(answers_to(trainer, Evaluate(id=6), question)) == [("", (1, 2)), (ERR_INTERNAL, (0,))]
