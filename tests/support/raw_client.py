"""A client that sends whatever frames a test wants, right or wrong, and reads what comes back."""

from __future__ import annotations

import time
from typing import Any

from simul.common.protocol.codec import Codec, Frame, encode
from simul.common.protocol.messages import PROTOCOL, TO_CLIENT, Error, Hello, Message, Ping, Welcome
from simul.common.protocol.specs import GameSpec
from simul.common.transport import DealerSocket, Poller
from tests.support.waiting import PATIENCE_SEC


class RawClient:
    """Use as a context manager. `hello()` first, unless the test is about strangers."""

    def __init__(self, endpoint: str, spec: GameSpec, *, queue: int = 1000) -> None:
        self.spec = spec
        self.socket = DealerSocket(endpoint, queue=queue)
        self._codec: Codec[TO_CLIENT] = Codec(TO_CLIENT)
        self._poller = Poller([self.socket])

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def hello(self, name: str = "raw", run_id: int = 1, **more: Any) -> Welcome:
        """Say HELLO, wait for WELCOME."""
        self.send(
            Hello(protocol=PROTOCOL, client=name, run_id=run_id, spec_fingerprint=self.spec.fingerprint(), **more)
        )
        message, _ = self.receive()
        assert isinstance(message, Welcome), message
        return message

    def send(self, message: Message, tensors: Any = None) -> None:
        assert self.socket.send(encode(message, tensors))

    def send_frames(self, frames: list[Frame]) -> None:
        assert self.socket.send(frames)

    def receive(self, timeout_sec: float = PATIENCE_SEC) -> tuple[Any, dict[str, Any]]:
        """The next message and its tensors; fails where none comes."""
        deadline = time.monotonic() + timeout_sec
        while (frames := self.socket.receive()) is None:
            assert time.monotonic() < deadline, "no answer"
            self._poller.wait(0.02)
        return self._codec.decode(frames)

    def ask(self, message: Message, tensors: Any = None) -> Any:
        """Send, and the next message."""
        self.send(message, tensors)
        return self.receive()[0]

    def refused(self, frames: list[Frame]) -> Error:
        """The answer to frames that the server must refuse."""
        self.send_frames(frames)
        answer, _ = self.receive()
        assert isinstance(answer, Error), answer
        return answer

    def alive(self) -> bool:
        """The server answers a PING; whatever came before it is skipped."""
        self.send(Ping(id=77))
        while getattr(self.receive()[0], "id", None) != 77:
            pass
        return True
