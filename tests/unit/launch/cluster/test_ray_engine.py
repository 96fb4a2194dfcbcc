"""What the actor of an agent does with calls that Ray makes twice, or reports as failed although they were made."""

from __future__ import annotations

import importlib
import sys

import pytest

from tests.support.fake_ray import ENGINE, install_ray


class Agent:
    """Says a piece more each time that it is asked."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.asked = 0

    def send(self, data: bytes) -> None:
        self.heard.append(data)

    def receive(self, timeout_sec: float) -> bytes:
        self.asked += 1
        return b"%d" % self.asked


@pytest.fixture
def actor(monkeypatch):
    install_ray(monkeypatch, "127.0.0.1")
    made = importlib.import_module(ENGINE).AgentActor("/")
    made._agent = Agent()
    yield made
    sys.modules.pop(ENGINE, None)


def test_each_piece_reaches_the_agent_once_and_in_order(actor):
    for number in (0, 0, 2, 3, 2, 1, 1, 0, 4):
        actor.send(number, b"%d" % number)
    assert actor._agent.heard == [b"0", b"1", b"2", b"3", b"4"]


def test_a_piece_whose_answer_was_lost_comes_again(actor):
    assert [actor.receive(number, 1.0) for number in (0, 0, 1, 2, 2, 2)] == [b"1", b"1", b"2", b"3", b"3", b"3"]
