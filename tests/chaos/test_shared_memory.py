"""Shared memory on a real server: the same answers as through the socket, and clients that misuse it or die with it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import msgspec
import pytest

from simul.common.client.client import InferenceClient
from simul.common.client.columns import ColumnClient, Columns
from simul.common.client.steps import pack_step
from simul.common.errors import ERR_VALUE
from simul.common.protocol.messages import Close, Step
from simul.common.protocol.shared_memory import ALIGNMENT
from simul.common.protocol.specs import GameSpec
from tests.support.anonymous import anonymous_files
from tests.support.faults import FREE
from tests.support.raw_client import RawClient
from tests.support.stand import Stand, exchange
from tests.support.waiting import PATIENCE_SEC, wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="granted on Linux only")

WIDE = GameSpec(name="test/wide", observation_size=1500, num_actions=5)  # a row is worth a block


@pytest.fixture(scope="module")
def stand() -> Iterator[Stand]:
    with Stand(WIDE, deterministic=True) as one:
        yield one


@pytest.fixture
def raw(stand) -> Iterator[RawClient]:
    with RawClient(stand.run_dir.endpoint("data"), stand.spec) as client:
        yield client
        client.send(Close())


def _play(client: InferenceClient, stand: Stand) -> list[tuple[float, ...]]:
    answers = []
    for step in range(9):
        replies = exchange(client, [stand.decision(env, step) for env in range(3)])
        answers += [(a.env, a.step, a.action, a.log_prob, a.value) for a in replies.actions]
    exchange(client, stand.ends(9, 0, 1, 2))
    return sorted(answers)


@pytest.mark.counts
def test_the_same_game_as_through_the_socket(stand) -> None:
    by_memory = stand.client("twin", run_id=1)
    assert by_memory._connection.memory is not None
    games = [_play(by_memory, stand)]
    wait_for(lambda: len(stand.learner.unrolls) == 9)  # three of each session: 4, 4 and 1 steps
    unrolls = list(stand.learner.unrolls)
    stand.learner.unrolls.clear()
    by_socket = stand.client("twin", run_id=2)
    by_socket._connection.memory = None
    games.append(_play(by_socket, stand))
    assert games[0] == games[1]
    wait_for(lambda: len(stand.learner.unrolls) == len(unrolls) > 0)


@pytest.mark.counts
def test_columns_and_their_blocks(stand) -> None:
    client = ColumnClient(stand.run_dir.endpoint("data"), name="columns", spec=stand.spec)
    client.connect(PATIENCE_SEC)
    columns = Columns.empty(3, stand.spec)
    columns.keys[:, 0], columns.flags[:] = range(3), FREE
    for step in range(20):
        columns.keys[:, 3] = step
        columns.observation[:] = step
        number, left = client.submit(columns), 3
        assert client._connection.memory._taken[0].number == number
        while left:
            client.poller.wait(1.0)
            left -= sum(len(answer.rows) for answer in client.poll())
        columns.flags[:] = 0
    assert not client.refusals
    assert len(client._connection.memory._taken) == 1  # always the same place
    client.close()


def test_a_full_memory_sends_the_rest_through_the_socket(stand) -> None:
    client = stand.client("full", run_id=3)
    memory = client._connection.memory
    assert memory is not None
    memory.grant = msgspec.structs.replace(memory.grant, size=ALIGNMENT + 7000)
    for env in range(4):
        client.submit([stand.decision(env, 0)])
    assert len(memory._taken) == 1
    assert len(exchange(client, []).actions) == 4


@pytest.mark.parametrize(("asks", "offset"), [(True, 2**40), (False, ALIGNMENT)])
@pytest.mark.counts("malformed", by=1)
def test_an_offset_outside_or_without_memory_is_refused_with_its_message(stand, raw, asks, offset) -> None:
    welcome = raw.hello("outside", run_id=time.time_ns(), shared_memory=asks)
    assert (welcome.shared_memory is not None) == asks
    step, tensors = pack_step(5, [stand.decision(0, 0, flags=FREE)], stand.spec)
    del tensors["observation"]
    answer = raw.ask(msgspec.structs.replace(step, observation_at=offset), tensors)
    assert (answer.code, answer.id) == (ERR_VALUE, 5)


@pytest.mark.counts
def test_memory_goes_with_its_client(stand) -> None:
    before = anonymous_files()
    for run_id in range(1, 40):  # each ends the one before
        with RawClient(stand.run_dir.endpoint("data"), stand.spec) as client:
            assert client.hello("many", run_id=run_id, shared_memory=True).shared_memory is not None
            wait_for(lambda: anonymous_files() <= before + 4)  # of this life and perhaps the last, until its turn ends
            if run_id == 39:
                client.send(Close())
    wait_for(lambda: anonymous_files() <= before)


def test_a_reconnect_keeps_the_memory(stand) -> None:
    with RawClient(stand.run_dir.endpoint("data"), stand.spec) as first:
        welcome = first.hello("again", run_id=1, shared_memory=True)
    with RawClient(stand.run_dir.endpoint("data"), stand.spec) as second:
        resumed = second.hello("again", run_id=1, token=welcome.token, shared_memory=True)
        assert resumed.resumed
        assert resumed.shared_memory == welcome.shared_memory
        assert second.ask(Step(id=1), {}).code  # an empty STEP lacks its tensors
        second.send(Close())
