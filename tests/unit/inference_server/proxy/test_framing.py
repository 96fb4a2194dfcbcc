"""What a peer holds, however its bytes arrive."""

from __future__ import annotations

import pytest

from simul.inference_server.proxy.framing import (
    COMMAND_BYTES,
    COMMANDS,
    FRAME_COST,
    MAX_HEARTBEAT_BYTES,
    Answers,
    FromClient,
    FromServer,
    LimitExceeded,
    Limits,
)

HEAD = b"\xff" + bytes(8) + b"\x7f\x03\x00"
NULL, CURVE = HEAD + b"NULL".ljust(52, b"\0"), HEAD + b"CURVE".ljust(52, b"\0")
READY = b"\x04\x06\x05READY"
LIMITS = Limits(message_frames=3, message_bytes=1000, unanswered_frames=10, unanswered_bytes=5000)
ANSWER = Answers(number=1, size=100)


def fed(greeting: bytes, *parts: bytes, step: int = 0) -> FromClient:
    """A peer's bytes, `step` at a time; 0: part by part."""
    peer = FromClient(LIMITS)
    for part in (greeting, READY, *parts):
        for at in range(0, len(part), step or len(part)):
            peer.feed(memoryview(part)[at : at + (step or len(part))])
    return peer


MESSAGE = b"\x01\x03abc" + b"\x03" + (300).to_bytes(8, "big") + bytes(300) + b"\x00\x00"


@pytest.mark.parametrize("step", [0, 1, 2, 7, 64, 1000])
def test_a_message_counts_until_it_is_complete_and_answered(step: int) -> None:
    peer = fed(NULL, MESSAGE[:-1], step=step)
    peer.answered(ANSWER)
    assert peer.pending == 303 + 2 * FRAME_COST  # the third frame's header is not complete
    peer.feed(memoryview(MESSAGE[-1:]))
    assert (peer.pending, peer.frames) == (303 + 3 * FRAME_COST, 1)
    peer.answered(ANSWER)
    assert (peer.pending, peer.frames) == (0, 0)


@pytest.mark.parametrize("step", [0, 1, 5])
@pytest.mark.parametrize(
    ("bytes_", "cause"),
    [
        (b"\x01\x00" * 4, "frames"),
        (b"\x03" + (1001).to_bytes(8, "big"), "message"),
        (b"\x03" + (2**63).to_bytes(8, "big"), "message"),
        ((b"\x01\xfa" + bytes(250)) * 3 + b"\x00\xff" + bytes(255), "frames"),
        (b"\x01\xfa" + bytes(250) + (b"\x04\xfa" + bytes(250)) * 8, "message"),  # commands between two frames
        (b"\x06" + (COMMAND_BYTES + 1).to_bytes(8, "big"), "frame"),
        (b"\x04\x0e\x09SUBSCRIBEtopi", "commands"),  # libzmq hands it to the server as a message
        (b"\x04\x0b\x06CANCELtopi", "commands"),
        (b"\x05\x07\x04PING\x00\x00", "commands"),  # a command with MORE
    ],
)
def test_no_message_is_larger_than_the_limits(bytes_: bytes, cause: str, step: int) -> None:
    with pytest.raises(LimitExceeded) as exceeded:
        fed(NULL, bytes_, step=step)
    assert exceeded.value.cause == cause


def test_messages_up_to_the_limits_pass_for_ever_where_they_are_answered() -> None:
    peer = fed(NULL)
    for _ in range(100):
        peer.feed(memoryview(MESSAGE))
        assert not peer.full
        peer.answered(ANSWER)
    for _ in range(4):
        peer.feed(memoryview(MESSAGE))
    assert peer.full  # 12 frames


@pytest.mark.parametrize("step", [0, 1])
def test_with_curve_an_answer_settles_what_it_may_be_worth_and_the_handshake_counts_for_nothing(step: int) -> None:
    peer = fed(CURVE, READY, step=step)
    assert (peer.encrypted, peer.pending, peer.frames, peer.awaits_answer) == (True, 0, 0, False)
    peer.feed(memoryview((b"\x02" + (1000).to_bytes(8, "big") + bytes(1000)) * 2))
    assert (peer.pending, peer.frames, peer.awaits_answer) == (2 * (1000 + FRAME_COST), 2, True)
    peer.answered(ANSWER)
    assert peer.pending == 2 * (1000 + FRAME_COST) - 100 * LIMITS.answer_worth
    peer.answered(ANSWER)
    assert (peer.pending, peer.frames) == (0, 0)


def test_with_curve_later_answers_to_earlier_requests_do_not_settle_a_message_without_an_end() -> None:
    """1,000 small requests, then one message of many large frames; the answers trickle meanwhile."""
    limits = Limits(unanswered_frames=10_000, unanswered_bytes=32 << 20)
    peer = FromClient(limits)
    peer.feed(memoryview(CURVE + READY + READY + (b"\x00\x50" + bytes(80)) * 1000))
    sent, part = 0, b"\x02" + (1 << 20).to_bytes(8, "big") + bytes(1 << 20)
    while not peer.full:
        peer.feed(memoryview(part))
        peer.tick()
        peer.answered(Answers(number=1, size=150))
        sent += 1
        assert sent < 40


def test_with_curve_a_heartbeat_settles_a_heartbeat() -> None:
    peer, ping = fed(CURVE, READY), b"\x00\x28" + bytes(40)
    for _ in range(100):
        peer.feed(memoryview(ping * 2))
        peer.answered(Answers(short=2))
    assert (peer.pending, peer.frames) == (0, 0)
    peer.feed(memoryview(b"\x02" + (1000).to_bytes(8, "big") + bytes(1000)))
    peer.answered(Answers(short=1))
    assert peer.pending == 1000 - MAX_HEARTBEAT_BYTES


def test_more_commands_than_a_client_sends_are_not_parsed_on() -> None:
    ping = b"\x04\x07\x04PING\0\0"
    peer = fed(NULL)
    for _ in range(10):
        peer.tick()
        peer.feed(memoryview(ping * COMMANDS))
    with pytest.raises(LimitExceeded) as exceeded:
        peer.feed(memoryview(ping))
    assert exceeded.value.cause == "commands"


@pytest.mark.parametrize("greeting", [NULL, CURVE])
def test_no_more_frames_are_parsed_than_wanted_and_the_rest_can_be_fed_later(greeting: bytes) -> None:
    limits = Limits(unanswered_frames=10_000)
    data, at, turns = greeting + READY + READY + b"\x00\x01x" * 1000, 0, 0
    peer = FromClient(limits)
    while at < len(data):
        before = peer.frames
        at += peer.feed(memoryview(data)[at : at + 4000], 256)
        turns += 1
        assert peer.frames - before <= 256
    assert (peer.frames, turns) == (1000, 4)


def test_a_heartbeat_is_no_answer() -> None:
    for greeting, heartbeat, answer in ((NULL, b"\x04\x06\x04PONG\0", b"\x00\x02hi"),
                                        (CURVE, b"\x00\x26" + bytes(38), b"\x00\x40" + bytes(64))):  # fmt: skip
        server = FromServer()
        assert not server.feed(memoryview(greeting + READY + heartbeat)).number
        assert server.feed(memoryview(answer)) == Answers(number=1, size=len(answer) - 2)
        assert not server.feed(memoryview(heartbeat)).number


@pytest.mark.parametrize(
    "said", [b"G", b"GET / HTTP/1.1\r\n\r\n", HEAD[:9] + b"\0", HEAD[:10] + b"\1", b"\x01\0" * 1000]
)
def test_what_is_no_zmtp_3_is_told_by_its_first_bytes_and_not_read_on(said: bytes) -> None:
    peer = FromClient(LIMITS)
    peer.feed(memoryview(said))
    assert (peer.not_zmtp, peer.pending) == (True, 0)


def test_limits_travel_as_text() -> None:
    assert Limits.from_text(LIMITS.as_text()) == LIMITS
