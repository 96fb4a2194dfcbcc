"""The supervisor's end of an agent, over a channel of the test's."""

from __future__ import annotations

import threading

import pytest

from simul.common.role.run_directory import RunDir
from simul.launch.cluster.links import AgentLink, ChannelLostError, RemoteRole
from simul.launch.cluster.messages import AgentHello, FrameReader, FromAgent, News, StopRole, WriteFiles, encode_frame
from simul.launch.cluster.placement import Bundle
from tests.support.fake_agents import FakeEngine
from tests.support.waiting import wait_for

HELLO = AgentHello(root="/somewhere", machine="other", facts={})


@pytest.fixture
def engine():
    return FakeEngine()


@pytest.fixture
def link(engine):
    made = AgentLink(0, Bundle("env_worker", (0,), 1), engine)
    yield made
    made.drop()
    made.close()


def _connect(engine: FakeEngine, link: AgentLink, now: float) -> None:
    engine.free.set()
    engine.channel.said.put(encode_frame(HELLO))
    wait_for(lambda: list(link.poll(now, 30.0)) == [HELLO])


def test_frames_come_whole_out_of_any_pieces() -> None:
    messages: list[FromAgent] = [HELLO, News(exits={7: -9}, logs=[("simul-worker-0.log", b"\x00line\n")])]
    data = b"".join(map(encode_frame, messages))
    reader: FrameReader[FromAgent] = FrameReader(FromAgent)
    assert [message for at in range(len(data)) for message in reader.feed(data[at : at + 1])] == messages
    with pytest.raises(ValueError, match="at most"):
        list(reader.feed(b"\xff\xff\xff\xff"))


def test_nothing_is_sent_before_there_is_a_machine_and_a_process_that_waits_for_one_can_be_stopped(
    engine, link, tmp_path
) -> None:
    role = RemoteRole("env_worker", 0, RunDir(tmp_path), link, 1, ())
    link.send(WriteFiles(files={}))
    assert role.exit_code() is None
    role.request_stop()
    assert (role.exit_code(), role.exited_cleanly()) == (0, True)
    _connect(engine, link, 0.0)
    assert engine.channel.heard == []


def test_a_request_to_stop_goes_to_the_agent_and_its_answer_is_the_exit_code(engine, link, tmp_path) -> None:
    _connect(engine, link, 0.0)
    role = RemoteRole("env_worker", 0, RunDir(tmp_path), link, 1, ())
    role.request_stop()
    assert engine.channel.heard == [StopRole(run_id=role.run_id)]
    assert role.exit_code() is None
    role.end(1)
    assert (role.exit_code(), role.exit_reason(), role.exited_cleanly()) == (1, "exit code 1", False)


def test_an_agent_is_lost_after_silence_but_not_by_a_pause_of_the_supervisor(engine, link) -> None:
    _connect(engine, link, 0.0)
    for now in (4.0, 8.0, 100.0, 104.0):  # from 8 to 100 the supervisor did not run
        assert list(link.poll(now, 30.0)) == []
    assert not link.lost
    for now in (108.0, 112.0, 116.0, 120.0, 124.0):
        list(link.poll(now, 30.0))
    assert link.lost == "no sign of life for 30 s"


@pytest.mark.parametrize("said", [ChannelLostError("the machine is gone"), encode_frame(HELLO)[:4] + b"\xc1" * 99])
def test_an_agent_is_lost_where_its_channel_is_or_it_sends_nonsense(engine, link, said) -> None:
    _connect(engine, link, 0.0)
    engine.channel.said.put(said)
    wait_for(lambda: list(link.poll(0.0, 30.0)) or link.lost)
    assert "gone" in link.lost or "cannot be read" in link.lost


@pytest.mark.parametrize("placed", [False, True])
def test_no_thread_uses_the_engine_after_close(engine, placed) -> None:
    link = AgentLink(0, Bundle("env_worker", (0,), 1), engine)
    if placed:
        _connect(engine, link, 0.0)
        link.drop()
    link.leave(remove=True)
    link.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "simul-agent-0"]
