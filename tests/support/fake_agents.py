"""Agents that a test speaks for: channels and an engine without processes."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence

from simul.launch.cluster.links import ChannelLostError
from simul.launch.cluster.messages import FrameReader, ToAgent


class FakeChannel:
    """What the agent says is put into `said`; an exception there is raised."""

    node, host = "fake", "127.0.0.9"

    def __init__(self) -> None:
        self.said: queue.Queue[bytes | ChannelLostError] = queue.Queue()
        self.heard: list[ToAgent] = []
        self.closed = threading.Event()
        self._reader: FrameReader[ToAgent] = FrameReader(ToAgent)

    def send(self, data: bytes) -> None:
        self.heard += self._reader.feed(data)

    def receive(self, timeout_sec: float) -> bytes:
        if self.closed.is_set():
            raise ChannelLostError("closed")
        try:
            item = self.said.get(timeout=0.02)
        except queue.Empty:
            return b""
        if isinstance(item, ChannelLostError):
            raise item
        return item

    def close(self) -> None:
        self.closed.set()


class FakeEngine:
    """Gives each bundle that asks another channel, once `free` is set. `channel`: the first."""

    host = "127.0.0.1"

    def __init__(self) -> None:
        self.channel = FakeChannel()
        self.channels: dict[int, list[FakeChannel]] = {}
        self.free = threading.Event()
        self.greeting = b""  # what each new agent says
        self.asked: list[list[int]] = []  # bundles that were said to wait
        self.room = False  # what `lacking` says

    def open(self, bundle: int, stopped: Callable[[], bool]) -> FakeChannel:
        while not self.free.wait(0.01):
            if stopped():
                raise ChannelLostError("the run stops")
        lives = self.channels.setdefault(bundle, [])
        lives.append(FakeChannel() if lives or bundle else self.channel)
        if self.greeting:
            lives[-1].said.put(self.greeting)
        return lives[-1]

    def lacking(self, bundles: Sequence[int]) -> str:
        self.asked.append(list(bundles))
        return "" if self.room else f"{len(bundles)} bundles."

    def close(self) -> None:
        pass
