"""All sessions of a client that is gone end at once, and the books are as if each had ended by itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from simul.common.client.steps import pack_step
from simul.common.config.schema import NetworkConfig
from simul.common.nets.build import build_network
from simul.common.protocol.decisions import Decision, start_flags
from simul.common.protocol.messages import ABORTED
from simul.common.protocol.specs import GameSpec
from simul.inference_server.base.statistics import Statistics
from simul.inference_server.engine.engine import Outputs
from simul.inference_server.serving.step_admission import StepAdmission
from simul.inference_server.sessions.clients import Client, ClientTable
from simul.inference_server.sessions.session_close import SessionCloser
from simul.inference_server.sessions.table import SessionTable
from simul.inference_server.unrolls.buffer import UnrollBuffer
from simul.inference_server.unrolls.recorder import Recorder

SPEC = GameSpec(name="test", observation_size=4, num_actions=3)
STATE = build_network(NetworkConfig(options={"hidden": 8}), SPEC).state_size
ROW, MASK = np.zeros(4, np.float32), np.ones(3, np.uint8)


class _Desk:
    """Sessions, their admission and their recorder: client `a` has six, `b` two; some recorded, some unanswered."""

    def __init__(self) -> None:
        self.statistics, self.table, self.clients = Statistics(), SessionTable(16, seed=0), ClientTable("secret")
        self.recorder = Recorder(UnrollBuffer(SPEC, 4, STATE), None, self.statistics)
        policies = SimpleNamespace(versions=lambda: {"learner": 0}, source_of=lambda name: name)
        self.session_closer = SessionCloser(self.table, self.recorder, self.statistics)
        self.step_admission = StepAdmission(
            SPEC, self.table, cast(Any, policies), self.recorder, self.session_closer, self.statistics
        )
        self.a, self.b = (self.clients.register_client(name, 1, "secret", name.encode(), 0.0)[0] for name in "ab")
        for step in range(3):
            for client, envs in ((self.a, 6), (self.b, 2)):
                self._play(client, step, [env for env in range(envs) if step < 2 or env % 3 == 0], answer=step < 2)

    def _play(self, client: Client, step: int, envs: list[int], *, answer: bool) -> None:
        flags = [start_flags(env % 2 == 0, False) if step == 0 else 0 for env in envs]
        rows = [
            Decision(env, 0, 0, step, flags=flag, observation=ROW, mask=MASK) for env, flag in zip(envs, flags)
        ]  # fmt: skip
        for chunk in self.step_admission.admit_rows(client, *pack_step(step, rows, SPEC), 0.0).chunks if answer else ():
            n, written = len(chunk), np.zeros(len(chunk), np.int64)
            self.table.find_state_rows(chunk.slots, chunk.redo, np.zeros(n, np.int64), written)
            outputs = Outputs(np.zeros(n, np.int32), np.zeros(n, np.float32), np.zeros(n, np.float32))
            self.table.commit(chunk.slots, written, *outputs, 0, 0.0)
            if chunk.recorded:
                self.recorder._buffer.append(
                    self.table.unroll_row.take(chunk.slots), chunk.redo, chunk.observation[chunk.rows],
                    chunk.mask[chunk.rows], *outputs, 0,
                )  # fmt: skip
        if not answer:
            self.step_admission.admit_rows(client, *pack_step(step, rows, SPEC), 0.0)

    def books(self) -> tuple[Any, ...]:
        free = sorted(self.table._free), sorted(self.recorder._buffer._free)
        steps = self.recorder.steps(self.table.count_pending_recorded())
        return len(self.table), free, steps, dict(self.statistics.sessions_ended)


@pytest.mark.parametrize("cause", ["client_lost", "new_run"])
def test_at_once_is_as_one_by_one(cause: str) -> None:
    one_by_one, at_once = _Desk(), _Desk()
    assert one_by_one.books() == at_once.books()
    for env in range(6):
        session = one_by_one.table.find(one_by_one.a, env, 0)
        assert session is not None
        one_by_one.session_closer.close_session(session, ABORTED, None, cause, 0.0)
    at_once.session_closer.close_sessions_of(at_once.a, cause)
    assert one_by_one.books() == at_once.books()
    sessions, _, steps, ended = at_once.books()
    assert (sessions, ended) == (2, {cause: 6})
    assert steps["dropped"] == {cause: 6, "unanswered": 1}
    assert steps["seen"] == steps["sent"] + sum(steps["dropped"].values()) + steps["open"]
    at_once.table.check()
    assert at_once.table.find(at_once.a, 0, 0) is None
    at_once.session_closer.close_sessions_of(at_once.a, cause)
    assert at_once.books()[3] == {cause: 6}
    at_once._play(at_once.a, 0, list(range(6)), answer=True)
    at_once.table.check()
