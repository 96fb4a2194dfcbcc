"""The framing of ZMTP 3 on one connection, as far as the proxy has to know it. Pure; no message is interpreted.

A connection begins with a greeting of 64 bytes on either side: signature (10), version (2), mechanism (20), filler.
Then come frames: flags (1 byte), size (1 byte, or 8 with the flag LONG), body. With the mechanism CURVE the body of a
frame is encrypted together with its own flags, so that only the two ends know where a message ends.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass

GREETING_BYTES = 64
SIGNATURE_BYTES = 10
MORE, LONG, COMMAND = 1, 2, 4
SHORT_HEADER, LONG_HEADER = 2, 9
FRAME_COST = 256  # bytes of memory that a frame costs the server besides its own
LARGE_BYTES = 32 * 1024  # a connection that holds so much waits for its turn where all together hold much
COMMAND_BYTES = 64 * 1024
COMMANDS = 100  # of one connection from one tick to the next
# Commands that libzmq passes on to the server like messages, by the length of their names: CANCEL and SUBSCRIBE.
PASSED_ON = (6, 9)
HANDSHAKE_FRAMES = 2  # commands of a CURVE client: HELLO, INITIATE
WELCOME = b"\xa4type\xa7WELCOME"  # in the answer that makes a peer a client
# The answer of libzmq itself to a heartbeat, with CURVE: command name, nonce, box, flags, PONG and its longest context.
MAX_HEARTBEAT_BYTES = 8 + 8 + 16 + 1 + 5 + 16


@dataclass(frozen=True)
class Limits:
    """Limits of peers that connect through the proxy. Bytes include FRAME_COST for each frame.

    Attributes:
        connections: open at a time.
        message_frames: in one message; its bytes are at most `message_bytes`.
        unanswered_frames, unanswered_bytes: of one connection; beyond them the proxy stops reading it.
        shared_bytes: of all connections together; beyond them those that hold LARGE_BYTES are read one after another.
        budget_bytes: of all connections together, unfinished or unanswered; beyond them one is cut.
        answer_worth: with CURVE, bytes of a request that one byte of its answer settles at most.
        patience_sec: that a peer may stop reading answers, or stop within a large message while others wait for their
            turn, before its connection is cut.
        unanswered_sec: that a peer may be over its limits; long, since a server that stands still is not its fault. As
            long may a large message take while others wait for theirs.
        silent_sec: until a new connection has sent a message.
        owner_only: peers of other users are refused on ipc.
    """

    connections: int = 1024
    message_frames: int = 16
    message_bytes: int = 128 << 20
    unanswered_frames: int = 2048
    unanswered_bytes: int = 160 << 20
    shared_bytes: int = 24 << 20
    budget_bytes: int = 192 << 20
    answer_worth: int = 16
    patience_sec: float = 5.0
    unanswered_sec: float = 30.0
    silent_sec: float = 10.0
    owner_only: bool = True

    def as_text(self) -> str:
        """As JSON, for a command line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Limits:
        """What `as_text` wrote."""
        return cls(**json.loads(text))


class LimitExceeded(Exception):
    """A peer is over a limit that no client meets by chance. `cause`: as it is counted."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause


@dataclass
class Answers:
    """What the server sent. `number`, `size`: frames of answers and their bytes; `short`: frames like heartbeats."""

    number: int = 0
    size: int = 0
    short: int = 0


class _Frames:
    """Cuts a stream of bytes into greeting and frames. `frame(flags, size)` is called at each header."""

    def __init__(self) -> None:
        self.greeting = bytearray()
        self._header = bytearray()  # the beginning of one that came in parts
        self._left = 0  # bytes of the frame's body that are still to come

    def _greet(self, data: memoryview) -> int:
        """How many bytes of `data` belong to the greeting."""
        part = data[: GREETING_BYTES - len(self.greeting)]
        self.greeting += part
        return len(part)

    @property
    def left(self) -> int:
        """Bytes of the frame's body that are still to come."""
        return self._left

    def _parse(self, data: memoryview, at: int, most: int = sys.maxsize) -> int:
        """`data` from `at` on, at most so many frames of it. Where it stopped."""
        end = len(data)
        while at < end and (most or self._left):
            if self._left:
                first, some = data[at], min(self._left, end - at)
                self._left -= some
                at += some
                self.body(first, some, self._left)
                continue
            if self._header or end - at < LONG_HEADER:
                self._header.append(data[at])
                at += 1
                flags, header = self._header[0], self._header
                if len(header) < (LONG_HEADER if flags & LONG else SHORT_HEADER):
                    continue
                size = int.from_bytes(header[1:], "big")
                self._header = bytearray()
            else:
                flags = data[at]
                if flags & LONG:
                    size = int.from_bytes(data[at + 1 : at + LONG_HEADER], "big")
                    at += LONG_HEADER
                else:
                    size = data[at + 1]
                    at += SHORT_HEADER
            self.begin(flags, size)
            most -= 1
            self._left = size
            if not size:
                self.body(0, 0, 0)
        return at

    def begin(self, flags: int, size: int) -> None:
        """A frame of `size` bytes begins."""
        raise NotImplementedError

    def body(self, first: int, some: int, left: int) -> None:
        """`some` bytes of its body came, the first of which is `first`; `left` are to come."""
        raise NotImplementedError


class FromClient(_Frames):
    """What a peer has sent and the server has not answered.

    `pending`: bytes; `frames`: frames. Without encryption a message counts until it is complete and the server has
    answered something since. With CURVE, where the end of a message cannot be seen, an answer settles as much as a
    request may hold that gets such an answer (`answer_worth`), and a heartbeat settles a heartbeat: answers to earlier
    messages may still arrive while a message goes on for ever.
    """

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self.not_zmtp = False  # not ZMTP 3: the server ends it after its first bytes
        self.frames = 0
        self._limits = limits
        self._encrypted = False
        self._unfinished = 0
        self._complete = 0
        self._encrypted_bytes = 0  # bytes of frames whose messages' ends cannot be seen
        self._handshake = HANDSHAKE_FRAMES
        self._commands = 0  # since the last tick
        self._message_frames = 0
        self._flags = 0
        self._at_command_name = False  # the next byte is the length of a command's name

    @property
    def pending(self) -> int:
        """Bytes without an answer, and what their frames cost."""
        return self._unfinished + self._complete + self._encrypted_bytes

    @property
    def is_unfinished(self) -> bool:
        """Whether a message has begun and not ended. False with CURVE, where that cannot be seen."""
        return self._unfinished > 0

    @property
    def may_continue(self) -> bool:
        """Whether more bytes of a message may come."""
        return self._encrypted or self._unfinished > 0

    @property
    def awaits_answer(self) -> bool:
        """Whether a message has been sent that the server has not answered."""
        return self._complete + self._encrypted_bytes > 0

    @property
    def encrypted(self) -> bool:
        """Whether the ends of messages cannot be seen."""
        return self._encrypted

    @property
    def full(self) -> bool:
        """Whether enough was sent for now."""
        limits = self._limits
        return self.frames > limits.unanswered_frames or self.pending > limits.unanswered_bytes

    def feed(self, data: memoryview, most: int = sys.maxsize) -> int:
        """Bytes came. How many were taken: those of at most so many frames. Raises LimitExceeded."""
        at = 0
        if len(self.greeting) < GREETING_BYTES:
            at = self._greet(data)
            greeting = self.greeting
            self.not_zmtp = (
                greeting[0] != 0xFF
                or (len(greeting) >= SIGNATURE_BYTES and greeting[SIGNATURE_BYTES - 1] != 0x7F)
                or (len(greeting) > SIGNATURE_BYTES and greeting[SIGNATURE_BYTES] < 3)
            )
            self._encrypted = len(greeting) == GREETING_BYTES and greeting[12:17] == b"CURVE"
        return len(data) if self.not_zmtp else self._parse(data, at, most)

    def answered(self, answers: Answers) -> None:
        """The server sent something."""
        if self._encrypted:
            self.frames -= min(self.frames, answers.number * self._limits.message_frames + answers.short)
            worth = answers.size * self._limits.answer_worth + answers.short * (FRAME_COST + MAX_HEARTBEAT_BYTES)
            self._encrypted_bytes -= min(self._encrypted_bytes, worth)
        elif answers.number:
            self.frames = self._complete = 0

    def tick(self) -> None:
        """Called now and then: COMMANDS more may come."""
        self._commands = 0

    def begin(self, flags: int, size: int) -> None:
        """Raises LimitExceeded."""
        limits = self._limits
        self._flags = flags
        if flags & COMMAND:
            if size > COMMAND_BYTES:
                raise LimitExceeded("frame")
            if flags & MORE:
                raise LimitExceeded("commands")
            self._at_command_name = size > 0
            self._commands += 1
            if self._commands > COMMANDS:
                raise LimitExceeded("commands")
        elif size > limits.message_bytes:
            raise LimitExceeded("message")
        self.frames += 1
        if self._encrypted:
            self._encrypted_bytes += FRAME_COST
            return
        self._unfinished += FRAME_COST
        if not flags & COMMAND:
            self._message_frames += 1
            if self._message_frames > limits.message_frames:
                raise LimitExceeded("frames")

    def body(self, first: int, some: int, left: int) -> None:
        """Raises LimitExceeded."""
        if self._at_command_name:
            self._at_command_name = False
            if first in PASSED_ON:
                raise LimitExceeded("commands")
        if self._encrypted:
            self._encrypted_bytes += some
            if not left and self._handshake:
                self._handshake -= 1
                if self._flags & COMMAND:  # libzmq deals with it at once
                    self.frames = self._encrypted_bytes = 0
            return
        self._unfinished += some
        if self._unfinished > self._limits.message_bytes + self._limits.message_frames * FRAME_COST:
            raise LimitExceeded("message")
        if left:
            return
        if self._flags & COMMAND:  # libzmq deals with it at once
            self.frames -= bool(self.frames)
            if not self._message_frames:
                self._unfinished = 0
        elif not self._flags & MORE:
            self._complete += self._unfinished
            self._unfinished = self._message_frames = 0


class FromServer(_Frames):
    """Parses what the server sends: which frames are answers."""

    def __init__(self) -> None:
        super().__init__()
        self._answers = Answers()

    def feed(self, data: memoryview) -> Answers:
        """Bytes came: the answers that begin among them."""
        self._answers = Answers()
        self._parse(data, self._greet(data) if len(self.greeting) < GREETING_BYTES else 0)
        return self._answers

    def begin(self, flags: int, size: int) -> None:
        """Handshakes and heartbeats are commands; with CURVE a heartbeat looks like a short frame."""
        if flags & COMMAND:
            return
        if size > MAX_HEARTBEAT_BYTES or self.greeting[12:16] == b"NULL":
            self._answers.number += 1
            self._answers.size += size
        else:
            self._answers.short += 1

    def body(self, first: int, some: int, left: int) -> None:
        """Nothing to know."""
