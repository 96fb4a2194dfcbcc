"""Fault 12 in shared memory: observations that their client changes while the server reads them."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from simul.common.client.observation_memory import ObservationBlock, open_observation_memory
from simul.common.client.steps import pack_step
from simul.common.errors import ERR_VALUE
from simul.common.protocol.messages import TRUNCATED, Actions, Close, Error
from simul.common.protocol.specs import GameSpec
from simul.inference_server.serving import step_admission
from tests.support.faults import FREE
from tests.support.raw_client import RawClient
from tests.support.stand import Stand

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="granted on Linux only")

WIDE = GameSpec(name="test/wide", observation_size=1500, num_actions=5)
ROWS = 300
TRIES = 10


@pytest.fixture(scope="module")
def stand() -> Iterator[Stand]:
    with Stand(WIDE, max_sessions=ROWS + 64) as one:
        yield one


class Liar(RawClient):
    """Lays its observations into memory, and changes them there when it likes."""

    block: ObservationBlock
    texts: list[str]  # of the refusals

    def lay(self, rows: int) -> None:
        memory = open_observation_memory(self.hello("liar", run_id=time.time_ns(), shared_memory=True).shared_memory)
        assert memory is not None
        block = memory.allocate(1, rows, self.spec, owed={1})
        assert block is not None
        self.block, self.texts = block, []

    def step(self, stand: Stand, number: int, episode: int) -> dict[int, str]:
        """STEP of every row of the block, which is written first: the code that each row gets, "" for an action."""
        rows = len(self.block.observation)
        decisions = [stand.decision(env, 0, episode=episode, flags=FREE) for env in range(rows)]
        self.send(*pack_step(number, decisions, stand.spec, self.block))
        codes: dict[int, str] = {}
        while len(codes) < rows:
            message, found = self.receive()
            assert isinstance(message, Actions | Error)
            assert message.id == number
            if isinstance(message, Error):
                self.texts.append(message.message)
            code, answered = (message.code, message.rows) if isinstance(message, Error) else ("", found["row"].tolist())
            assert not codes.keys() & set(answered)
            codes |= dict.fromkeys(answered, code)
        return codes


@pytest.fixture
def liar(stand: Stand) -> Iterator[Liar]:
    with Liar(stand.run_dir.endpoint("data"), stand.spec) as client:
        yield client
        client.send(Close())


@pytest.mark.counts("decisions")
def test_fault_12_a_row_is_judged_by_one_copy_however_it_changes_while_it_is_admitted(stand, liar, monkeypatch):
    liar.lay(2)
    unpack = step_admission.unpack_step

    def unpack_and_scribble(*args, **more):
        liar.block.observation[0] = np.nan
        rows = unpack(*args, **more)
        liar.block.observation[0] = 0.0
        return rows

    monkeypatch.setattr(step_admission, "unpack_step", unpack_and_scribble)
    assert liar.step(stand, 1, episode=0) == {0: "", 1: ""}


@pytest.mark.counts("rows_errored.ERR_VALUE", by=1)
def test_fault_12_a_row_that_is_not_finite_when_it_is_copied_is_refused_and_may_come_again(stand, liar, monkeypatch):
    liar.lay(2)
    add = stand.server._batcher.queue_chunk

    def scribble(chunk) -> None:  # behind every check of the message, before its batch
        if chunk.client.name == "liar":
            liar.block.observation[0, 7] = np.nan
        add(chunk)

    with monkeypatch.context() as patch:
        patch.setattr(stand.server._batcher, "queue_chunk", scribble)
        assert liar.step(stand, 1, episode=0) == {0: ERR_VALUE, 1: ""}
    assert liar.texts == ["observation[7] is nan; expected finite numbers, 1 of 1500 are not"]
    mended = stand.decision(0, 0, flags=FREE)
    liar.send(*pack_step(2, [mended], stand.spec))
    message, found = liar.receive()
    assert (type(message), found["row"].tolist()) == (Actions, [0])
    assert np.isfinite(stand.server._weight_updates._policies["learner"].engine._table.numpy()).all()


@pytest.mark.counts("rows_errored.ERR_VALUE", by=1)
def test_fault_12_a_final_observation_is_copied_before_it_is_judged(stand, liar):
    liar.lay(1)
    assert liar.step(stand, 1, episode=0) == {0: ""}
    for number, value, code in ((2, np.nan, ERR_VALUE), (3, 0.5, "")):
        final = stand.decision(0, 1, kind=TRUNCATED, observation=np.full(1500, value, np.float32), mask=None)
        liar.send(*pack_step(number, [final], stand.spec, liar.block))
        message, _ = liar.receive()
        assert getattr(message, "code", "") == code


@pytest.mark.counts("decisions")
def test_fault_12_memory_that_never_rests_refuses_its_own_rows_only(stand, liar):
    liar.lay(ROWS)
    stop = threading.Event()

    def toggle() -> None:
        while not stop.is_set():
            liar.block.observation[:, 0] = np.nan
            liar.block.observation[:, 0] = 0.0

    hand = threading.Thread(target=toggle)
    hand.start()
    try:
        for number in range(TRIES):
            codes = liar.step(stand, number, episode=number)
            assert set(codes.values()) <= {"", ERR_VALUE}
    finally:
        stop.set()
        hand.join()
