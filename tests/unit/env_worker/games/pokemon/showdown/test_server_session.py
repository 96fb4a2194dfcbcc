"""When a local server that fails is started again, and when it is given up; a stand-in for its process."""

import pytest

from simul.common.errors import EnvError
from simul.env_worker.games.pokemon.showdown import server_session
from simul.env_worker.games.pokemon.showdown.server_session import (
    MAX_FAILURES,
    READY,
    START_SEC,
    LocalServerSession,
)
from simul.env_worker.games.pokemon.showdown.wakeup_queue import WakeupQueue


class Process:
    """Runs, and takes connections where `answers`."""

    answers = False
    url, pid = "ws://127.0.0.1:9/", 1

    def __init__(self, *_) -> None:
        pass

    def takes_connections(self) -> bool:
        return self.answers

    def alive(self) -> bool:
        return True

    def log_tail(self) -> str:
        return "its last words"

    def close(self) -> None:
        pass


class Pair:
    """Is logged in at once."""

    ready = True

    def __init__(self, *_) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.fixture
def session(monkeypatch, tmp_path):
    monkeypatch.setattr(server_session, "LocalServer", Process)
    monkeypatch.setattr(server_session, "AccountPair", Pair)
    monkeypatch.setattr(server_session, "make_folder", lambda _: tmp_path)
    monkeypatch.setattr(server_session, "copy_package", lambda folder: folder)
    return LocalServerSession("server 0", tmp_path / "node", WakeupQueue(), print)


def fail_once(session: LocalServerSession, now: float) -> float:
    """Start, and fail by a hang; returns when."""
    while not session.step(now) and session.state != READY:
        now += 1.0
    session.fail(now)
    return now


def test_a_server_that_hangs_in_each_start_is_given_up(session):
    now = 0.0
    for _ in range(MAX_FAILURES - 1):
        now = fail_once(session, now)
    assert now > (MAX_FAILURES - 1) * START_SEC
    with pytest.raises(EnvError, match=r"server 0 failed 5 times without being ready between.*\nits last words"):
        fail_once(session, now)


def test_a_server_that_was_ready_between_is_not(session, monkeypatch):
    now = 0.0
    for answers in [False, True] * MAX_FAILURES:
        monkeypatch.setattr(Process, "answers", answers)
        now = fail_once(session, now)
