"""What an agent tells its supervisor, and what becomes of the logs on its machine."""

from __future__ import annotations

import os
import sys
import threading
from types import SimpleNamespace

import pytest

from simul.launch.cluster import agent as agent_module
from simul.launch.cluster.agent import PIECE_BYTES, Agent, LogTails
from simul.launch.cluster.messages import AgentHello, FrameReader, FromAgent, Leave, News, StartRole, encode_frame

LINES = 40_000  # more than a look reads of a log
CHATTY = f"import sys\nfor n in range({LINES}):\n    sys.stderr.write(f'line {{n:20}}\\n')\nsys.exit(3)"


def test_the_log_of_a_process_that_has_ended_comes_whole_before_its_exit_code_in_pieces_that_fit_a_frame(tmp_path):
    (commands, to_agent), (news, from_agent) = os.pipe(), os.pipe()
    try:
        agent = Agent(tmp_path / "node", commands, from_agent, lambda role: [sys.executable, "-c", CHATTY])
        thread = threading.Thread(target=agent.run)
        thread.start()
        os.write(to_agent, encode_frame(StartRole(role="env_worker", index=0, run_id=7, threads=1)))
        heard = _listen(news, to_agent)
        thread.join()
    finally:
        for number in (commands, to_agent, news, from_agent):
            os.close(number)
    exits = [at for at, message in enumerate(heard) if message.exits]
    assert [heard[at].exits for at in exits] == [{7: 3}]
    log = b"".join(data for message in heard[: exits[0] + 1] for name, data in message.logs)
    assert log.decode() == "".join(f"line {n:20}\n" for n in range(LINES))
    assert max(len(encode_frame(message)) for message in heard) < PIECE_BYTES + 1024 < len(log)
    assert 7 in {run_id for message in heard for run_id in message.started}


def _listen(news: int, to_agent: int) -> list[News]:
    """What the agent says until its process has ended; then it is asked to leave."""
    reader: FrameReader[FromAgent] = FrameReader(FromAgent)
    heard: list[News] = []
    while not any(message.exits for message in heard):
        for message in reader.feed(os.read(news, 1 << 16)):
            if not isinstance(message, AgentHello):
                heard.append(message)
    os.write(to_agent, encode_frame(Leave(remove=True)))
    return heard


@pytest.mark.parametrize(("role", "least_sec", "most_sec"), [("learner", 600.0, 800.0), ("env_worker", 10.0, 30.0)])
def test_a_learner_that_saves_where_the_supervisor_is_gone_has_the_time_and_no_other_role(
    tmp_path, monkeypatch, role, least_sec, most_sec
):
    now, killed = [0.0], []
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda sec: now.__setitem__(0, now[0] + sec))
    monkeypatch.setattr(agent_module, "time", clock)
    agent = Agent(tmp_path / "node", 0, 0)
    agent._roles[7] = SimpleNamespace(
        wanted=StartRole(role=role, index=0, run_id=7, threads=1), poll=lambda: None, request_stop=lambda: None,
        kill=lambda: killed.append(now[0]),
    )  # fmt: skip
    agent._drain()
    assert least_sec < killed[0] < most_sec


@pytest.fixture
def limit(monkeypatch):
    monkeypatch.setattr(agent_module, "PIECE_BYTES", 100)
    monkeypatch.setattr(agent_module, "MOST_LOG_BYTES", 250)


def test_a_log_that_has_become_large_is_emptied_once_it_was_read(tmp_path, limit):
    log, tails = tmp_path / "simul-worker-0.log", LogTails(tmp_path)
    written, seen = b"", b""
    with log.open("ab", buffering=0) as file:
        for n in range(40):
            line = b"%049d\n" % n
            file.write(line)
            written += line
            seen += b"".join(data for _, data in tails.read())
            assert log.stat().st_size <= 300
    assert seen == written
    assert list(tails.read()) == []


def test_a_log_that_is_not_read_yet_stays_and_one_that_another_program_emptied_is_read_anew(tmp_path, limit):
    log, tails = tmp_path / "simul-worker-0.log", LogTails(tmp_path)
    log.write_bytes(b"a" * 450)
    assert [data for _ in range(4) for _, data in tails.read()] == [b"a" * 100] * 4
    assert log.stat().st_size == 450
    log.write_bytes(b"b" * 50)
    assert list(tails.read()) == [(log.name, b"b" * 50)]
