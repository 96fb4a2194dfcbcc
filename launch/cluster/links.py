"""The supervisor's end of an agent: a channel to another machine, read by a thread, and the processes that it runs."""

from __future__ import annotations

import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from simul.common.errors import SimulError
from simul.common.role.run_directory import RunDir
from simul.launch.cluster.messages import (
    AgentHello,
    FrameReader,
    FromAgent,
    KillRole,
    Leave,
    StopRole,
    ToAgent,
    Usage,
    encode_frame,
)
from simul.launch.cluster.placement import Bundle
from simul.launch.processes.role_process import ResourceMeter, RoleLife

RECEIVE_SEC = 1.0
LEAVE_SEC = 10.0  # for an agent to end what it has started
PAUSE_SEC = 5.0  # a supervisor that did not look for so long was paused itself


class ChannelLostError(SimulError):
    """The agent, its machine or the way to it is gone. Caught by AgentLink: its processes count as dead."""


class Channel(Protocol):
    """Bytes to and from one agent.

    Attributes:
        node: name of its machine, for people.
        host: address at which other machines of the run reach it.
    """

    node: str
    host: str

    def send(self, data: bytes) -> None:
        """Send without waiting for the agent. Raises ChannelLostError."""

    def receive(self, timeout_sec: float) -> bytes:
        """What has come; empty: nothing within `timeout_sec`. Raises ChannelLostError."""

    def close(self) -> None:
        """End the agent. May be called twice, and while `receive` waits."""


class Engine(Protocol):
    """What finds machines for bundles, and starts agents there: Ray.

    Attributes:
        host: address at which the machines of the run reach this one.
    """

    host: str

    def open(self, bundle: int, stopped: Callable[[], bool]) -> Channel:
        """Start an agent for a bundle; waits until a machine has room. Raises ChannelLostError."""

    def lacking(self, bundles: Sequence[int]) -> str:
        """Which of these bundles, not placed yet, no machine has room for now; empty: none. See `lacking_text`."""

    def close(self) -> None:
        """Give everything back."""


class AgentLink:
    """One life of the agent of a bundle."""

    def __init__(self, number: int, bundle: Bundle, engine: Engine) -> None:
        self.bundle = bundle
        self.hello: AgentHello | None = None
        self.lost = ""  # why
        self.roles: dict[int, RemoteRole] = {}
        self.prepared = False  # a process has started there, and what had to run before it has succeeded
        self.began = time.monotonic()
        self.lacking_said = False
        self._number, self._engine = number, engine
        self._channel: Channel | None = None
        self._reader: FrameReader[FromAgent] = FrameReader(FromAgent)
        self._inbox: queue.SimpleQueue[Channel | bytes | ChannelLostError] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._heard_at = self._looked_at = time.monotonic()
        self._thread = threading.Thread(target=self._receive, name=f"simul-agent-{number}", daemon=True)
        self._thread.start()

    @property
    def node(self) -> str:
        """Name of its machine; empty before one was found."""
        return self._channel.node if self._channel is not None else ""

    @property
    def host(self) -> str:
        """Address of its machine; empty before one was found."""
        return self._channel.host if self._channel is not None else ""

    def poll(self, now: float, lost_after_sec: float) -> Iterator[FromAgent]:
        """Messages that have come. Sets `lost` where the agent is gone, or was silent for `lost_after_sec`."""
        if now - self._looked_at > PAUSE_SEC:
            self._heard_at += now - self._looked_at
        self._looked_at = now
        while not self.lost:
            try:
                item = self._inbox.get_nowait()
            except queue.Empty:
                break
            self._heard_at = now
            if isinstance(item, ChannelLostError):
                self.lost = str(item)
            elif isinstance(item, bytes):
                yield from self._decode(item)
            else:
                self._channel = item
        if self.hello is not None and not self.lost and now - self._heard_at > lost_after_sec:
            self.lost = f"no sign of life for {lost_after_sec:g} s"

    def send(self, message: ToAgent) -> None:
        """Send, where it lives."""
        if self._channel is None or self.lost:
            return
        try:
            self._channel.send(encode_frame(message))
        except ChannelLostError as error:
            self.lost = str(error)

    def leave(self, *, remove: bool) -> None:
        """Ask the agent to kill its processes and end; `close` waits for that. `remove`: its directory goes, too."""
        if self._channel is None:
            self._closed.set()
        self.send(Leave(remove=remove))

    def drop(self) -> None:
        """End an agent that is lost, without waiting: `close` is still to come."""
        self._closed.set()
        if self._channel is not None:
            self._channel.close()

    def close(self) -> None:
        """End the agent, and the thread: the engine is not used any more. One that was asked to leave does so first."""
        if not self.lost and not self._closed.is_set():
            self._thread.join(LEAVE_SEC)
        self.drop()
        self._thread.join(LEAVE_SEC)

    def _decode(self, data: bytes) -> Iterator[FromAgent]:
        try:
            for message in self._reader.feed(data):
                if isinstance(message, AgentHello):
                    self.hello = message
                yield message
        except ValueError as error:  # also msgspec's
            self.lost = f"it sent what cannot be read: {error}"

    def _receive(self) -> None:
        """The thread."""
        channel = None
        try:
            channel = self._engine.open(self._number, self._closed.is_set)
            self._inbox.put(channel)
            while not self._closed.is_set():
                if data := channel.receive(RECEIVE_SEC):
                    self._inbox.put(data)
        except ChannelLostError as error:
            self._inbox.put(error)
        finally:
            if channel is not None:
                channel.close()


class RemoteRole(RoleLife):
    """One life of a role process on another machine. Its log is mirrored into the run directory of the supervisor."""

    def __init__(
        self, role: str, index: int, run_dir: RunDir, link: AgentLink, threads: int, arguments: Sequence[str]
    ) -> None:
        super().__init__(role, index, run_dir)
        self.link = link
        self.threads = threads
        self.arguments = tuple(arguments)
        self.machine = "elsewhere"  # until its agent says where
        self.started_at = 0.0
        self.held = False  # its machine is known, and starts it when another process there has fetched what it needs
        self.usage = Usage(0.0, 0.0, 0.0)
        self._exit_code: int | None = None
        self._why = ""
        link.roles[self.run_id] = self

    @property
    def create_time(self) -> float:
        """When it was started; 0.0 where unknown."""
        return self.started_at

    def exit_code(self) -> int | None:
        """None while it runs, as far as is known; of a lost machine that of a killed process."""
        return self._exit_code

    def exit_reason(self) -> str:
        """`signal 9`, `exit code 1`, or why its machine is lost."""
        return self._why or super().exit_reason()

    def end(self, code: int, why: str = "") -> None:
        """Its agent has said so, or is lost, and then says nothing about it any more."""
        if self._exit_code is None:
            self._exit_code, self._why = code, why
            self.link.roles.pop(self.run_id, None)  # an agent that comes later must not start it

    def lose(self, why: str) -> None:
        """Its machine is lost."""
        self.end(-signal.SIGKILL, why)

    def request_stop(self) -> None:
        """Ask it to drain, save and exit. One that has not been started yet is over."""
        if self._exit_code is not None:
            return
        self.stop_requested = True
        if not self._sent:
            self.end(0)
        self.link.send(StopRole(run_id=self.run_id))

    def kill(self) -> None:
        """Kill it and everything it started."""
        self.link.send(KillRole(run_id=self.run_id))
        if not self._sent or self.link.lost:
            self.end(-signal.SIGKILL)

    def measure(self, meter: ResourceMeter) -> None:
        """The figures that its agent sent last."""
        usage = self.usage if self._exit_code is None else Usage(0.0, 0.0, 0.0)
        meter.take_over(usage.cpu_percent, usage.rss_mb, usage.children_rss_mb, usage.cpu_sec)

    @property
    def _sent(self) -> bool:
        """The agent was told to start it, and so will say how it ends."""
        return self.link.hello is not None and not self.held
