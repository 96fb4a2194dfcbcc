"""The framing of ZMTP 3 on one connection, as far as the proxy has to know it. Pure; no message is interpreted.

A connection begins with a greeting of 64 bytes on either side: signature (10), version (2), mechanism (20), filler.
Then come frames: flags (1 byte), size (1 byte, or 8 with the flag LONG), body. With the mechanism CURVE the body of a
frame is encrypted together with its own flags, so that only the two ends know where a message ends.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

GREETING_BYTES = 64
SIGNATURE_BYTES = 10
MORE, LONG, COMMAND = 1, 2, 4
SHORT_HEADER, LONG_HEADER = 2, 9
FRAME_COST = 256  # bytes of memory that a frame costs the server besides its own
COMMAND_BYTES = 64 * 1024
MESSAGE_BYTES = 128 << 20
# The answer of libzmq itself to a heartbeat, with CURVE: command name, nonce, box, flags, PONG and its longest context.
MOST_OF_A_HEARTBEAT = 8 + 8 + 16 + 1 + 5 + 16


@dataclass(frozen=True)
class Limits:
    """Of peers that come through the proxy. Bytes include FRAME_COST for each frame.

    Attributes:
        connections: open at a time.
        message_frames: in one message; its bytes are at most `message_bytes`.
        unanswered_frames, unanswered_bytes: of one connection; beyond them the proxy stops reading it.
        budget_bytes: of all connections together, unfinished or unanswered.
        patience_sec: that a peer may stop reading answers, or be over its limits, before its connection is cut.
        silent_sec: until the first answer to a new connection.
        owner_only: peers of other users are refused on ipc.
    """

    connections: int = 1024
    message_frames: int = 16
    message_bytes: int = MESSAGE_BYTES
    unanswered_frames: int = 2048
    unanswered_bytes: int = 160 << 20
    budget_bytes: int = 192 << 20
    patience_sec: float = 5.0
    silent_sec: float = 10.0
    owner_only: bool = True

    def as_text(self) -> str:
        """For a command line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Limits:
        """What `as_text` wrote."""
        return cls(**json.loads(text))


class Broken(Exception):
    """A peer is over a limit that no client meets by chance. `cause`: as it is counted."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause


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

    def _parse(self, data: memoryview, at: int) -> None:
        """`data` from `at` on."""
        end = len(data)
        while at < end:
            if self._left:
                some = min(self._left, end - at)
                self._left -= some
                at += some
                self.body(some, self._left)
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
            self._left = size
            if not size:
                self.body(0, 0)

    def begin(self, flags: int, size: int) -> None:
        """A frame of `size` bytes begins."""
        raise NotImplementedError

    def body(self, some: int, left: int) -> None:
        """`some` bytes of its body came, `left` are to come."""
        raise NotImplementedError


class FromClient(_Frames):
    """What a peer has sent and the server has not answered.

    `pending`: bytes; `frames`: frames. Without encryption a message counts until it is complete and the server has
    answered something since. With CURVE an answer settles what was sent before the last `tick`: answers to earlier
    messages may still arrive while a message goes on for ever.
    """

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self.foreign = False  # not ZMTP 3: the server ends it after its first bytes
        self.frames = 0
        self._limits = limits
        self._opaque = False
        self._unfinished = 0
        self._complete = 0
        self._newer, self._older = 0, 0
        self._message_frames = 0
        self._flags = 0

    @property
    def pending(self) -> int:
        """Bytes without an answer, and what their frames cost."""
        return self._unfinished + self._complete + self._newer + self._older

    @property
    def opaque(self) -> bool:
        """Whether the ends of messages cannot be seen."""
        return self._opaque

    @property
    def full(self) -> bool:
        """Whether enough was sent for now."""
        limits = self._limits
        return self.frames > limits.unanswered_frames or self.pending > limits.unanswered_bytes

    def feed(self, data: memoryview) -> None:
        """Bytes came. Raises Broken."""
        at = 0
        if len(self.greeting) < GREETING_BYTES:
            at = self._greet(data)
            said = self.greeting
            self.foreign = (
                said[0] != 0xFF
                or (len(said) >= SIGNATURE_BYTES and said[SIGNATURE_BYTES - 1] != 0x7F)
                or (len(said) > SIGNATURE_BYTES and said[SIGNATURE_BYTES] < 3)
            )
            self._opaque = len(said) == GREETING_BYTES and said[12:17] == b"CURVE"
        if not self.foreign:
            self._parse(data, at)

    def answered(self) -> None:
        """The server sent an answer."""
        self.frames = self._complete = self._older = 0

    def tick(self) -> None:
        """Called now and then: what came until now is old enough to be what an answer is about."""
        self._older += self._newer
        self._newer = 0

    def begin(self, flags: int, size: int) -> None:
        """Raises Broken."""
        limits = self._limits
        self._flags = flags
        if flags & COMMAND:
            if size > COMMAND_BYTES:
                raise Broken("frame")
        elif size > limits.message_bytes:
            raise Broken("message")
        self.frames += 1
        if self._opaque:
            self._newer += FRAME_COST
            return
        self._unfinished += FRAME_COST
        if not flags & COMMAND:
            self._message_frames += 1
            if self._message_frames > limits.message_frames:
                raise Broken("frames")

    def body(self, some: int, left: int) -> None:
        """Raises Broken."""
        if self._opaque:
            self._newer += some
            return
        self._unfinished += some
        if self._unfinished > self._limits.message_bytes + self._limits.message_frames * FRAME_COST:
            raise Broken("message")
        if left:
            return
        if self._flags & COMMAND:  # libzmq deals with it at once
            self.frames -= 1
            if not self._message_frames:
                self._unfinished = 0
        elif not self._flags & MORE:
            self._complete += self._unfinished
            self._unfinished = self._message_frames = 0


class FromServer(_Frames):
    """What the server says: whether it answers."""

    def __init__(self) -> None:
        super().__init__()
        self._answers = False

    def feed(self, data: memoryview) -> bool:
        """Bytes came. True when an answer is among them."""
        self._answers = False
        self._parse(data, self._greet(data) if len(self.greeting) < GREETING_BYTES else 0)
        return self._answers

    def begin(self, flags: int, size: int) -> None:
        """Handshakes and heartbeats are commands; with CURVE a heartbeat looks like a short frame."""
        if not flags & COMMAND and (size > MOST_OF_A_HEARTBEAT or self.greeting[12:16] == b"NULL"):
            self._answers = True

    def body(self, some: int, left: int) -> None:
        """Nothing to know."""
