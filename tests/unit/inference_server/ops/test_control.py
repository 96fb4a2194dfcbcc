"""The control socket's turn in the loop: bounded, closed to strangers, and over when a request meets a defect."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from simul.common.protocol.codec import Codec, Frame, encode
from simul.common.protocol.messages import FROM_CONTROL, ControlAnswer, ListPolicies
from simul.inference_server.base.statistics import Statistics
from simul.inference_server.ops.control import MOST_AT_ONCE, TOLD, Control

POLICY = SimpleNamespace(
    name="learner", version=3, source="learner", retired_at=0.0, engine=SimpleNamespace(state_size=0)
)  # fmt: skip


class Desk:
    """Control on a socket that delivers `messages`."""

    def __init__(self, messages: Iterator[list[Frame]], bound_to: Any = lambda name: 5) -> None:
        self.answers: list[ControlAnswer] = []
        self.statistics = Statistics()
        codec: Codec[ControlAnswer] = Codec(FROM_CONTROL)
        socket: Any = SimpleNamespace(
            receive=lambda: next(((b"peer", frames) for frames in messages), None),
            send=lambda peer, frames: self.answers.append(codec.decode(list(map(bytes, frames)))[0]),
        )
        sessions: Any = SimpleNamespace(bound_to=bound_to)
        policies: Any = [POLICY]
        self.control = Control(socket, "secret", policies, sessions, self.statistics, logging.getLogger("test"))


def test_a_flood_of_requests_leaves_the_loop_after_a_few() -> None:
    desk = Desk(itertools.repeat(encode(ListPolicies())))
    desk.control.poll()
    assert len(desk.answers) == MOST_AT_ONCE


@pytest.mark.parametrize("frames", [[], [b"nonsense"], encode(ListPolicies()), encode(ListPolicies(token="wrong"))])
def test_whoever_shows_no_token_learns_nothing_of_what_is_served(frames: list[Frame]) -> None:
    desk = Desk(iter([frames]))
    desk.control.poll()
    (answer,) = desk.answers
    assert (answer.ok, answer.policies) == (False, ())
    assert answer.text


def test_a_request_that_meets_a_defect_costs_itself_only() -> None:
    left = ["poisoned"]

    def bound_to(name: str) -> int:
        if left:
            raise KeyError(left.pop())
        return 5

    desk = Desk(iter([encode(ListPolicies(token="secret"))] * 2), bound_to)
    desk.control.poll()
    assert [(answer.ok, answer.text) for answer in desk.answers] == [(False, TOLD), (True, "")]
    assert desk.answers[1].policies[0].sessions == 5
    assert desk.statistics.faults == 1
